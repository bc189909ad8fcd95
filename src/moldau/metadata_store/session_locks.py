"""How processes that share a metadata file hear of each other, at the cost of a few system calls.

A file beside it has the number of the latest change, which each writer puts there after its commit.

Every session has a small file, which its process holds locked with `flock`: the lock of a killed process is free at
once. A process that is stopped (SIGSTOP) keeps its lock. So each process also counts up a number in the file of its
session, and a session whose number stays the same for the session time-out is over. The other processes measure that
by their own polls, so that neither a wall clock, nor the sleep of the machine, nor a pause of the one that measures
counts.
"""

import contextlib
import fcntl
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

from moldau.monotonic import monotonic_s

BEATS = 6
"""How often in its time-out a session counts up."""
GAP_S_MAX = 0.1
"""The most that the time between two polls counts for: the rest is this process' own pause."""
_NUMBER_BYTES = 8
_PAUSE_S = 0.005


def lock_path(file: Path, session_id: int) -> Path:
    return file.with_name(f"{file.name}-session-{session_id}")


class LatestChange:
    """The file with the number of the latest change. Where two processes write at once, the number may be that of the
    earlier change: what counts is that it is another one than before."""

    def __init__(self, file: Path):
        """Raises `OSError`."""
        self._fd = os.open(file.with_name(f"{file.name}-latest"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def read(self) -> bytes:
        """Raises `OSError`."""
        return os.pread(self._fd, _NUMBER_BYTES, 0)

    def write(self, zxid: int) -> None:
        """Raises `OSError`."""
        os.pwrite(self._fd, zxid.to_bytes(_NUMBER_BYTES, "big"), 0)

    @contextlib.contextmanager
    def alone(self, timeout_s: float) -> Iterator[None]:
        """Only one process at a time is in this block. Raises `TimeoutError`, `OSError`."""
        end_s = monotonic_s() + timeout_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if monotonic_s() > end_s:
                    raise TimeoutError from None
            time.sleep(_PAUSE_S)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._fd)


class SessionLock:
    """The lock of a session of this process, held until `release`."""

    def __init__(self, file: Path, session_id: int):
        """Raises `OSError`."""
        self._path = lock_path(file, session_id)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self._fd)
            raise
        self._numbers = itertools.count(1)

    def beat(self) -> None:
        """Count up; may be called from any thread. Raises `OSError`."""
        os.pwrite(self._fd, next(self._numbers).to_bytes(_NUMBER_BYTES, "big"), 0)

    def release(self, *, remove: bool = True) -> None:
        """Called once. Without `remove` the file stays, as that of a killed process does."""
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(self._fd)


class OtherSession:
    """A session of another process, as this one sees it."""

    def __init__(self, file: Path, session_id: int):
        self._path = lock_path(file, session_id)
        self._fd: int | None = None
        with contextlib.suppress(OSError):  # a session without its file is over
            self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        self._number = b""
        self._silent_s = 0.0

    def is_over(self, since_s: float, timeout_s: float) -> bool:
        """`since_s` is the time since the last call. Once it is over, the session stays so. Raises `OSError`."""
        if self._fd is None:
            return True
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            pass
        number = os.pread(self._fd, _NUMBER_BYTES, 0)
        self._silent_s = self._silent_s + min(since_s, GAP_S_MAX) if number == self._number else 0.0
        self._number = number
        return self._silent_s >= timeout_s

    def forget(self, *, remove: bool) -> None:
        """Called once. With `remove` the file goes: the session was ended."""
        if remove:
            with contextlib.suppress(OSError):
                self._path.unlink()
        if self._fd is not None:
            os.close(self._fd)
