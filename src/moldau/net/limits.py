"""A listener's limits, and the addresses to listen on for a host name."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moldau.rates import RateWindow

UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class ListenerLimits:
    """Limits of one listener besides those of its broker: `listener.name.NAME.max.connections` and
    `listener.name.NAME.max.connection.creation.rate`."""

    max_connections: int = UNLIMITED
    creation_rate: int = UNLIMITED


_NO_LIMITS = ListenerLimits()


@dataclass(frozen=True)
class Limits:
    """The limits of a server's listeners; the first fields are the broker settings of their names."""

    socket_request_max_bytes: int = 100 << 20
    socket_send_buffer_bytes: int = 256 << 10
    socket_receive_buffer_bytes: int = -1
    connections_max_idle_ms: int = 600_000
    queued_max_request_bytes: int = 256 << 20
    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    per_ip_overrides: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """`max_connections_per_ip` of some addresses."""
    connection_rate: int = UNLIMITED
    """`max.connection.creation.rate`."""
    of_listeners: Mapping[str, ListenerLimits] = field(default_factory=lambda: MappingProxyType({}))
    protected_listener: str | None = None
    """The listener for brokers, if it is one of several: its connections do not wait for `max_connections`."""
    window: RateWindow = RateWindow()
    """Over which the rates of new connections are measured."""
    room: int = UNLIMITED
    """The connections that the descriptors of the process suffice for; further ones are closed at once."""

    def of(self, listener: str) -> ListenerLimits:
        return self.of_listeners.get(listener, _NO_LIMITS)

    def of_host(self, host: str) -> int:
        """The maximum number of connections from that address."""
        return self.per_ip_overrides.get(host, self.max_connections_per_ip)

    @property
    def makes_wait(self) -> bool:
        """Whether a new connection may have to wait."""
        return min(self.max_connections, self.connection_rate) < UNLIMITED or bool(self.of_listeners)


def addresses(host: str) -> list[str]:
    """The addresses to listen on: for `localhost` and for an empty host (every interface), IPv4 and, if this machine
    has it, IPv6; any other host unchanged."""
    hosts = {"localhost": ["127.0.0.1", "::1"], "": ["0.0.0.0", "::"]}.get(host, [host])
    return hosts[:1] if len(hosts) > 1 and not has_ipv6() else hosts


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
