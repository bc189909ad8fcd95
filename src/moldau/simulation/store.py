"""A model of the metadata store: a tree in memory that outlives its brokers and never loses an acknowledged change.

It replaces SQLite and ZooKeeper. Each broker has a `StoreSession`; when it ends, its ephemeral nodes are deleted.
"""

from collections.abc import Sequence

from moldau.cluster.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Set,
    Watcher,
    checked,
    parent_of,
)


class ModelStore:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", 0)}
        self.sessions: dict[StoreSession, None] = {}
        self.owners: dict[str, StoreSession] = {}
        """The sessions of ephemeral nodes, by path."""

    def session(self) -> "StoreSession":
        session = StoreSession(self)
        self.sessions[session] = None
        return session

    def tell(self, paths: Sequence[str]) -> None:
        """Tell the watchers of every session that these nodes have changed."""
        for session in list(self.sessions):
            session.tell(paths)

    def apply(self, operation: Operation) -> None:
        path, nodes = checked(operation.path), self.nodes
        node = nodes.get(path)
        if isinstance(operation, Create):
            if node is not None:
                raise NodeExists(path)
            parent = nodes.get(parent_of(path))
            if parent is None or parent.ephemeral:
                raise NoNode(parent_of(path))
            nodes[path] = Node(operation.data, 0, operation.ephemeral)
            return
        if node is None:
            raise NoNode(path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersion(path)
        if isinstance(operation, Set):
            nodes[path] = Node(operation.data, node.version + 1, node.ephemeral)
        elif isinstance(operation, Delete):
            if self.children(path):
                raise NotEmpty(path)
            del nodes[path]

    def children(self, path: str) -> list[str]:
        below = path.rstrip("/") + "/"
        return sorted(
            p[len(below) :] for p in self.nodes if p.startswith(below) and p != "/" and "/" not in p[len(below) :]
        )


class StoreSession:
    """Implements `cluster.store.MetadataStore` for one broker."""

    def __init__(self, store: ModelStore):
        self._store = store
        self._watchers: list[Watcher] = []

    def get(self, path: str) -> Node | None:
        return self._store.nodes.get(checked(path))

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [self.get(path) for path in paths]

    def children(self, path: str) -> list[str]:
        return self._store.children(checked(path))

    def multi(self, operations: Sequence[Operation]) -> None:
        before = dict(self._store.nodes)
        try:
            for operation in operations:
                self._store.apply(operation)
        except BaseException:
            self._store.nodes = before
            raise
        for each in operations:
            if isinstance(each, Create) and each.ephemeral:
                self._store.owners[each.path] = self
            elif isinstance(each, Delete):
                self._store.owners.pop(each.path, None)
        self._store.tell([each.path for each in operations if not isinstance(each, Check)])

    def tell(self, paths: Sequence[str]) -> None:
        for path in paths:
            for watcher in self._watchers:
                watcher(path)

    def watch(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def close(self) -> None:
        self._watchers.clear()
        self._store.sessions.pop(self, None)
        own = [path for path, owner in self._store.owners.items() if owner is self]
        for path in own:
            del self._store.nodes[path], self._store.owners[path]
        self._store.tell(own)
