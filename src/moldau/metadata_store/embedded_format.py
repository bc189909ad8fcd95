"""The format of the embedded store's file: its tables, what earlier versions of them lack, and its checksums.

    node     one row for each node of the tree; `ephemeral` is the session it belongs to, 0 for a lasting one
    latest   one row: the zxid of the latest change; the next change takes the number after it

SQLite finds damage to the structure of its pages; a checksum in every row finds damage to what is in them.
"""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from moldau.checksums import crc32c
from moldau.errors import StorageError

_FORMAT, _WITHOUT_CHANGES, _WITHOUT_CHECKSUMS = 3, 2, 1
_LATEST = ("CREATE TABLE latest (zxid INTEGER NOT NULL, checksum INTEGER NOT NULL)", "INSERT INTO latest VALUES (0, 0)")
_SCHEMA = (
    """CREATE TABLE node (
        path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
        ephemeral INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT 0, czxid INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID""",
    "CREATE INDEX child ON node (parent, path)",
    "INSERT INTO node VALUES ('/', '', x'', 0, 0, 0, 0)",
    *_LATEST,
)
_CHECKSUMS_ADDED = ("ALTER TABLE node ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",)
_CHANGES_ADDED = (
    "ALTER TABLE node ADD COLUMN czxid INTEGER NOT NULL DEFAULT 0",
    "UPDATE node SET czxid = 1 WHERE path != '/'",
    *_LATEST,
    "UPDATE latest SET zxid = 1",
)
_STEPS = {
    0: _SCHEMA,
    _WITHOUT_CHECKSUMS: (*_CHECKSUMS_ADDED, *_CHANGES_ADDED),
    _WITHOUT_CHANGES: _CHANGES_ADDED,
}


class DamagedMetadata(StorageError):
    """The file exists, but its content is not the content that was written."""


def failure(path: Path, act: str, error: sqlite3.Error) -> StorageError:
    """SQLite raises `DatabaseError` itself if the file is damaged, and a subclass for any other failure."""
    sentence = f"cannot {act} the metadata in {path}: {error}"
    if type(error) is sqlite3.DatabaseError:
        return DamagedMetadata(sentence)
    remedy = ". Repair the disk that holds this file, or free space on it" if act == "write" else ""
    return StorageError(sentence + remedy)


def is_shared(db: sqlite3.Connection) -> bool:
    """Whether the file has the sessions of several processes (see `shared_file`)."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'session'").fetchone() is not None


def prepare(db: sqlite3.Connection, path: Path, is_durable: bool) -> None:
    """Make the tables, or bring those of an earlier version up to date; look for damage. Raises `StorageError`,
    `sqlite3.Error`."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != _FORMAT and version not in _STEPS:
        raise StorageError(f"{path} was written by another version of this program (format {version})")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'OFF'}")
    if version:
        (result,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if result != "ok":
            raise DamagedMetadata(f"{path} is damaged: {result}")
    if version == _WITHOUT_CHANGES:
        _check_rows(db, path, "path, data, version", _checksum_without_czxid)
    if version == _FORMAT:
        _check_rows(db, path, "path, data, version, czxid", checksum)
        latest_zxid(db, path)
    else:
        _change_format(db, _STEPS[version])


def _change_format(db: sqlite3.Connection, steps: Sequence[str]) -> None:
    """From an empty file, or an earlier format, to the present one; wholly or not at all."""
    db.execute("BEGIN IMMEDIATE")
    for step in steps:
        db.execute(step)
    rows = db.execute("SELECT path, data, version, czxid FROM node").fetchall()
    db.executemany("UPDATE node SET checksum = ? WHERE path = ?", [(checksum(*row), row[0]) for row in rows])
    (zxid,) = db.execute("SELECT zxid FROM latest").fetchone()
    note_zxid(db, zxid)
    db.execute(f"PRAGMA user_version={_FORMAT}")
    db.execute("COMMIT")


def _check_rows(db: sqlite3.Connection, path: Path, columns: str, of: Callable[..., int]) -> None:
    for *row, checksum in db.execute(f"SELECT {columns}, checksum FROM node"):
        if not matches(checksum, of, *row):
            raise wrong_checksum(path, row[0])


def wrong_checksum(path: Path, node: str) -> DamagedMetadata:
    return DamagedMetadata(f"{path} is damaged: the node {node} does not match its checksum")


def checksum(path: str, data: bytes, version: int, czxid: int) -> int:
    """Of a node."""
    return crc32c(b"%b %d %d %b" % (path.encode(), version, czxid, data))


def _checksum_without_czxid(path: str, data: bytes, version: int) -> int:
    return crc32c(b"%b %d %b" % (path.encode(), version, data))


def matches(checksum: Any, of: Callable[..., int], *row: Any) -> bool:
    """Whether that is the checksum of a row. Damage can also change the types of values."""
    try:
        return bool(checksum == of(*row))
    except (TypeError, AttributeError):
        return False


def latest_zxid(db: sqlite3.Connection, path: Path) -> int:
    """The number of the latest change. Raises `DamagedMetadata`."""
    match db.execute("SELECT zxid, checksum FROM latest").fetchall():
        case [(int(zxid), found)] if found == _checksum_of_latest(zxid):
            return zxid
    raise DamagedMetadata(f"{path} is damaged: the number of its latest change does not match its checksum")


def note_zxid(db: sqlite3.Connection, zxid: int) -> None:
    """This is the number of the latest change now."""
    db.execute("UPDATE latest SET zxid = ?, checksum = ?", (zxid, _checksum_of_latest(zxid)))


def _checksum_of_latest(zxid: int) -> int:
    return crc32c(b"latest %d" % zxid)
