"""Open files, bounded: a broker hosts more segment files than a process may have descriptors.

A `LazyFile` is a path that is opened when it is used. `OpenFiles` counts what is open and lets go of what was not used
lately. Letting go never closes: a reader (a slice on its way to a socket, a flush in another thread) holds the `File`
itself, which closes when the last reference is gone. So a file may be let go, renamed or deleted under a reader at any
time.

A reply may wait for its client for minutes, so the files that it holds are counted apart, from `hold` on until the
reply is gone. Descriptors in use are those kept open and those held, and
for a moment one file a thread. If the process has no descriptor left all the same, files are let go until the open
succeeds.
"""

import threading
from pathlib import Path
from typing import Final

from moldau.runtime import Disk, File, out_of_descriptors

OPEN_FILES_MAX: Final = 2000
"""Segment and index files kept open by one broker; sockets and the rest of the process need descriptors too."""
HELD_MAX: Final = 10_000
"""Files held by replies that have not left; each costs the system about a kilobyte."""


class Hold:
    """The files that a reply may hold, `count` of them, counted for as long as somebody refers to this: first the
    request that is read, then the last slice of its reply. One of them is its connection's own."""

    __slots__ = ("_files", "count")

    def __init__(self, files: "OpenFiles", count: int):
        self._files = files
        self.count = count
        files.held += count - 1

    def shrink(self, count: int) -> None:
        """No more than these are needed."""
        self._files.held -= self.count - count
        self.count = count

    def __del__(self) -> None:
        self._files.held -= self.count - 1


class LazyFile:
    """A file that is opened on first use. `file` is the open file if it was used at least twice since it was opened,
    and since the last search for one to let go: requests take it from there, or else from `get`."""

    __slots__ = ("_files", "_path", "file")

    def __init__(self, path: Path, files: "OpenFiles"):
        self._path = str(path)
        self.file: File | None = None
        self._files = files

    @property
    def path(self) -> Path:
        """Made when asked for: as a string it takes a fifth of the memory, and a broker has very many."""
        return Path(self._path)

    @path.setter
    def path(self, path: Path) -> None:
        self._path = str(path)

    def get(self) -> File:
        """The open file. Do not keep the file after the current operation."""
        return self.file or self._files.open(self)

    def create(self) -> File:
        """The open file, made if it is not there."""
        return self._files.open(self, create=True)

    def let_go(self) -> None:
        self._files.let_go(self)

    def rename(self, path: Path) -> None:
        """Give the file another name; readers that have it open keep it."""
        self._files.rename(self, path)


class OpenFiles:
    """The open lazy files: at most `limit`, then those not used since the last round are closed first. `held`:
    files of replies, at most `held_max`, beside the one that each connection's reply may hold in any case."""

    def __init__(self, disk: Disk, limit: int = OPEN_FILES_MAX, held_max: int = HELD_MAX):
        self.disk = disk
        self.held = 0
        self._limit = limit
        self._held_max = held_max
        self._open: dict[LazyFile, File] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def hold(self) -> Hold:
        """For the next reply: one file, and half of what is left, so that no client takes them all."""
        return Hold(self, 1 + max(self._held_max - self.held, 0) // 2)

    def open(self, lazy: LazyFile, create: bool = False) -> File:
        with self._lock:
            file = self._open.get(lazy)
            if file is not None:
                lazy.file = file
            else:
                if len(self._open) >= self._limit:
                    self._make_room()
                file = self._open[lazy] = self._open_one(lazy.path, create)
            return file

    def _open_one(self, path: Path, create: bool) -> File:
        while True:
            try:
                return self.disk.open(path, create=create)
            except OSError as error:
                if not out_of_descriptors(error) or not self._open:
                    raise
            self._make_room()

    def _make_room(self) -> None:
        """Let go of an eighth, the longest open first; one used since the last round is spared once."""
        left = len(self._open) - max(1, len(self._open) // 8)
        for lazy in [*self._open, *self._open]:
            if len(self._open) <= left:
                return
            file = self._open.pop(lazy, None)
            if file is not None and lazy.file is not None:
                lazy.file = None
                self._open[lazy] = file

    def let_go(self, lazy: LazyFile) -> None:
        with self._lock:
            self._open.pop(lazy, None)
            lazy.file = None

    def rename(self, lazy: LazyFile, path: Path) -> None:
        with self._lock:
            self.disk.rename(lazy.path, path)
            lazy.path = path
