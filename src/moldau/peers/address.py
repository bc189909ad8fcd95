"""The address of a broker, and its text forms: `host`, `host:port`, `[::1]:9092`."""

from collections.abc import Iterable
from typing import NamedTuple

from moldau.errors import ConfigError

DEFAULT_PORT = 9092


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
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and not host.startswith("[")):
        raise ConfigError(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]"), int(port))


def bootstrap_addresses(bootstrap: str | Iterable[str]) -> list[Address]:
    """The addresses in `host:port,host:port`, or in a list of them. Raises `ConfigError`."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = [parse_address(text) for text in (text.strip() for text in texts) if text]
    if not addresses:
        raise ConfigError("no bootstrap server given: name at least one HOST:PORT, several separated by commas")
    return addresses
