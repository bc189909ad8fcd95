"""The value of `max.connections.per.ip.overrides`: limits of single addresses."""

import ipaddress
from collections.abc import Mapping

from moldau.errors import ConfigError

NAME = "max.connections.per.ip.overrides"
_LOCALHOST = ("127.0.0.1", "::1")


def connections_per_ip(text: str) -> Mapping[str, int]:
    """The maximum number of connections of each address. Raises `ConfigError`."""
    limits: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, colon, number = pair.rpartition(":")
        if not (colon and number.isascii() and number.isdigit() and len(number) < 10):
            raise ConfigError(f"{NAME} must be a list of ADDRESS:NUMBER, not {pair[:60]!r}")
        for address in _LOCALHOST if host == "localhost" else (_address(host),):
            limits[address] = int(number)
    return limits


def _address(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        raise ConfigError(
            f"{NAME} has {host[:60]!r}, which is not an IP address: host names are not looked up here; give addresses"
        ) from None
