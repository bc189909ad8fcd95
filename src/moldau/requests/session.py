"""What the broker knows about a connection (`Session`) and about one request on it besides its message (`Call`)."""

from dataclasses import dataclass
from typing import NamedTuple

from moldau.net.server import Peer

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection that has not authenticated, as Kafka names it."""
UNKNOWN = "unknown"
"""Name and version of the client software until the client has sent them, as Kafka names them (KIP-511)."""


class Introduction(NamedTuple):
    """The broker that has dialled a connection, in one of its lives."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True, eq=False)
class Session:
    """The state of one connection, for its lifetime.

    `listener` is the name of the listener that accepted it. `client_id` is the one of its latest request. A client
    sends the name and version of its software with ApiVersions, from version 3 on. A broker of the same cluster has an
    `introduction`, once it has answered the `challenge` that this broker sent last; the requests that it forwards have
    sessions of their own, with the principal and address of the client.
    """

    listener: str
    peer: Peer
    principal: str = ANONYMOUS
    client_id: str | None = None
    software_name: str = UNKNOWN
    software_version: str = UNKNOWN
    introduction: Introduction | None = None
    challenge: bytes = b""
    is_forwarded: bool = False


class Call(NamedTuple):
    """One request: who sent it, its API key, its version, and the id that its reply carries."""

    session: Session
    key: int
    version: int
    correlation_id: int
    client_id: str | None

    @property
    def client_host(self) -> str:
        """The peer's address as text."""
        return self.session.peer.host
