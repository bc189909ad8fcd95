"""Limits of listeners, and the addresses to listen on for a host name."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from moldau.config.connections_per_ip import connections_per_ip
from moldau.rates import RateWindow

if TYPE_CHECKING:  # a server of metrics has limits, and no broker
    from moldau.config import BrokerConfig

UNLIMITED = 2**31 - 1
SEND_BUFFER_BYTES, OF_THE_SYSTEM = 256 << 10, -1
"""A connection's socket buffer size if the setting leaves it open. Kafka's 100 KB halve the throughput of a large
Fetch, and keep the system from growing the receive buffer of a producer with large batches."""
QUEUED_BYTES = 256 << 20
"""The memory for incomplete requests if the setting is not above 0. Kafka's default is unlimited."""


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


def limits_of(config: "BrokerConfig", room: int) -> Limits:
    """The limits by the settings; connections are refused before the log runs out of file descriptors."""
    given = config.given
    queued = config.queued_max_request_bytes
    own = config.own_settings.items()
    return Limits(
        config.socket_request_max_bytes,
        config.socket_send_buffer_bytes if "socket.send.buffer.bytes" in given else SEND_BUFFER_BYTES,
        config.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in given else OF_THE_SYSTEM,
        config.connections_max_idle_ms,
        queued if queued > 0 else max(QUEUED_BYTES, config.socket_request_max_bytes),
        config.max_connections,
        config.max_connections_per_ip,
        connections_per_ip(config.max_connections_per_ip_overrides),
        config.max_connection_creation_rate,
        {name: one for name, values in own if (one := _of_listener(values)) != _NO_LIMITS},
        config.inter_broker_listener if len(config.client_listeners) > 1 else None,
        RateWindow(config.quota_window_num, config.quota_window_size_seconds * 1000),
        room,
    )


def _of_listener(own: Mapping[str, Any]) -> ListenerLimits:
    return ListenerLimits(own.get("max_connections", UNLIMITED), own.get("max_connection_creation_rate", UNLIMITED))


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
