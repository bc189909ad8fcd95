"""The metadata store inside one broker process: a SQLite file in its data folder.

A commit is on the disk before it is answered (`synchronous=FULL`), so what was written survives SIGKILL and power
loss; a transaction that was cut off is undone by SQLite when the file is next opened. A commit is also moved from
SQLite's write-ahead log into the file itself before it is answered, because SQLite drops the rest of a damaged
write-ahead log without a word. Damage is looked for on opening, and in every node that is read (see
`embedded_format`).

Only one process uses the file, which the broker's folder lock ensures. It may have several sessions on it (see
`embedded_session`), and an ephemeral node has the number of its session in its row. Ephemeral nodes end with the
process: nodes that a dead process left are removed on opening.
"""

import itertools
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from moldau.errors import StorageError
from moldau.metadata_store.embedded_format import failure, is_shared, prepare
from moldau.metadata_store.embedded_tree import EmbeddedTree
from moldau.metadata_store.private import make_private
from moldau.metadata_store.store import (
    AskChildren,
    AskNodes,
    Delete,
    Node,
    NodeOperation,
    Question,
    Reading,
    SessionOver,
    T,
    Written,
    checked,
    result_of,
)
from moldau.notices import Notices

FILE_NAME = "metadata.sqlite"
IN_MEMORY = ":memory:"
_JOURNAL_MODE_AT, _WITHOUT_WAL = slice(18, 20), b"\1\1"
"""In the header of a SQLite file: versions of the format for writing and reading, 2 where it has a write-ahead log."""
OnCommit = Callable[[Sequence[NodeOperation]], None]
"""Called with what was done, from any thread, after each commit."""

notices = Notices(logging.getLogger(__name__))


class EmbeddedStore:
    """The file. Its calls block and may be made from any thread; they refuse and fail as those of `MetadataStore`.

    Opening raises `DamagedMetadata`, or `StorageError` if the file cannot be used. A store that is not durable
    survives SIGKILL, but no power loss: nothing is flushed.
    """

    def __init__(self, folder: Path, is_durable: bool = True):
        self._is_durable = is_durable
        self._open(folder / FILE_NAME, str(folder / FILE_NAME))

    @classmethod
    def in_memory(cls, data: bytes = b"", origin: Path = Path("memory")) -> "EmbeddedStore":
        """A store only in memory, with the content of a file, or empty. `origin` names it in errors."""
        store = cls.__new__(cls)
        store._is_durable = False
        store._open(origin, IN_MEMORY, data)
        return store

    def _open(self, path: Path, database: str, data: bytes = b"") -> None:
        self._path = path
        self._lock = threading.Lock()
        self._listeners: list[OnCommit] = []
        self._sessions: dict[int, OnCommit] = {}
        self._session_ids = itertools.count(1)
        try:
            if database != IN_MEMORY:
                make_private(path)
            self._db = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
            self._tree = EmbeddedTree(self._db, path)
            try:
                if data:
                    self._db.deserialize(data)
                self._prepare()
            except BaseException:
                self._db.close()
                raise
        except sqlite3.Error as error:
            raise failure(self._path, "use", error) from error
        except OSError as error:
            raise StorageError(f"cannot use the metadata in {path}: {error.strerror or error}") from error

    def _prepare(self) -> None:
        if is_shared(self._db):
            raise StorageError(f"{self._path} is the metadata of several brokers, not of one alone")
        prepare(self._db, self._path, self._is_durable)
        self._db.execute("DELETE FROM node WHERE ephemeral")
        self._settle()

    def _settle(self) -> None:
        """Move what was committed into the file itself. A failure loses nothing: the next commit tries again."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(FULL)")
        except sqlite3.Error as error:
            line = "the last change of the metadata is only in %s-wal: %s. Repair its disk or free space on it"
            notices.error(str(self._path), line, self._path, error)

    @classmethod
    def file_of(cls, operations: Sequence[NodeOperation]) -> bytes:
        """The content of a new file after these operations."""
        store = cls.in_memory()
        try:
            store.multi(operations)
            return store.as_file()
        finally:
            store.close()

    def as_file(self) -> bytes:
        """The content of a file with everything in the store now, ephemeral nodes included. Raises
        `StorageError`."""
        with self._lock:
            try:
                data = bytearray(self._db.serialize())
            except sqlite3.Error as error:
                raise failure(self._path, "read", error) from error
        data[_JOURNAL_MODE_AT] = _WITHOUT_WAL
        return bytes(data)

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return self._answer(AskNodes(paths))

    def read(self, reading: Reading[T]) -> T:
        """The result of the reading."""
        return result_of(reading, self._answer)

    def _answer(self, question: Question) -> list[Any]:
        with self._lock:
            try:
                return self._tree.answer(question)
            except sqlite3.Error as error:
                raise failure(self._path, "read", error) from error

    def children(self, path: str) -> list[str]:
        return self._answer(AskChildren(path))

    def multi(self, operations: Sequence[NodeOperation], session_id: int = 0) -> list[Written | None]:
        """All of them or none, for a session, or (0) for a tool without ephemeral nodes."""
        for operation in operations:
            checked(operation.path)
        with self._lock:
            if session_id and session_id not in self._sessions:
                raise SessionOver("the session is over")
            return self._do(operations, session_id)

    def _do(self, operations: Sequence[NodeOperation], session_id: int) -> list[Written | None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                results = self._tree.change(operations, session_id)
                self._db.execute("COMMIT")
                self._settle()
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise failure(self._path, "write", error) from error
        for listener in self._listeners:
            listener(operations)
        for other, told in self._sessions.items():
            if other != session_id:
                told(operations)
        return results

    def listen(self, listener: OnCommit) -> None:
        """Call `listener` after every commit from now on, until `close`."""
        with self._lock:
            self._listeners.append(listener)

    def begin_session(self, told: OnCommit) -> int:
        """A new session; `told` is called after each commit of the others."""
        with self._lock:
            session_id = next(self._session_ids)
            self._sessions[session_id] = told
            return session_id

    def end_session(self, session_id: int) -> None:
        """Remove the ephemeral nodes of a session. Raises `StorageError`; the session is over also then."""
        with self._lock:
            if self._sessions.pop(session_id, None) is None:
                return
            try:
                paths = self._tree.ephemeral(session_id)
            except sqlite3.Error as error:
                raise failure(self._path, "read", error) from error
            if paths:
                self._do([Delete(path) for path in paths], session_id)

    def close(self) -> None:
        """Remove the ephemeral nodes, and close the file. Raises `StorageError`; the file is closed also then."""
        with self._lock:
            self._listeners.clear()
            self._sessions.clear()
            try:
                try:
                    self._db.execute("DELETE FROM node WHERE ephemeral")
                finally:
                    self._db.close()
            except sqlite3.Error as error:
                raise failure(self._path, "close", error) from error

    def abandon(self) -> None:
        """Close the file as the end of the process would: what is ephemeral stays until it is opened again."""
        with self._lock:
            self._listeners.clear()
            self._sessions.clear()
            self._db.close()
