"""How a server in the broker's process reaches the broker."""

from collections.abc import Mapping

from moldau.config.listeners import ClientListener


def address_of(listener: ClientListener, ports: Mapping[str, int]) -> str:
    """`HOST:PORT` of a listener, from this machine; `ports` are those of the listeners that are open."""
    host = listener.host or "localhost"
    reached = "localhost" if host in ("0.0.0.0", "::") else host
    return f"{f'[{reached}]' if ':' in reached else reached}:{ports[listener.name]}"
