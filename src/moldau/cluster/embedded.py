"""The metadata store inside one broker process: a SQLite file in its data folder.

A commit is on the disk before it is answered (`synchronous=FULL`), so what was written survives SIGKILL and power
loss; a transaction that was cut off is undone by SQLite when the file is next opened. One process holds the file: the
broker's folder lock sees to that. Ephemeral nodes end with the process: those that a dead one left are removed on
opening.
"""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

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
from moldau.errors import StorageError

FILE_NAME = "metadata.sqlite"
_FORMAT = 1
_SCHEMA = """
CREATE TABLE node (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
    ephemeral INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX child ON node (parent, path);
INSERT INTO node VALUES ('/', '', x'', 0, 0);
"""


class EmbeddedStore:
    """See `MetadataStore`. Opening blocks; raises `StorageError` if the file cannot be used."""

    def __init__(self, folder: Path):
        self._path = folder / FILE_NAME
        self._lock = threading.Lock()
        self._watchers: list[Watcher] = []
        try:
            self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._prepare()
        except sqlite3.Error as error:
            raise StorageError(f"cannot use the metadata in {self._path}: {error}") from error

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found == 0:
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version={_FORMAT}; COMMIT;")
        elif found != _FORMAT:
            raise StorageError(f"{self._path} was written by another version of this program (format {found})")
        self._db.execute("DELETE FROM node WHERE ephemeral")

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        found: list[Node | None] = []
        with self._lock:
            for path in paths:
                row = self._ask("SELECT data, version, ephemeral FROM node WHERE path = ?", checked(path))
                found.append(Node(row[0], row[1], bool(row[2])) if row else None)
        return found

    def children(self, path: str) -> list[str]:
        with self._lock:
            try:
                rows = self._db.execute(
                    "SELECT path FROM node WHERE parent = ? ORDER BY path", (checked(path),)
                ).fetchall()
            except sqlite3.Error as error:
                raise StorageError(f"cannot read the metadata in {self._path}: {error}") from error
        return [name.rpartition("/")[2] for (name,) in rows]

    def multi(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            checked(operation.path)
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    for operation in operations:
                        self._apply(operation)
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StorageError(f"cannot write the metadata in {self._path}: {error}") from error
            for operation in operations:
                if not isinstance(operation, Check):
                    for watcher in self._watchers:
                        watcher(operation.path)

    def watch(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.append(watcher)

    def close(self) -> None:
        with self._lock:
            self._watchers.clear()
            try:
                self._db.execute("DELETE FROM node WHERE ephemeral")
                self._db.close()
            except sqlite3.Error as error:
                raise StorageError(f"cannot close the metadata in {self._path}: {error}") from error

    def _ask(self, question: str, path: str) -> tuple[bytes, int, int] | None:
        try:
            row: tuple[bytes, int, int] | None = self._db.execute(question, (path,)).fetchone()
        except sqlite3.Error as error:
            raise StorageError(f"cannot read the metadata in {self._path}: {error}") from error
        return row

    def _apply(self, operation: Operation) -> None:
        path = operation.path
        node = self._ask("SELECT data, version, ephemeral FROM node WHERE path = ?", path)
        if isinstance(operation, Create):
            if node:
                raise NodeExists(path)
            parent = self._ask("SELECT data, version, ephemeral FROM node WHERE path = ?", parent_of(path))
            if parent is None or parent[2]:
                raise NoNode(parent_of(path))
            row = (path, parent_of(path), operation.data, operation.ephemeral)
            self._db.execute("INSERT INTO node VALUES (?, ?, ?, 0, ?)", row)
            return
        if node is None:
            raise NoNode(path)
        if operation.version not in (ANY_VERSION, node[1]):
            raise BadVersion(path)
        if isinstance(operation, Set):
            self._db.execute("UPDATE node SET data = ?, version = version + 1 WHERE path = ?", (operation.data, path))
        elif isinstance(operation, Delete):
            if self._ask("SELECT data, version, ephemeral FROM node WHERE parent = ? LIMIT 1", path):
                raise NotEmpty(path)
            self._db.execute("DELETE FROM node WHERE path = ?", (path,))
