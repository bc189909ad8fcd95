"""Open files, bounded: a broker hosts more segment files than a process may have descriptors.

A `LazyFile` is a path that is opened when it is used. `OpenFiles` counts what is open and lets go of what was not used
lately. Letting go never closes: a reader (a slice on its way to a socket, a flush in another thread) holds the `File`
itself, which closes when the last reference is gone. So a file may be let go, renamed or deleted under a reader at any
time.

A reply may wait for its client for minutes, so the files of its slices are counted apart: each is a `Loan`, and
`lendable` says how many more the next reply may take. Descriptors in use are the files kept open and the loans, and
for a moment one file a thread. If the process has no descriptor left all the same, files are let go until the open
succeeds.
"""

import logging
import threading
import weakref
from pathlib import Path
from typing import Final

from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices
from moldau.runtime import Disk, File, out_of_descriptors

notices = Notices(logging.getLogger(__name__))

OPEN_FILES_MAX: Final = 2000
"""Segment and index files kept open by one broker; sockets and the rest of the process need descriptors too."""
LOANS_MAX: Final = 10_000
"""Files held by replies that have not left; each costs the system about a kilobyte."""


def no_descriptor(path: Path, error: OSError) -> KafkaError:
    """Tell the operator, and what to answer: clients try again, and the disk is not at fault."""
    notices.error(
        "",
        "a file in %s cannot be opened: %s. Requests that need it are answered with an error that clients retry. "
        "Raise the limit of open files (`ulimit -n`, LimitNOFILE in systemd), or lower max.connections",
        path,
        error.strerror,
    )
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no descriptor is left to open a file in {path}; try again")


class Loan:
    """A file that slices of replies read. It stays open, and is counted, until the last of them is gone."""

    __slots__ = ("__weakref__", "_loans", "file", "fileno", "read")

    def __init__(self, file: File, loans: set[int]):
        self.file = file
        self.read = file.read
        self.fileno = file.fileno
        self._loans = loans
        loans.add(id(self))

    def __del__(self) -> None:
        self._loans.discard(id(self))


class LazyFile:
    """A file that is opened on first use. `used`: again since then, or since the last search for one to let go."""

    __slots__ = ("_files", "_loan", "_path", "file", "used")

    def __init__(self, path: Path, files: "OpenFiles"):
        self._path = str(path)
        self.file: File | None = None
        self.used = False
        self._files = files
        self._loan: weakref.ref[Loan] | None = None

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

    def lend(self) -> Loan:
        """The file for a slice of a reply, which may hold it for as long as its client takes."""
        loan = self.lent
        if loan is None:
            loan = Loan(self.get(), self._files.loans)
            self._loan = weakref.ref(loan)
        return loan

    @property
    def lent(self) -> Loan | None:
        """The loan that slices hold, if any do."""
        return None if self._loan is None else self._loan()

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
    """Which lazy files are open: at most `limit`, then those not used since the last round are let go first. `loans`
    identifies the files that replies hold, of which each reply may take its share of `loans_max`."""

    def __init__(self, disk: Disk, limit: int = OPEN_FILES_MAX, loans_max: int = LOANS_MAX):
        self.disk = disk
        self.loans: set[int] = set()
        self._limit = limit
        self._loans_max = loans_max
        self._open: dict[LazyFile, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def lendable(self) -> int:
        """How many files the next reply may hold: half of what is left, so that no client takes them all. It may hold
        one in any case, which the limit on connections leaves room for."""
        return max((self._loans_max - len(self.loans)) // 2, 1)

    def open(self, lazy: LazyFile, create: bool = False) -> File:
        with self._lock:
            file = lazy.file
            if file is None:
                if len(self._open) >= self._limit:
                    self._make_room()
                loan = lazy.lent
                file = lazy.file = self._open_one(lazy.path, create) if loan is None else loan.file
                lazy.used = False
                self._open[lazy] = None
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
