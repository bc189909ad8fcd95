"""The rules of the listener settings: which listeners a broker opens, and which address each one advertises.

A listener is `NAME://HOST:PORT`, and `listener.security.protocol.map` says which protocol its name stands for. The
rules are those of Apache Kafka 4.3 (`EndpointUtils` and `KafkaConfig.validateValues`), except that the listeners of
Kafka's controllers are not opened.
"""

import re
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from moldau.errors import ConfigError

PLAINTEXT, SSL = "PLAINTEXT", "SSL"
_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]*)):([0-9]{1,9})", re.ASCII)
PORT_MAX = 65_535
SASL = ("SASL_PLAINTEXT", "SASL_SSL")
PROTOCOLS = (PLAINTEXT, SSL, *SASL)
_PROTOCOL_NAME = "security.inter.broker.protocol"
_CONTROLLERS = ("CONTROLLER",)
"""The listeners of controllers if `controller.listener.names` is not set."""


class Listener(NamedTuple):
    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class ClientListener(NamedTuple):
    """A listener that the broker opens. `host` is empty for every interface, `port` 0 for a free one.

    `advertised` is the address that clients of this listener are told. Its host is empty, or its port 0, where the
    listener's own is used. None if `advertised.listeners` leaves this listener out.
    """

    name: str
    protocol: str
    host: str
    port: int
    advertised: Listener | None


class ListenerSettings(Protocol):
    @property
    def listeners(self) -> tuple[str, ...]: ...
    @property
    def advertised_listeners(self) -> tuple[str, ...] | None: ...
    @property
    def listener_security_protocol_map(self) -> str: ...
    @property
    def inter_broker_listener_name(self) -> str | None: ...
    @property
    def security_inter_broker_protocol(self) -> str: ...
    @property
    def controller_listener_names(self) -> tuple[str, ...] | None: ...
    @property
    def given(self) -> frozenset[str]: ...
    @property
    def zookeeper_connect(self) -> str | None: ...


def client_listeners(settings: ListenerSettings) -> tuple[ClientListener, ...]:
    """The listeners to open, in the order of `listeners`, at least one. Raises `ConfigError` for the first rule that
    the settings break."""
    protocols = _protocols(settings.listener_security_protocol_map)
    controllers = _controllers(settings)
    listeners = [one for one in _parsed(settings.listeners, "listeners") if one.name not in controllers]
    if not listeners:
        raise ConfigError("listeners has no listener for clients")
    for listener in listeners:
        _check_protocol(listener.name, protocols)
    _check_ports(listeners)
    advertised = _advertised(settings, listeners, controllers)
    _check_inter_broker(settings, advertised)
    return tuple(
        ClientListener(one.name, protocols[one.name], one.host, one.port, advertised.get(one.name)) for one in listeners
    )


def bound_host(listener: ClientListener, listeners: Iterable[ClientListener]) -> str | None:
    """The host that a listener binds, None for every interface. `[::]` is every interface too, as in Java, unless
    another listener has the same port for IPv4."""
    others = [one for one in listeners if one.name != listener.name and one.port == listener.port and one.port]
    return None if not listener.host or (listener.host == "::" and not others) else listener.host


def inter_broker_listener(settings: ListenerSettings) -> str:
    """The name of the listener that other brokers connect to: by default that of `security.inter.broker.protocol`."""
    name = (settings.inter_broker_listener_name or "").strip().upper()
    return name or settings.security_inter_broker_protocol


def listener_warnings(settings: ListenerSettings) -> list[str]:
    """One sentence about the listeners of `listeners` that are not opened, if any."""
    controllers = _controllers(settings)
    left_out = [one.name for one in _parsed(settings.listeners, "listeners") if one.name in controllers]
    return [f"listeners of Kafka's controllers are not opened: {', '.join(left_out)}"] if left_out else []


def names_of_listeners(settings: ListenerSettings) -> tuple[list[str], list[str]]:
    """The names of the listeners to open, and of those of Kafka's controllers."""
    controllers = _controllers(settings)
    names = [one.name for one in _parsed(settings.listeners, "listeners")]
    return [name for name in names if name not in controllers], sorted(controllers)


def _controllers(settings: ListenerSettings) -> frozenset[str]:
    names = settings.controller_listener_names
    return frozenset(name.upper() for name in (_CONTROLLERS if names is None else names))


def _parse(text: str, setting: str) -> Listener:
    match = _LISTENER.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{setting} must be a list of NAME://HOST:PORT, not {text.strip()!r}")
    if int(match[4]) > PORT_MAX:
        raise ConfigError(f"{setting} has the port {match[4]} in {text.strip()!r}: a port is 0 to {PORT_MAX}")
    return Listener(match[1].upper(), match[2] or match[3] or "", int(match[4]))


def _parsed(texts: Iterable[str], setting: str) -> list[Listener]:
    listeners: dict[str, Listener] = {}
    for text in texts:
        listener = _parse(text, setting)
        if listener.name in listeners:
            raise ConfigError(f"{setting} names the listener {listener.name} twice")
        listeners[listener.name] = listener
    return list(listeners.values())


def _protocols(text: str) -> dict[str, str]:
    """Listener name -> protocol. Raises `ConfigError`."""
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.partition(":")
        if not colon or protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(f"listener.security.protocol.map must be a list of NAME:PROTOCOL, not {pair!r}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _check_protocol(name: str, protocols: Mapping[str, str]) -> None:
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"listener.security.protocol.map has no protocol for the listener {name}; add {name}:PROTOCOL"
        )


def _check_ports(listeners: Iterable[Listener]) -> None:
    """Two listeners share a port only if one has an IPv4 address and the other an IPv6 address. Port 0 is a different
    free port each time."""
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        by_port.setdefault(listener.port, []).append(listener)
    by_port.pop(0, None)
    for port, sharing in by_port.items():
        families = sorted(_family(one.host) for one in sharing)
        if len(sharing) > 1 and families != [4, 6]:
            names = " and ".join(one.name for one in sharing)
            raise ConfigError(
                f"listeners gives port {port} to {names}; listeners may share a port only if one has an IPv4 address "
                "and the other an IPv6 address"
            )


def _family(host: str) -> int:
    """4 or 6 for an address of IPv4 or IPv6, 0 for a host name and for no host."""
    for number, family in ((4, socket.AF_INET), (6, socket.AF_INET6)):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return number
    return 0


def _advertised(
    settings: ListenerSettings, listeners: Iterable[Listener], controllers: frozenset[str]
) -> dict[str, Listener]:
    """Advertised addresses by name. Each belongs to a listener, but not every listener needs one."""
    opened = {one.name: one for one in listeners}
    if not settings.advertised_listeners:
        return opened
    advertised = {}
    for one in _parsed(settings.advertised_listeners, "advertised.listeners"):
        if one.name in controllers:
            continue
        if one.name not in opened:
            raise ConfigError(
                f"advertised.listeners names {one.name}, which is not among listeners ({', '.join(opened)})"
            )
        if one.host in ("0.0.0.0", "::"):
            raise ConfigError(f"advertised.listeners must name a host that clients can connect to, not {one.host}")
        advertised[one.name] = one
    return advertised


def _check_inter_broker(settings: ListenerSettings, advertised: Mapping[str, Listener]) -> None:
    if settings.inter_broker_listener_name and _PROTOCOL_NAME in settings.given:
        raise ConfigError(f"inter.broker.listener.name and {_PROTOCOL_NAME} are both set: give only one of them")
    name, names = inter_broker_listener(settings), ", ".join(advertised) or "none"
    if name in advertised:
        return
    if settings.inter_broker_listener_name or _PROTOCOL_NAME in settings.given:
        setting = "inter.broker.listener.name" if settings.inter_broker_listener_name else _PROTOCOL_NAME
        raise ConfigError(f"{setting} is {name}, which is not among the advertised listeners ({names})")
    raise ConfigError(
        f"inter.broker.listener.name must be set, because no advertised listener is called {PLAINTEXT} "
        f"(advertised: {names})"
    )


def unauthenticated(listener: ClientListener, client_auth: str) -> str | None:
    """A line about a listener that serves anybody who reaches it over a network; None if its clients authenticate, or
    if it listens on this machine only. `client_auth` is its `ssl.client.auth`."""
    if listener.protocol in SASL or (listener.protocol == SSL and client_auth == "required"):
        return None
    if listener.host == "localhost" or listener.host.startswith("127.") or listener.host == "::1":
        return None
    return (
        f"NO AUTHENTICATION on the listener {listener.name} ({listener.host or 'every interface'}:{listener.port}): "
        "every client that reaches it is served as User:ANONYMOUS. Give it SASL or ssl.client.auth=required, or let it "
        "listen on localhost"
    )
