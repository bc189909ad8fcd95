"""What the broker knows about a connection (`Session`) and about one request on it besides its message (`Call`)."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from moldau.names import NOBODY
from moldau.net.server import Peer
from moldau.requests.access import (
    ALL_OPERATIONS,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE_IN_CLUSTER,
    OPERATIONS,
    WRITE_TOPIC,
    ResourceType,
    Right,
)

ANONYMOUS = f"User:{NOBODY}"
"""The principal of a connection that has not authenticated, as Kafka names it."""
UNKNOWN = "unknown"
"""Name and version of the client software until the client has sent them, as Kafka names them (KIP-511)."""


RIGHTS_OF_BROKERS = (CLUSTER_ACTION, CREATE_IN_CLUSTER, WRITE_TOPIC)
"""Of a broker of the same cluster: it asks the controller for internal topics, and sends what clients have pushed to
the leader of a topic of theirs (`client.metrics.topic`)."""


_NOTHING: Final[Container[str]] = frozenset()


class Introduction(NamedTuple):
    """The broker that has dialled a connection, in one of its lives."""

    broker_id: int
    broker_epoch: int


class Authorizer(Protocol):
    """Decides for all connections of a broker. It is asked on the loop and for each resource, so it answers from
    memory."""

    def allows(self, call: "Call", right: Right, name: str, logged: bool) -> bool:
        """Whether the client of this call has this right on the resource of that name. `logged`: a denial refuses
        something that the client asked for, and belongs into the audit log; otherwise its access is only probed, as
        for a list that leaves out what it may not see."""

    def allows_any(self, call: "Call", right: Right) -> bool:
        """Whether the client has this right on any resource of its type, existing or not."""


@dataclass(slots=True, eq=False)
class Session:
    """The state of one connection, for its lifetime.

    `listener` is the name of the listener that accepted it. `client_id` is the one of its latest request. A client
    sends the name and version of its software with ApiVersions, from version 3 on. A broker of the same cluster has an
    `introduction`, once it has answered the `challenge` that this broker sent last; the requests that it forwards have
    sessions of their own, with the principal and address of the client. `sasl`: how far a connection of a listener with
    SASL has authenticated (`authentication`). Without an `authorizer` clients may do everything.
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
    sasl: object | None = None
    authorizer: Authorizer | None = None
    use: Any = None
    """What the accounting of the gate remembers about the client."""
    writable: Container[str] = _NOTHING
    """Topics to which the principal may write, as the authorizer has decided; it takes them back when rights change."""

    def become(self, principal: str) -> None:
        """The client has authenticated. What was decided about another principal is forgotten."""
        self.principal, self.use, self.writable = principal, None, _NOTHING

    def become_broker(self, introduction: Introduction) -> None:
        """The client has proved that it is this broker. What is remembered of it as of another client is forgotten."""
        self.introduction, self.use = introduction, None


class Call(NamedTuple):
    """One request: who sent it, its API key, its version, the id that its reply carries, and the bytes of its frame."""

    session: Session
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    size: int = 0

    @property
    def client_host(self) -> str:
        """The peer's address as text."""
        return self.session.peer.host

    def may(self, right: Right, name: str = CLUSTER_NAME, logged: bool = True) -> bool:
        """Whether the client has this right on the resource of that name. `logged` is false if access is only probed:
        a denial refuses nothing that the client asked for. A broker of the same cluster has the rights of one by what
        it has proved, whoever its principal is."""
        session = self.session
        if session.authorizer is None or (session.introduction is not None and right in RIGHTS_OF_BROKERS):
            return True
        return session.authorizer.allows(self, right, name, logged)

    def may_any(self, right: Right) -> bool:
        """Whether the client has this right on any resource of its type."""
        authorizer = self.session.authorizer
        return authorizer is None or authorizer.allows_any(self, right)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """The operations that the client may do on that resource, as bits."""
        if self.session.authorizer is None:
            return ALL_OPERATIONS[resource_type]
        return sum(
            1 << operation
            for operation in OPERATIONS[resource_type]
            if self.may(Right(resource_type, operation), name, logged=False)
        )
