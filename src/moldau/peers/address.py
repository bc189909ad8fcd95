"""The address of a broker, and its text forms: `host`, `host:port`, `[::1]:9092`."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from moldau.errors import ConfigError

DEFAULT_PORT = 9092
_HOST = re.compile(r"[^\s\[\]/@,;'\"]+")


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `host:port` or `host`; an IPv6 address is in brackets. Raises `ConfigError`."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    bracketed = host[:1] == "[" and host[-1:] == "]"
    name = host[1:-1] if bracketed else host
    is_port = len(port) <= 5 and port.isascii() and port.isdecimal() and 0 < int(port) < 65536
    if not is_port or (":" in name) != bracketed or not _HOST.fullmatch(name):
        raise ConfigError(f"{text!r} is not HOST:PORT{_scheme(text)}")
    try:
        name.encode("idna")
    except UnicodeError:  # a label of more than 63 characters, or an empty one
        raise ConfigError(f"{name!r} cannot be the name of a host") from None
    return Address(name, int(port))


def _scheme(text: str) -> str:
    """What to change in an address that begins as a URL or a listener does."""
    scheme, separator, rest = text.partition("://")
    return f": write {rest!r}, without {scheme + separator!r}" if separator and rest else ""


def bootstrap_addresses(bootstrap: str | Iterable[str]) -> list[Address]:
    """The addresses in `host:port,host:port`, or in a list of them. Raises `ConfigError`."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = [parse_address(text) for text in (text.strip() for text in texts) if text]
    if not addresses:
        raise ConfigError("no bootstrap server given: name at least one HOST:PORT, several separated by commas")
    return addresses
