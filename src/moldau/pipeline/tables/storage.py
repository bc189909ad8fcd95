"""Where tables lie: a local folder, or an object store or HDFS by URL with `storage_options`.

The options are those of the `deltalake` package (`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, ...), which the
workers that write data files and the driver that commits both use. Those of Iceberg tables come from the catalog and
are pyiceberg's (`s3.endpoint`, ...). Local files are written by Arrow itself and
flushed to disk; an object store keeps what it has acknowledged.
"""

import contextlib
import errno
import json
import logging
import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from moldau.pipeline.tables.columns import TableError

URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ENTRY = re.compile(r"[0-9]{20}\.json")
TEXT_MAX = 300
OS_ERROR = re.compile(r"\bos error ([0-9]{1,5})\b")
"""The number of an error of the system in a text of deltalake."""
REMEDIES: Final = {
    errno.ENOSPC: ", so free space on its disk and try again",
    errno.EDQUOT: ", so free space on its disk, or raise the quota of this user, and try again",
}
MISREAD = re.compile(r"%[0-9a-f]{2}|[\\\x00-\x1f\x7f]", re.IGNORECASE)
"""In a path, deltalake takes the first for the character with this number and the second for a slash."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Location:
    """A folder or URL, with the options of its store; picklable, because Spark sends it to the workers."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    of_iceberg: bool = False

    @property
    def is_local(self) -> bool:
        return not URL.match(self.uri)

    @property
    def path(self) -> Path:
        assert self.is_local
        return Path(self.uri)

    def __truediv__(self, name: str) -> "Location":
        return Location(f"{self.uri.rstrip('/')}/{name}", self.options, self.of_iceberg)

    def may_have_something(self) -> bool:
        """False for a folder that does not exist. Raises TableError for one that cannot be read."""
        if not self.is_local:
            return True
        try:
            os.scandir(self.path).close()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unreadable(error) from None
        return True

    def _unreadable(self, error: OSError) -> TableError:
        if isinstance(error, NotADirectoryError):
            file = next(path for path in (self.path, *self.path.parents) if path.exists())
            return TableError(f"{file} is a file, where a folder of tables is needed: name another warehouse.")
        return TableError(f"{self.uri} cannot be read: {error.strerror}.")

    def folders(self) -> list[str]:
        """The names of the folders here, sorted."""
        if self.is_local:
            try:
                return sorted(entry.name for entry in os.scandir(self.path) if entry.is_dir())
            except FileNotFoundError:
                return []
            except OSError as error:
                raise self._unreadable(error) from None
        from pyarrow.fs import FileSelector, FileType

        with errors_in_a_sentence(self.uri):
            entries = file_system(self).get_file_info(FileSelector("", allow_not_found=True))
        return sorted(one.path.rstrip("/").rpartition("/")[2] for one in entries if one.type == FileType.Directory)


def location(of: str | Path, options: Mapping[str, str] | None = None, *, of_iceberg: bool = False) -> Location:
    """The location that a user or a catalog named: a path, which becomes absolute, or a URL. Raises TableError."""
    text = str(of)
    if text.startswith("file:"):
        text = text.removeprefix("file:").removeprefix("//")
    uri = text.rstrip("/") if URL.match(text) else str(Path(text).absolute())
    if not of_iceberg and not URL.match(uri) and (misread := MISREAD.search(uri)):
        raise TableError(f"{uri!r} cannot be the path of a table: rename the folder with {misread[0]!r} in its name.")
    return Location(uri, dict(options or {}), of_iceberg)


def file_system(where: Location) -> Any:
    """Arrow's view of an object store; paths are relative to `where`."""
    if where.of_iceberg:
        return _iceberg_file_system(where)
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(where.uri, dict(where.options)))


def files_below(where: Location) -> Any:
    """Arrow's view of a local folder or of an object store; paths are relative to `where`."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    return SubTreeFileSystem(where.uri, LocalFileSystem()) if where.is_local else file_system(where)


def _iceberg_file_system(where: Location) -> Any:
    from pyarrow.fs import SubTreeFileSystem
    from pyiceberg.io.pyarrow import PyArrowFileIO

    options = dict(where.options)
    scheme, host, path = PyArrowFileIO.parse_location(where.uri, options)
    return SubTreeFileSystem(path, PyArrowFileIO(options).fs_by_scheme(scheme, host))


def check_writable(where: Location) -> None:
    """Raise TableError if this process may not write to a local folder, or create it: then no load can."""
    if not where.is_local:
        return
    nearest = next(path for path in (where.path, *where.path.parents) if os.path.lexists(path))
    if not os.path.isdir(nearest):
        raise TableError(f"{where.uri} cannot be created: {nearest} is not a folder.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        if nearest == where.path:
            raise TableError(f"{where.uri} cannot be written to: this process has no permission.")
        raise TableError(f"{where.uri} cannot be created: this process has no permission to write to {nearest}.")


def check_files(table: Location, paths: Iterable[str]) -> None:
    """Raise TableError if a file of a local table is gone: a vacuum with too short a retention has removed it."""
    for path in paths:
        if table.is_local and not (table.path / path).exists():
            raise TableError(f"{table.path / path} was removed before it was committed, so run this load again.")


def discard(table: Location, paths: Iterable[str]) -> None:
    """Remove files that no commit has named, as far as the store lets us: `vacuum` removes the others."""
    for path in paths:
        with contextlib.suppress(OSError):
            files_below(table).delete_file(path)


def sync_folders(table: Location, folders: Iterable[str]) -> None:
    """Flush the names in these folders of a local table, and in those above them, to disk: the deepest first."""
    if not table.is_local:
        return
    paths = {table.path}
    for folder in folders:
        path = table.path / folder
        while path != table.path:
            paths.add(path)
            path = path.parent
    for path in sorted(paths, key=lambda one: (-len(one.parts), one)):
        _sync(path)


def sync_commit(table: Location, version: int) -> None:
    """Flush the log entry of a version of a local table to disk."""
    if not table.is_local:
        return
    log = table.path / "_delta_log"
    with contextlib.suppress(FileNotFoundError):  # a checkpoint may already have taken its place
        _sync(log / f"{version:020d}.json")
    _sync(log)


def remove_torn_entry(table: Location) -> bool:
    """Remove the newest entry of a local table's log if it is not whole; returns whether it was removed.

    An entry appears whole, but nothing flushes it before it has its name: a power failure may leave the name with none
    or a part of the bytes, or with zeros. A load reports its commit after it has flushed the entry (`sync_commit`), so
    the commit of a torn entry was reported to nobody, and its records are loaded again.
    """
    if not table.is_local:
        return False
    log = table.path / "_delta_log"
    entries = sorted(path for path in log.glob("*.json") if ENTRY.fullmatch(path.name))
    if not entries or _is_whole(entries[-1]) or list(log.glob(f"{entries[-1].stem}.checkpoint*")):
        return False
    logger.warning("%s was torn by a power failure and is removed: its records are loaded again", entries[-1])
    entries[-1].unlink()
    _sync(log)
    return True


def _is_whole(entry: Path) -> bool:
    try:
        lines = entry.read_bytes().splitlines()
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def entry_marks(table: Location, version: int) -> tuple[int, int, int] | None:
    """What tells the log entry of a version of a local table from another of its name: None if there is none, and for
    an object store."""
    try:
        found = os.stat(table.path / "_delta_log" / f"{version:020d}.json") if table.is_local else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def sync_added(table: Location, version: int) -> None:
    """Flush the data files that a version of a local table has added, and its log entry, to disk."""
    if not table.is_local:
        return
    entry = table.path / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines()]
    added = [urllib.parse.unquote(action["add"]["path"]) for action in actions if "add" in action]
    for path in added:
        _sync(table.path / path)
    sync_folders(table, {path.rpartition("/")[0] for path in added})
    sync_commit(table, version)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def errors_in_a_sentence(what: str) -> Iterator[None]:
    """Turn an error of the `deltalake` package, or of a disk, into one TableError; `what` is its subject."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (OSError, DeltaError, ValueError) as error:
        words, remedy = words_of(error)
        raise TableError(f"{what} cannot be used: {words}{remedy}.") from None


def words_of(error: Exception) -> tuple[str, str]:
    """What an error of a table's files says, and the end of that sentence that says what to do. Arrow and deltalake
    wrap the words of the system in their own; a number tells which they are."""
    in_text = OS_ERROR.search(str(error))
    number = (error.errno or 0) if isinstance(error, OSError) else int(in_text[1]) if in_text else 0
    if number in REMEDIES or (isinstance(error, OSError) and number in errno.errorcode):
        return os.strerror(number), REMEDIES.get(number, "")
    return one_sentence(str(error)), ""


def one_sentence(text: str) -> str:
    """An error's text without colours, tree lines and line breaks."""
    words = COLOURS.sub("", text).replace("↳", " ").split()
    return " ".join(words)[:TEXT_MAX].rstrip(" .")
