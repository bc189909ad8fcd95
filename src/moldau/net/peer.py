"""The address at the other end of a connection."""

from typing import NamedTuple


class Peer(NamedTuple):
    """Host and port, as the socket names them."""

    host: str
    port: int
    principal: str | None = None
    """What the peer's TLS certificate proves, if anything."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
