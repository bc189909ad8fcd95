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

from moldau.cluster.embedded_format import (
    DamagedMetadata,
    checksum,
    latest_zxid,
    matches,
    note_zxid,
    prepare,
    wrong_checksum,
)
from moldau.cluster.store import (
    ANY_VERSION,
    AskNodes,
    BadVersion,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Question,
    Reading,
    SessionOver,
    Set,
    T,
    Written,
    checked,
    parent_of,
    result_of,
)
from moldau.errors import StorageError
from moldau.notices import Notices

FILE_NAME = "metadata.sqlite"
_JOURNAL_MODE_AT, _WITHOUT_WAL = slice(18, 20), b"\1\1"
"""In the header of a SQLite file: versions of the format for writing and reading, 2 where it has a write-ahead log."""
_COLUMNS = "SELECT data, version, ephemeral, czxid, checksum FROM node"
_Row = tuple[bytes, int, int, int, int]
OnCommit = Callable[[Sequence[Operation]], None]
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
        store._open(origin, ":memory:", data)
        return store

    def _open(self, path: Path, database: str, data: bytes = b"") -> None:
        self._path = path
        self._lock = threading.Lock()
        self._listeners: list[OnCommit] = []
        self._sessions: dict[int, OnCommit] = {}
        self._session_ids = itertools.count(1)
        try:
            self._db = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
            try:
                if data:
                    self._db.deserialize(data)
                self._prepare()
            except BaseException:
                self._db.close()
                raise
        except sqlite3.Error as error:
            raise self._failure("use", error) from error

    def _prepare(self) -> None:
        prepare(self._db, self._path, self._is_durable)
        self._db.execute("DELETE FROM node WHERE ephemeral")
        self._settle()

    def _failure(self, act: str, error: sqlite3.Error) -> StorageError:
        """SQLite raises `DatabaseError` itself if the file is damaged, and a subclass for any other failure."""
        sentence = f"cannot {act} the metadata in {self._path}: {error}"
        return DamagedMetadata(sentence) if type(error) is sqlite3.DatabaseError else StorageError(sentence)

    def _settle(self) -> None:
        """Move what was committed into the file itself. A failure loses nothing: the next commit tries again."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(FULL)")
        except sqlite3.Error as error:
            line = "the last change of the metadata is only in %s-wal: %s. Repair its disk or free space on it"
            notices.error(str(self._path), line, self._path, error)

    @classmethod
    def file_of(cls, operations: Sequence[Operation]) -> bytes:
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
                raise self._failure("read", error) from error
        data[_JOURNAL_MODE_AT] = _WITHOUT_WAL
        return bytes(data)

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        nodes: list[Node | None] = []
        with self._lock:
            for path in paths:
                row = self._ask(f"{_COLUMNS} WHERE path = ?", checked(path))
                if row is not None and not matches(row[4], checksum, path, row[0], row[1], row[3]):
                    raise wrong_checksum(self._path, path)
                nodes.append(Node(*row[:4]) if row else None)
        return nodes

    def read(self, reading: Reading[T]) -> T:
        """The result of the reading."""
        return result_of(reading, self._answer)

    def _answer(self, question: Question) -> list[Node | None] | list[str]:
        return self.get_many(question.paths) if isinstance(question, AskNodes) else self.children(question.path)

    def children(self, path: str) -> list[str]:
        with self._lock:
            try:
                rows = self._db.execute(
                    "SELECT path FROM node WHERE parent = ? ORDER BY path", (checked(path),)
                ).fetchall()
            except sqlite3.Error as error:
                raise self._failure("read", error) from error
        return [name.rpartition("/")[2] for (name,) in rows]

    def multi(self, operations: Sequence[Operation], session_id: int = 0) -> list[Written | None]:
        """All of them or none, for a session, or (0) for a tool without ephemeral nodes."""
        for operation in operations:
            checked(operation.path)
        with self._lock:
            if session_id and session_id not in self._sessions:
                raise SessionOver("the session is over")
            return self._do(operations, session_id)

    def _do(self, operations: Sequence[Operation], session_id: int) -> list[Written | None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                zxid = latest_zxid(self._db, self._path) + 1
                results = [self._apply(operation, session_id, zxid) for operation in operations]
                note_zxid(self._db, zxid)
                self._db.execute("COMMIT")
                self._settle()
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failure("write", error) from error
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
                rows = self._db.execute("SELECT path FROM node WHERE ephemeral = ?", (session_id,)).fetchall()
            except sqlite3.Error as error:
                raise self._failure("read", error) from error
            if rows:
                self._do([Delete(path) for (path,) in rows], session_id)

    def close(self) -> None:
        with self._lock:
            self._listeners.clear()
            self._sessions.clear()
            try:
                self._db.execute("DELETE FROM node WHERE ephemeral")
                self._db.close()
            except sqlite3.Error as error:
                raise self._failure("close", error) from error

    def abandon(self) -> None:
        """Close the file as the end of the process would: what is ephemeral stays until it is opened again."""
        with self._lock:
            self._listeners.clear()
            self._sessions.clear()
            self._db.close()

    def _ask(self, question: str, path: str) -> _Row | None:
        try:
            row: _Row | None = self._db.execute(question, (path,)).fetchone()
        except sqlite3.Error as error:
            raise self._failure("read", error) from error
        return row

    def _apply(self, operation: Operation, session_id: int, zxid: int) -> Written | None:
        path = operation.path
        node = self._ask(f"{_COLUMNS} WHERE path = ?", path)
        if isinstance(operation, Create):
            if node:
                raise NodeExists(path)
            parent = self._ask(f"{_COLUMNS} WHERE path = ?", parent_of(path))
            if parent is None or parent[2]:
                raise NoNode(parent_of(path))
            data = operation.data
            if operation.ephemeral and not session_id:
                raise ValueError(f"{path} is to be ephemeral, and belongs to no session")
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
            if self._ask(f"{_COLUMNS} WHERE parent = ? LIMIT 1", path):
                raise NotEmpty(path)
            self._db.execute("DELETE FROM node WHERE path = ?", (path,))
        return None
