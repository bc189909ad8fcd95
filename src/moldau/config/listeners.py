"""Listeners as the settings spell them: `NAME://HOST:PORT`, with a map from names to protocols.

One listener is served: the first that speaks plain text. A listener of the controllers, or one that asks for TLS or
SASL, is never served as anything weaker: it is left out with a warning, and if no other is there the broker does not
start.
"""

import re
from typing import NamedTuple, Protocol

from moldau.errors import ConfigError

_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]*)):([0-9]{1,5})", re.ASCII)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class _Asked(Protocol):
    @property
    def listeners(self) -> tuple[str, ...]: ...
    @property
    def advertised_listeners(self) -> tuple[str, ...] | None: ...
    @property
    def listener_security_protocol_map(self) -> str: ...


def parse_listener(text: str, setting: str) -> Listener:
    """One `NAME://HOST:PORT`. Raises `ConfigError`."""
    found = _LISTENER.fullmatch(text.strip())
    if not found or int(found[4]) > 65535:
        raise ConfigError(f"{setting} must be a list of NAME://HOST:PORT, not {text.strip()!r}")
    return Listener(found[1].upper(), found[2] or found[3] or "", int(found[4]))


def _protocols(text: str) -> dict[str, str]:
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.partition(":")
        if not colon or protocol.strip().upper() not in _PROTOCOLS:
            raise ConfigError(f"listener.security.protocol.map must be a list of NAME:PROTOCOL, not {pair!r}")
        found[name.strip().upper()] = protocol.strip().upper()
    return found


def _listed(texts: tuple[str, ...], setting: str) -> list[Listener]:
    found = [parse_listener(text, setting) for text in texts]
    for i, listener in enumerate(found):
        if any(other.name == listener.name for other in found[:i]):
            raise ConfigError(f"{setting} names the listener {listener.name} twice")
    return found


def chosen_listeners(config: _Asked) -> tuple[Listener, Listener, list[str]]:
    """The listener to serve, what clients are told of it, and warnings about the others. Raises `ConfigError`."""
    protocols = _protocols(config.listener_security_protocol_map)
    listed = _listed(config.listeners, "listeners")
    plain = [one for one in listed if protocols.get(one.name) == "PLAINTEXT" and one.name != "CONTROLLER"]
    if not plain:
        names = ", ".join(one.name for one in listed) or "none"
        raise ConfigError(f"listeners must have one that speaks PLAINTEXT to clients (found: {names})")
    served = plain[0]
    others = [one.name for one in listed if one is not served]
    warnings = [f"only the listener {served.name} is served, not {', '.join(others)}"] if others else []
    advertised = served
    for one in _listed(config.advertised_listeners or (), "advertised.listeners"):
        if one.name == served.name:
            advertised = one
    if config.advertised_listeners and advertised.host == "0.0.0.0":
        raise ConfigError("advertised.listeners must name a host that clients can connect to, not 0.0.0.0")
    return served, advertised, warnings
