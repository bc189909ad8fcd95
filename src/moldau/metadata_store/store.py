"""The interface to the store of the cluster's metadata: ZooKeeper's data model, and nothing that only one store has.

A tree of nodes named by absolute paths (`/brokers/topics/a`). A node has data (bytes) and a version that starts at 0
and grows by one with every `set`; a node is created below an existing parent, and deleted only when it has no
children. An *ephemeral* node goes when the session that created it ends. `multi` does all of its operations or none:
it is one change, and every change has a number, the *zxid*, above those of all changes before it.

One `MetadataStore` object is one session. When the session is over, every call raises `SessionOver`, and the owner of
the object opens another one: nothing goes on by itself in a new session.

Reads are generators (`Reading`): they yield questions and are sent the answers, so they neither wait nor know how the
store is reached, and a store can answer all questions of a reading in one thread. Source: ZooKeeper Programmer's Guide.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from moldau.errors import MoldauError, StorageError

ANY_VERSION = -1
T = TypeVar("T")


class Node(NamedTuple):
    data: bytes
    version: int
    owner: int = 0
    """The session that an ephemeral node belongs to; 0 for a lasting node."""
    czxid: int = 0
    """The zxid of the change that created the node."""


class Written(NamedTuple):
    """What an operation made of the node that it created or set."""

    version: int
    czxid: int


class Create(NamedTuple):
    """Refused with `NodeExists` if the node exists, `NoNode` if its parent does not exist or is ephemeral."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


class Set(NamedTuple):
    """Refused with `NoNode`, or `BadVersion` if the node is no longer at `version`."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Refused with `NoNode`, `BadVersion`, or `NotEmpty` if it has children."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing; refused as `Set` would be."""

    path: str
    version: int = ANY_VERSION


NodeOperation: TypeAlias = Create | Set | Delete | Check


class AskNodes(NamedTuple):
    """Answered with a `Node` for each path, or None where there is none."""

    paths: Sequence[str]


class AskChildren(NamedTuple):
    """Answered with the last names of the node's children, sorted; none if the node does not exist."""

    path: str


Question: TypeAlias = AskNodes | AskChildren
Reading: TypeAlias = Generator[Question, Any, T]


class StoreConflict(MoldauError):
    """The store is not as the operation needs it; `path` is the node in the way."""

    def __init__(self, path: str):
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path


class NoNode(StoreConflict): ...


class NodeExists(StoreConflict): ...


class BadVersion(StoreConflict): ...


class NotEmpty(StoreConflict): ...


class SessionOver(StorageError):
    """The session has ended: its ephemeral nodes are gone, or about to go, and no call succeeds any more."""


class OutcomeUnknown(StorageError):
    """The answer to a write was lost: it was done as a whole or not at all, and only reading can tell."""


class MetadataStore(Protocol):
    """One session. Belongs to the event loop it was opened on.

    A refusal is a `StoreConflict` and changed nothing. A store that cannot answer raises `StorageError`; then nothing
    was changed, except after `OutcomeUnknown`.
    """

    @property
    def is_bounded(self) -> bool:
        """Whether `multi` takes no more than ZooKeeper does: larger changes need several steps (see `steps`)."""

    @property
    def timeout_s(self) -> float:
        """How long the session lives after its last sign of life: what was asked for, or less if the store grants less.
        Infinite for a session that ends only with its process."""

    @property
    def session_id(self) -> int:
        """The `owner` of this session's ephemeral nodes; above 0."""

    async def read(self, reading: Reading[T]) -> T:
        """The result of the reading. Its questions are answered one after another, and see at least every change that
        this session has made, or was told of."""

    async def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        """All of them in order, each seeing the ones before, or the refusal of the first that cannot be done. The
        result has an element for each operation, None for a `Delete` or `Check`."""

    async def sync(self) -> None:
        """Wait until this session sees every change that was answered to any session before this call. Only the leader
        of a store with several servers can answer, so an answer also shows that the session was not over when the
        question was sent."""

    async def watch(self, path: str, look: Callable[[], None]) -> None:
        """Call `look` on the loop after another session has created, changed or deleted the node or one of its
        children, or when this session is over: something may be different. Several changes may be one call, and a
        call may have no change, for example after the connection was lost for a while."""

    def unwatch(self, path: str) -> None:
        """Stop calling those that watch this node."""

    async def close(self) -> None:
        """End the session: its ephemeral nodes go. A session that is over already is not an error."""


def node_at(path: str) -> Reading[Node | None]:
    """The node, or None if it does not exist."""
    answer: list[Node | None] = yield AskNodes([path])
    return answer[0]


def nodes_at(paths: Sequence[str]) -> Reading[list[Node | None]]:
    """As `node_at`, for many at the cost of one question."""
    return (yield AskNodes(paths)) if paths else []


def children_of(path: str) -> Reading[list[str]]:
    """The last names of the node's children, sorted; none if the node does not exist."""
    return (yield AskChildren(path))  # type: ignore[no-any-return]


def result_of(reading: Reading[T], answer: Callable[[Question], Any]) -> T:
    """Run a reading to its end with a function that answers its questions."""
    answered = None
    while True:
        try:
            question = reading.send(answered)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        answered = answer(question)


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def checked(path: str) -> str:
    """The path, if it can be one. An invalid path is a mistake of ours, never something a client can cause."""
    if path != "/" and (not path.startswith("/") or path.endswith("/") or "//" in path or "\0" in path):
        raise ValueError(f"{path!r} is not the path of a node")
    return path


OPERATIONS_BYTES_MAX = 1_000_000
"""ZooKeeper takes messages of up to 1 MiB, and drops the connection when one is larger."""
_OPERATION_BYTES = 64
"""More than what an operation takes besides its path and data, its ACL included."""


def size_of(operation: NodeOperation) -> int:
    """What the operation takes of a message to ZooKeeper, in bytes; never too little."""
    data = operation.data if isinstance(operation, Create | Set) else b""
    return _OPERATION_BYTES + len(operation.path.encode()) + len(data)


def check_size(operations: Sequence[NodeOperation]) -> None:
    """Raise `StorageError` if ZooKeeper would not take these operations in one step."""
    size = sum(map(size_of, operations))
    if size > OPERATIONS_BYTES_MAX:
        raise StorageError(f"a change of {size:,} bytes is larger than ZooKeeper takes in one step (1 MiB)")
