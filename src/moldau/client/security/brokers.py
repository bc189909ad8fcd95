"""Addresses of brokers that carry the settings by which clients reach them.

Code that hands addresses on, from a command or a Spark option down to a client, handles text. `Brokers` is that text,
and shows nothing else; the clients at the end take their settings out of it.
"""

from collections.abc import Mapping
from typing import Any


class Brokers(str):
    """`host:port,host:port`; `settings` has Kafka's names, as a properties file does."""

    settings: Mapping[str, Any]

    def __new__(cls, addresses: str, settings: Mapping[str, Any]) -> "Brokers":
        made = super().__new__(cls, addresses)
        made.settings = settings
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Brokers, (str(self), dict(self.settings))


def settings_in(addresses: object) -> Mapping[str, Any]:
    """The settings that addresses carry; none for plain text."""
    return addresses.settings if isinstance(addresses, Brokers) else {}


def alike(addresses: str, other: object) -> str:
    """These addresses with the settings that others carry."""
    settings = settings_in(other)
    return Brokers(addresses, settings) if settings else addresses
