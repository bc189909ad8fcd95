"""A listener's limits, and the addresses to listen on for a host name."""

import socket
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of one listener; each field is the broker setting of that name."""

    socket_request_max_bytes: int = 100 << 20
    socket_send_buffer_bytes: int = 256 << 10
    socket_receive_buffer_bytes: int = -1
    connections_max_idle_ms: int = 600_000
    queued_max_request_bytes: int = 256 << 20
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1


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
