"""Open files, bounded: a broker hosts more segment files than a process may have descriptors.

A `LazyFile` is a path that is opened when it is used. `OpenFiles` counts what is open and lets go of what was not used
lately. Letting go never closes: whoever still reads (a slice on its way to a socket, a flush in another thread) holds
the `File` itself, which closes when the last reference is gone. So a file may be let go, renamed or deleted under a
reader at any time. Where the process has no descriptor left for one more file, some are let go and it is tried again:
that is no failure of a disk.
"""

import errno
import threading
from pathlib import Path
from typing import Final

from moldau.runtime import Disk, File

OPEN_FILES_MAX: Final = 2000
"""Segment and index files kept open by one log folder; sockets and the rest of the process need descriptors too."""


class LazyFile:
    """A file that is opened on first use. `used`: again since then, or since the last search for one to let go."""

    __slots__ = ("_files", "_path", "file", "used")

    def __init__(self, path: Path, files: "OpenFiles"):
        self._path = str(path)
        self.file: File | None = None
        self.used = False
        self._files = files

    @property
    def path(self) -> Path:
        """Made when asked for: as a string it takes a fifth of the memory, and a broker has very many."""
        return Path(self._path)

    @path.setter
    def path(self, path: Path) -> None:
        self._path = str(path)

    def get(self) -> File:
        """The open file. Hold it no longer than the work at hand."""
        self.used = True
        return self.file or self._files.open(self)

    def create(self) -> File:
        """The open file, made if it is not there."""
        self.used = True
        return self._files.open(self, create=True)

    def let_go(self) -> None:
        self._files.let_go(self)

    def rename(self, path: Path) -> None:
        """Give the file another name; those who have it open go on."""
        self._files.rename(self, path)


class OpenFiles:
    """Which lazy files are open: at most `limit`, then those not used since the last round are let go first."""

    def __init__(self, disk: Disk, limit: int = OPEN_FILES_MAX):
        self.disk = disk
        self._limit = limit
        self._open: dict[LazyFile, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, lazy: LazyFile, create: bool = False) -> File:
        with self._lock:
            file = lazy.file
            if file is None:
                if len(self._open) >= self._limit:
                    self._make_room()
                file = lazy.file = self._open_one(lazy.path, create)
                lazy.used = False
                self._open[lazy] = None
            return file

    def _open_one(self, path: Path, create: bool) -> File:
        try:
            return self.disk.open(path, create=create)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open:
                raise
        self._make_room()
        return self.disk.open(path, create=create)

    def _make_room(self) -> None:
        """Let go of an eighth, the longest open first; one used since the last round is spared once."""
        left = len(self._open) - max(1, len(self._open) // 8)
        for lazy in [*self._open, *self._open]:
            if len(self._open) <= left:
                return
            if lazy not in self._open:
                continue
            del self._open[lazy]
            if lazy.used:
                lazy.used = False
                self._open[lazy] = None
            else:
                lazy.file = None

    def let_go(self, lazy: LazyFile) -> None:
        with self._lock:
            self._open.pop(lazy, None)
            lazy.file = None

    def rename(self, lazy: LazyFile, path: Path) -> None:
        with self._lock:
            self.disk.rename(lazy.path, path)
            lazy.path = path
