"""The metadata file of a cluster whose brokers are processes of one machine: one connection to it, which is a session.

    session  one row for each session: its number, which is that of the change that began it
    change   which nodes were changed by the latest changes, and by which session: other processes call their watchers

These tables are added to those of a broker alone (see `embedded_format`). A session is over when its row is gone: with
its process, which other processes find out by its lock (see `session_locks`), or by its own `end`. Every write checks
its session's row in its own transaction, so a process that was stopped for too long changes nothing afterwards.

Calls block, for at most the session time-out while other processes write. `look` is called again and again.
"""

import logging
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from moldau.errors import StorageError
from moldau.metadata_store.embedded_format import failure, is_shared, latest_zxid, note_zxid, prepare
from moldau.metadata_store.embedded_tree import EmbeddedTree, places_of
from moldau.metadata_store.lock_holders import stopped_writer
from moldau.metadata_store.private import make_private
from moldau.metadata_store.session_locks import BEATS, LatestChange, OtherSession, SessionLock, lock_path
from moldau.metadata_store.store import (
    Delete,
    NodeOperation,
    OutcomeUnknown,
    Question,
    Reading,
    SessionOver,
    T,
    Written,
    checked,
    result_of,
)
from moldau.monotonic import monotonic_s
from moldau.notices import Notices

CHANGES_KEPT = 1000
"""A process that is further behind looks at everything that it watches."""
PLACES_MAX = 100
"""A change of more nodes is kept as one of everything."""
EVERYTHING = ""
"""The path of such a change."""
BUSY_S = 0.05
"""How long SQLite itself waits for another process, with this process' other calls waiting behind it."""
PAUSE_S = 0.002
_TABLES = (
    "CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY)",
    """CREATE TABLE IF NOT EXISTS change (
        zxid INTEGER NOT NULL, path TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (zxid, path)
    ) WITHOUT ROWID""",
)
R = TypeVar("R")

logger = logging.getLogger(__name__)
notices = Notices(logger)


class LockedMetadata(StorageError):
    """Other processes kept this one from using the file, for all the time that it waited."""


class SharedFile:
    """Opening begins the session. Calls may be made from any thread; they refuse and fail as those of `MetadataStore`.
    A file that does not exist is made."""

    def __init__(self, path: Path, timeout_s: float):
        """Raises `StorageError`, also `DamagedMetadata`."""
        self.session_id = 0
        self._path = path
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._others: dict[int, OtherSession] = {}
        self._looked_s = self._beaten_s = monotonic_s()
        self._data_version = -1
        self._noticed: bytes | None = None
        self._is_over = self._is_closed = False
        self._own: SessionLock | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._latest = LatestChange(path)
            try:
                with self._latest.alone(timeout_s):
                    self._open()
            except BaseException:
                self._latest.close()
                raise
        except TimeoutError:
            raise self._busy("open") from None
        except OSError as error:
            raise StorageError(f"cannot use the metadata in {path}: {error.strerror or error}") from error

    def _open(self) -> None:
        make_private(self._path)
        try:
            self._db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise failure(self._path, "use", error) from error
        try:
            self._patiently("use", self._prepare)
            self._tree = EmbeddedTree(self._db, self._path)
            self._patiently("use", self._find_others)
            self._end_others([one for one, other in self._others.items() if other.is_over(0, self.timeout_s)])
            self.session_id = self._patiently("use", lambda: self._in_transaction(self._begin_session))
        except BaseException:
            self._close(remove=True)
            raise

    def _prepare(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version and not is_shared(self._db):
            raise StorageError(f"{self._path} is not the metadata of several brokers: name another file")
        if not version:  # before the rest, so that a start that is cut off here can be repeated
            for table in _TABLES:
                self._db.execute(table)
        prepare(self._db, self._path, is_durable=True)

    def _begin_session(self) -> int:
        session_id = latest_zxid(self._db, self._path) + 1
        if self._own is not None:  # this is tried again
            self._own.release()
        self._own = SessionLock(self._path, session_id)
        self._db.execute("INSERT INTO session VALUES (?)", (session_id,))
        note_zxid(self._db, session_id)
        self._seen_zxid = session_id
        return session_id

    # ---------------------------------------------------------------------------------------------------- data

    def read(self, reading: Reading[T]) -> T:
        """The result of the reading."""
        self._patiently("read", self._check_session)
        return result_of(reading, self._answer)

    def _answer(self, question: Question) -> list[Any]:
        return self._patiently("read", lambda: self._tree.answer(question))

    def sync(self) -> None:
        """As `MetadataStore`; the other processes count the time-out of this session from now on."""

        def show() -> None:
            assert self._own is not None
            self._own.beat()
            self._check_session()

        try:
            self._patiently("read", show)
        except OSError as error:
            raise self._unusable(error) from error

    def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        for operation in operations:
            checked(operation.path)

        def change() -> list[Written | None]:
            self._check_session()
            return self._change(operations, self.session_id)

        return self._patiently("write", lambda: self._in_transaction(change))

    def end(self) -> None:
        """End the session, and close the file. Raises `StorageError`; the session ends then as that of a process that
        was killed. Called once, and nothing else after it."""
        is_ended = False
        try:
            if not self._is_over:
                end = partial(self._in_transaction, partial(self._end_session, self.session_id))
                self._patiently("write", end)
                is_ended = True
        finally:
            self.abandon(remove=is_ended)

    def abandon(self, *, remove: bool = False) -> None:
        """Close the file as the end of the process would."""
        with self._lock:
            self._is_closed = True
            self._close(remove=remove)
            self._latest.close()

    def _close(self, *, remove: bool) -> None:
        for other in self._others.values():
            other.forget(remove=False)
        self._others.clear()
        self._db.close()
        if self._own is not None:
            self._own.release(remove=remove)

    # ------------------------------------------------------------------------------------------ other processes

    def look(self) -> Collection[str] | None:
        """Which watched nodes may be different since the last call; None: all of them. Also shows that this process
        goes on, and ends the sessions of others that do not. Raises `SessionOver`, `StorageError`; never waits for
        another process."""
        now_s = monotonic_s()
        since_s, self._looked_s = now_s - self._looked_s, now_s
        changed: Collection[str] | None = ()
        try:
            latest = self._latest.read()
            if now_s >= self._beaten_s + self.timeout_s / BEATS and self._own is not None:
                self._beaten_s = now_s
                self._own.beat()
                self._noticed = None  # a process may have died between its commit and its writing to `_latest`
            if latest != self._noticed:
                changed = self._news()
                self._noticed = latest
            ended = [one for one, other in self._others.items() if other.is_over(since_s, self.timeout_s)]
        except OSError as error:
            raise self._unusable(error) from error
        except sqlite3.Error as error:
            if _is_busy(error):
                return ()
            raise failure(self._path, "read", error) from error
        if not ended:
            return changed
        return _union(changed, self._end_others(ended, patience_s=0))

    def _news(self) -> Collection[str] | None:
        """As `look`, from what other processes have written."""
        with self._lock:
            (version,) = self._db.execute("PRAGMA data_version").fetchone()
            if version == self._data_version:
                return ()
            self._check_session()
            zxid = latest_zxid(self._db, self._path)
            changed = "SELECT DISTINCT path FROM change WHERE zxid > ? AND session != ?"
            paths = [path for (path,) in self._db.execute(changed, (self._seen_zxid, self.session_id))]
            self._find_others()
            is_behind = zxid - self._seen_zxid > CHANGES_KEPT
            self._data_version, self._seen_zxid = version, zxid
        return None if is_behind or EVERYTHING in paths else paths

    def _find_others(self) -> None:
        session_ids = {session_id for (session_id,) in self._db.execute("SELECT id FROM session")}
        for gone in self._others.keys() - session_ids:
            self._others.pop(gone).forget(remove=False)
        for session_id in sorted(session_ids - self._others.keys()):
            if session_id != self.session_id:
                self._others[session_id] = OtherSession(self._path, session_id)

    def _end_others(self, session_ids: Iterable[int], patience_s: float | None = None) -> Collection[str] | None:
        """End sessions whose process is gone, or is taken for gone; returns as `look`."""
        changed: Collection[str] | None = ()
        for session_id in session_ids:
            end = partial(self._in_transaction, partial(self._end_session, session_id))
            try:
                places = self._patiently("write", end, patience_s)
            except LockedMetadata:
                if patience_s is None:
                    raise
                self._kill_stopped(session_id)
                break  # the next look tries again
            changed = _union(changed, places)
            self._others.pop(session_id).forget(remove=True)
        return changed

    def _kill_stopped(self, session_id: int) -> None:
        """Kill the process of a session that is over, if it was stopped in the middle of a change: nothing else ends
        that change."""
        pid = stopped_writer(self._path, lock_path(self._path, session_id))
        if pid is not None:
            line = "process %d was stopped in the middle of a change of %s, which no other can change. It is killed"
            logger.error(line, pid, self._path)
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _end_session(self, session_id: int) -> Collection[str] | None:
        """Remove its row and its ephemeral nodes; returns as `look`."""
        if self._db.execute("DELETE FROM session WHERE id = ?", (session_id,)).rowcount == 0:
            return ()
        deletes = [Delete(path) for path in self._tree.ephemeral(session_id)]
        self._change(deletes, session_id)
        return _places(deletes)

    # -------------------------------------------------------------------------------------------- transactions

    def _change(self, operations: Sequence[NodeOperation], session_id: int) -> list[Written | None]:
        results = self._tree.change(operations, session_id)
        zxid = latest_zxid(self._db, self._path)
        places = _places(operations)
        rows = [(zxid, path, session_id) for path in ([EVERYTHING] if places is None else places)]
        self._db.executemany("INSERT INTO change VALUES (?, ?, ?)", rows)
        self._db.execute("DELETE FROM change WHERE zxid <= ?", (zxid - CHANGES_KEPT,))
        return results

    def _check_session(self) -> None:
        if not self._db.execute("SELECT 1 FROM session WHERE id = ?", (self.session_id,)).fetchone():
            self._is_over = True
            raise SessionOver("the session is over")

    def _in_transaction(self, work: Callable[[], R]) -> R:
        """Raises `OutcomeUnknown` if the commit fails for another reason than other processes."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                if _is_busy(error):
                    raise
                raise OutcomeUnknown(str(failure(self._path, "write", error))) from error
        except BaseException:
            with suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            raise
        self._tell()
        self._settle()
        return result

    def _tell(self) -> None:
        """Other processes look for what was committed. If that fails, they do so some time later."""
        with suppress(OSError, StorageError, sqlite3.Error):
            self._latest.write(latest_zxid(self._db, self._path))

    def _settle(self) -> None:
        """Move what was committed into the file itself, as far as no process reads what was there before. A failure
        loses nothing: the next commit tries again."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error as error:
            line = "the last change of the metadata is only in %s-wal: %s. Repair its disk or free space on it"
            notices.error(str(self._path), line, self._path, error)

    def _patiently(self, act: str, work: Callable[[], R], patience_s: float | None = None) -> R:
        """Do this, again while other processes keep it from being done: for at most the session time-out, or
        `patience_s`. Raises `StorageError`, also `LockedMetadata`."""
        end_s = monotonic_s() + (self.timeout_s if patience_s is None else patience_s)
        while True:
            with self._lock:
                if self._is_closed:
                    raise SessionOver("the session is over")
                try:
                    return work()
                except sqlite3.Error as error:
                    if not _is_busy(error):
                        raise failure(self._path, act, error) from error
            if monotonic_s() > end_s:
                raise self._busy(act)
            time.sleep(PAUSE_S)

    def _unusable(self, error: OSError) -> StorageError:
        return StorageError(f"cannot use the sessions of {self._path}: {error.strerror or error}")

    def _busy(self, act: str) -> LockedMetadata:
        return LockedMetadata(
            f"cannot {act} the metadata in {self._path}: another process has held it locked for {self.timeout_s:g} s. "
            "If that process is suspended, continue or kill it"
        )


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _places(operations: Sequence[NodeOperation]) -> Collection[str] | None:
    """The nodes whose watchers have to look after these operations; None: all nodes."""
    places = dict.fromkeys(path for operation in operations for path in places_of(operation))
    return None if len(places) > PLACES_MAX else places


def _union(some: Collection[str] | None, others: Collection[str] | None) -> Collection[str] | None:
    return None if some is None or others is None else {*some, *others}
