"""The interface to the store of the cluster's metadata: ZooKeeper's data model, and nothing that only one store has.

A tree of nodes named by absolute paths (`/brokers/topics/a`). A node has data (bytes) and a version that starts at 0
and grows by one with every `set`; a node is created below an existing parent, and deleted only when it has no
children. An *ephemeral* node goes when the session that created it ends. `multi` does all of its operations or none.
A watcher is called with the path of every node that any session created, set or deleted, afterwards and in order,
from any thread.

Calls block and may be made from any thread; code on an event loop makes them in an executor. A refusal is a
`StoreConflict` and changed nothing; a store that cannot answer raises `StorageError`. Source: ZooKeeper Programmer's
Guide.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from moldau.errors import MoldauError

ANY_VERSION = -1


class Node(NamedTuple):
    data: bytes
    version: int
    ephemeral: bool = False


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


Operation: TypeAlias = Create | Set | Delete | Check
Watcher: TypeAlias = Callable[[str], None]


class StoreConflict(MoldauError):
    """The store is not as the operation needs it; `path` is the node in the way."""

    def __init__(self, path: str):
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path


class NoNode(StoreConflict): ...


class NodeExists(StoreConflict): ...


class BadVersion(StoreConflict): ...


class NotEmpty(StoreConflict): ...


class MetadataStore(Protocol):
    def get(self, path: str) -> Node | None:
        """The node, or None if it is not there."""

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """As `get`, for many at the cost of one question."""

    def children(self, path: str) -> list[str]:
        """The last names of the node's children, sorted; none if it is not there."""

    def multi(self, operations: Sequence[Operation]) -> None:
        """All of them in order, each seeing the ones before, or the refusal of the first that cannot be."""

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of every change from now on, until `close`."""

    def close(self) -> None:
        """End the session: its ephemeral nodes go."""


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def checked(path: str) -> str:
    """The path, if it can be one. An invalid path is a mistake of ours, never something a client can cause."""
    if path != "/" and (not path.startswith("/") or path.endswith("/") or "//" in path or "\0" in path):
        raise ValueError(f"{path!r} is not the path of a node")
    return path
