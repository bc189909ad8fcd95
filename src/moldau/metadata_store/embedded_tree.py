"""The tree of nodes in the tables of the embedded store: what is read, and what operations make of it.

It knows the rules of `MetadataStore`, but no transactions, locks or sessions: these are its callers'. Its functions
raise `sqlite3.Error`, and `DamagedMetadata` for a node that does not match its checksum.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from moldau.metadata_store.embedded_format import checksum, latest_zxid, matches, note_zxid, wrong_checksum
from moldau.metadata_store.store import (
    ANY_VERSION,
    AskNodes,
    BadVersion,
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NodeOperation,
    NoNode,
    NotEmpty,
    Question,
    Set,
    Written,
    checked,
    parent_of,
)

_COLUMNS = "SELECT data, version, ephemeral, czxid, checksum FROM node"
_Row = tuple[bytes, int, int, int, int]


class EmbeddedTree:
    """`path` is that of the file, for errors."""

    def __init__(self, db: sqlite3.Connection, path: Path):
        self._db = db
        self._path = path

    def answer(self, question: Question) -> list[Node | None] | list[str]:
        return self.nodes(question.paths) if isinstance(question, AskNodes) else self.children(question.path)

    def nodes(self, paths: Sequence[str]) -> list[Node | None]:
        """In the order of the paths; None for a node that does not exist."""
        nodes: list[Node | None] = []
        for path in paths:
            row = self._row(checked(path))
            if row is not None and not matches(row[4], checksum, path, row[0], row[1], row[3]):
                raise wrong_checksum(self._path, path)
            nodes.append(Node(*row[:4]) if row else None)
        return nodes

    def children(self, path: str) -> list[str]:
        """The last names of the node's children, sorted."""
        rows = self._db.execute("SELECT path FROM node WHERE parent = ? ORDER BY path", (checked(path),)).fetchall()
        return [name.rpartition("/")[2] for (name,) in rows]

    def change(self, operations: Sequence[NodeOperation], session_id: int) -> list[Written | None]:
        """Do these operations in the transaction that is open, as one change with a number of its own; `session_id` is
        0 for a tool without ephemeral nodes. Raises `StoreConflict`; then the transaction must be undone."""
        zxid = latest_zxid(self._db, self._path) + 1
        results = [self._apply(operation, session_id, zxid) for operation in operations]
        note_zxid(self._db, zxid)
        return results

    def ephemeral(self, session_id: int) -> list[str]:
        """The nodes of a session."""
        return [path for (path,) in self._db.execute("SELECT path FROM node WHERE ephemeral = ?", (session_id,))]

    def _row(self, path: str) -> _Row | None:
        row: _Row | None = self._db.execute(f"{_COLUMNS} WHERE path = ?", (path,)).fetchone()
        return row

    def _apply(self, operation: NodeOperation, session_id: int, zxid: int) -> Written | None:
        path = operation.path
        node = self._row(path)
        if isinstance(operation, Create):
            if node:
                raise NodeExists(path)
            parent = self._row(parent_of(path))
            if parent is None or parent[2]:
                raise NoNode(parent_of(path))
            data = operation.data
            if operation.ephemeral and not session_id:
                raise ValueError(f"{path} cannot be ephemeral without a session")
            row = (path, parent_of(path), data, operation.ephemeral * session_id, checksum(path, data, 0, zxid), zxid)
            self._db.execute("INSERT INTO node VALUES (?, ?, ?, 0, ?, ?, ?)", row)
            return Written(0, zxid)
        if node is None:
            raise NoNode(path)
        if operation.version not in (ANY_VERSION, node[1]):
            raise BadVersion(path)
        if isinstance(operation, Set):
            version, data, czxid = node[1] + 1, operation.data, node[3]
            change = (data, version, checksum(path, data, version, czxid), path)
            self._db.execute("UPDATE node SET data = ?, version = ?, checksum = ? WHERE path = ?", change)
            return Written(version, czxid)
        if isinstance(operation, Delete):
            if self._db.execute("SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)).fetchone():
                raise NotEmpty(path)
            self._db.execute("DELETE FROM node WHERE path = ?", (path,))
        return None


def places_of(operation: NodeOperation) -> tuple[str, ...]:
    """The nodes whose watchers have to look again after this operation."""
    if isinstance(operation, Check):
        return ()
    if isinstance(operation, Set):
        return (operation.path,)
    return operation.path, parent_of(operation.path)
