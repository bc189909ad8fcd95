"""ZooKeeper's answers, as kazoo has them, and what they mean for a store: nodes, conflicts and refusals."""

from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
)
from kazoo.protocol.states import ZnodeStat

from moldau.errors import StorageError
from moldau.metadata_store.store import (
    BadVersion,
    Create,
    Node,
    NodeExists,
    NodeOperation,
    NoNode,
    NotEmpty,
    StoreConflict,
    parent_of,
)

LOST = (AuthFailedError, ConnectionLoss, ConnectionClosedError, SessionExpiredError)
"""Nobody knows whether the server got what was sent: the connection was lost before its answer."""


def found_in(answer: Any) -> Any:
    """The answer, None for a node that does not exist. Raises `StorageError`."""
    if isinstance(answer, BaseException) and not isinstance(answer, NoNodeError):
        raise StorageError(f"ZooKeeper refuses a question: {answer!r}")
    return None if isinstance(answer, NoNodeError) else answer


def node_of(data: bytes, stat: ZnodeStat) -> Node:
    """The node as the store hands it out."""
    return Node(data, stat.version, stat.ephemeralOwner, stat.czxid)


def refusal_of(operation: NodeOperation, error: KazooException) -> StoreConflict | StorageError:
    """What to raise for a write that ZooKeeper refuses."""
    above = parent_of(operation.path)
    match error:
        case NoChildrenForEphemeralsError():
            return NoNode(above)
        case NoNodeError():
            return NoNode(above if isinstance(operation, Create) else operation.path)
        case NodeExistsError():
            return NodeExists(operation.path)
        case BadVersionError():
            return BadVersion(operation.path)
        case NotEmptyError():
            return NotEmpty(operation.path)
    return StorageError(f"ZooKeeper refuses a write of {operation.path}: {error!r}")
