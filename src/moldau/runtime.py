"""The ports besides the event loop, `Clock`, `Disk` and `Random` (`moldau.randomness`); and their real
implementations.

Every decision about time, chance and files goes through a `Runtime`, so that a whole cluster can be run in simulation.
Waiting goes through asyncio, whose loop is a port of its own. A `Disk` separates *written* from *flushed*: bytes
written to a `File` are readable at once, and survive a crash only after `flush` (a new or renamed name: after
`sync_folder`).
"""

import asyncio
import errno
import fcntl
import os
import re
import shutil
import struct
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from moldau.errors import StorageError
from moldau.randomness import Random, RealRandom

Buffer: TypeAlias = bytes | bytearray | memoryview
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
T = TypeVar("T")


class File(Protocol):
    """One open file. Positions and lengths are bytes; every failure is an `OSError`.

    It closes with `close`, or when the last reference to it is gone: a reply that holds a slice may go on reading.
    """

    def read(self, length: int, at: int) -> bytes:
        """Up to `length` bytes at `at`; fewer only at the end of the file."""

    def write(self, data: Buffer, at: int) -> None:
        """Write all of `data` at `at`."""

    def size(self) -> int: ...
    def truncate(self, size: int) -> None:
        """Cut to, or extend sparsely to, `size` bytes."""

    def flush(self) -> None:
        """fsync."""

    def close(self) -> None: ...
    def fileno(self) -> int | None:
        """The descriptor for `sendfile`; None in simulation."""


def out_of_descriptors(error: OSError) -> bool:
    """Whether the process (`EMFILE`) or the system (`ENFILE`) cannot open another file. The disk is not at fault: the
    same call succeeds once other files are closed."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class Lock(Protocol):
    """A lock file that is held, in a folder that is in use."""

    def __call__(self) -> None:
        """Release it."""

    def in_place(self) -> bool:
        """Whether the folder's path still leads to the folder: false once the folder is renamed, or its disk is
        unmounted or replaced. Raises `OSError`."""


class FileSystem(Protocol):
    """The file system that a folder is on; failed writes are noticed from when this object was created."""

    def flush(self) -> bool:
        """Flush everything that any process has written to it, names included. False where the system cannot, or would
        not report every failed write. Raises `OSError` if any write since this object was created failed: its data may
        be lost, and a second flush would not report it again."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A file system below some folder."""

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File: ...
    def create_private(self, path: Path) -> File:
        """Create a file that no other user can read. Raises `FileExistsError`."""

    def exists(self, path: Path) -> bool: ...
    def size(self, path: Path) -> int:
        """The size of a file in bytes. Raises `OSError` if it does not exist."""

    def modified_ms(self, path: Path) -> int:
        """When a file was last written, in milliseconds since 1970 UTC."""

    def set_modified_ms(self, path: Path, ms: int) -> None:
        """Set a file's modification time, so that a rewritten file keeps the age of the one it replaces."""

    def list(self, folder: Path) -> list[str]:
        """The names in a folder, sorted."""

    def make_folder(self, folder: Path) -> None:
        """Create the folder and its parents; no error if it exists."""

    def rename(self, old: Path, new: Path) -> None:
        """Atomic; replaces a file at `new`."""

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with its content; no error if it does not exist."""

    def sync_folder(self, folder: Path) -> None:
        """Flush the folder itself, so that the names in it survive a crash."""

    def file_system(self, folder: Path) -> FileSystem:
        """The file system that the folder is on, to flush it as a whole."""

    def lock(self, path: Path) -> Lock:
        """Hold the lock file, and with it the folder. Raises `StorageError` if another process holds it."""

    def space(self, folder: Path) -> tuple[int, int]:
        """The size of the folder's volume and its usable free space, in bytes."""

    def mark(self, path: Path) -> str:
        """Tells a file from its copies: another one once the file was copied, also over itself, or changed. Empty if
        it does not exist."""

    def boot_id(self) -> str:
        """Another one after every start of the machine: what was written under the same one is there, flushed or not.
        Empty if the system does not tell."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970 UTC, for the timestamps of records and checkpoints."""

    def elapsed_s(self) -> float:
        """Seconds since some moment, by a clock that never jumps: for time-outs that others count."""


Step: TypeAlias = Callable[[], Any] | None
"""The values yielded by a generator with more than one turn of work: a callable to run elsewhere, whose result is sent
back, or None to let others go first."""


def elapsed_s() -> float:
    """Seconds since some moment before this process began. The clock goes on while the process or the machine stands
    still."""
    return time.clock_gettime(_BOOTTIME)


class RealClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_s(self) -> float:
        return elapsed_s()


class RealFile:
    """A file of the operating system; reads and writes at positions, so that its users share no cursor."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int):
        self._fd = fd

    def read(self, length: int, at: int) -> bytes:
        data = os.pread(self._fd, length, at)
        while 0 < len(data) < length:
            more = os.pread(self._fd, length - len(data), at + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, data: Buffer, at: int) -> None:
        written = os.pwrite(self._fd, data, at)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], at + written)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def flush(self) -> None:
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int | None:
        return self._fd


class RealLock:
    def __init__(self, path: Path):
        """Raises `StorageError`, `OSError`."""
        self._folder = path.parent
        self._folder_fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            os.close(self._folder_fd)
            raise
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self()
            sentence = f"another broker uses {path.parent}: stop it, or give this one a --data-dir of its own"
            raise StorageError(sentence) from None

    def __call__(self) -> None:
        os.close(self._fd)
        os.close(self._folder_fd)

    def in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._folder), os.fstat(self._folder_fd))
        except FileNotFoundError:
            return False


REPORTING = frozenset({"btrfs", "ext4", "f2fs", "tmpfs", "xfs"})
"""File systems where `syncfs` reports every failed write. An overlay, for example, does not see failures of the file
system below it."""
REPORTS_SINCE = (5, 8)
"""The first Linux whose `syncfs` reports failed writes at all."""


class RealFileSystem:
    """A descriptor of a folder. Linux counts failed writes for the whole file system, and reports to each descriptor
    those since it was opened. One opened only at the stop would miss the failures before."""

    __slots__ = ("_fd",)

    def __init__(self, folder: Path):
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def flush(self) -> bool:
        if not self._reports():
            return False
        import ctypes  # not needed at start-up, which it would slow down

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(self._fd):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return True

    def _reports(self) -> bool:
        if sys.platform != "linux":
            return False
        release = re.match(r"(\d+)\.(\d+)", os.uname().release)
        if release is None or (int(release[1]), int(release[2])) < REPORTS_SINCE:
            return False
        try:
            about = Path(f"/proc/self/fdinfo/{self._fd}").read_text()
            mount = about.partition("mnt_id:")[2].split()[0]
            for line in Path("/proc/self/mountinfo").read_text().splitlines():
                if line.split(" ", 1)[0] == mount:
                    return line.partition(" - ")[2].split(" ", 1)[0] in REPORTING
        except (OSError, IndexError):
            pass
        return False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux keeps it."""


class RealDisk:
    def mark(self, path: Path) -> str:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return ""
        return f"{found.st_ino}-{found.st_ctime_ns}"  # nobody can set the latter

    def boot_id(self) -> str:
        try:
            return BOOT_ID.read_text().strip()
        except OSError:
            return ""

    _opened: type[RealFile] = RealFile
    """Makes a file of a descriptor."""

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0) | os.O_CLOEXEC
        return self._opened(os.open(path, flags, 0o644))

    def create_private(self, path: Path) -> File:
        return self._opened(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def exists(self, path: Path) -> bool:
        return os.path.exists(path)

    def size(self, path: Path) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: Path) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: Path, ms: int) -> None:
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def list(self, folder: Path) -> list[str]:
        return sorted(os.listdir(folder))

    def make_folder(self, folder: Path) -> None:
        os.makedirs(folder, exist_ok=True)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        try:
            os.unlink(path)
        except IsADirectoryError:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass

    def sync_folder(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def file_system(self, folder: Path) -> FileSystem:
        return RealFileSystem(folder)

    def space(self, folder: Path) -> tuple[int, int]:
        volume = os.statvfs(folder)
        return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail

    def lock(self, path: Path) -> Lock:
        return RealLock(path)


def is_folder(disk: Disk, path: Path) -> bool:
    """Raises `OSError`, also if nothing has this name."""
    try:
        disk.list(path)
    except NotADirectoryError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file: by `flock` as we do, or by `fcntl` as Kafka's JVM does. The file is not
    changed; the check itself takes a free lock for a moment."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if sys.platform == "linux":
            asked = struct.pack("hhqqii", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0)
            if struct.unpack_from("h", fcntl.fcntl(fd, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK:
                return True
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


@dataclass
class Runtime:
    """All of a broker's access to time, files and chance. `run` takes the work that would hold up the loop (D14)."""

    clock: Clock = field(default_factory=RealClock)
    disk: Disk = field(default_factory=RealDisk)
    random: Random = field(default_factory=RealRandom)
    executor: ThreadPoolExecutor | None = None
    stopwatch: Callable[[], float] = time.perf_counter
    """Seconds since an arbitrary start, to measure how long a turn of the loop takes: always 0 in simulation."""
    is_durable: bool = True
    """Whether the metadata must survive a power loss; False for a broker under test, whose disk does not flush."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking `work` in the bounded executor; a simulated loop runs it inline."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, work)
