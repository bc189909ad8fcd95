"""Addresses of brokers that carry the settings by which clients reach them.

Code that hands addresses on, from a command or a Spark option down to a client, handles text. `Brokers` is that text,
and shows nothing else; the clients at the end take their settings out of it. Settings in a file are read there: the
process at the end may run on another machine, and secrets do not travel.
"""

from collections.abc import Mapping
from typing import Any

OF_JAVA = ("bootstrap.servers", "key.deserializer", "key.serializer", "value.deserializer", "value.serializer")
"""Settings in a Java program's file that are left out: whoever hands addresses on handles bytes, of these brokers."""


class Brokers(str):
    """`host:port,host:port`. `settings` has Kafka's names, as a properties file does; they win over those of the
    `file`."""

    settings: Mapping[str, Any]
    file: str

    def __new__(cls, addresses: str, settings: Mapping[str, Any], file: str = "") -> "Brokers":
        made = super().__new__(cls, addresses)
        made.settings, made.file = settings, file
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Brokers, (str(self), dict(self.settings), self.file)


def settings_in(addresses: object) -> Mapping[str, Any]:
    """The settings that addresses carry; none for plain text. Raises `ConfigError` for a file of no use."""
    if not isinstance(addresses, Brokers):
        return {}
    if not addresses.file:
        return addresses.settings
    from moldau.config.properties import read_properties
    from moldau.config.providers import resolved

    read = {name: text for name, text in resolved(read_properties(addresses.file)).items() if name not in OF_JAVA}
    return {**read, **addresses.settings}


def alike(addresses: str, other: object) -> str:
    """These addresses with the settings that others carry."""
    return Brokers(addresses, other.settings, other.file) if isinstance(other, Brokers) else addresses
