"""Which process keeps a metadata file locked although it is stopped (SIGSTOP), by what Linux says of it.

SQLite locks a file for writing by byte 120 of its `-shm` file (see its "WAL-mode File Format"). A process that is
stopped in the middle of a change keeps that lock, and all others from changes.
"""

import os
from collections.abc import Iterator
from pathlib import Path

_WRITE_LOCK = "120"
_LOCKS, _STOPPED = Path("/proc/locks"), "T"


def stopped_writer(database: Path, session: Path) -> int | None:
    """The id of the process that is stopped, holds the lock of this session, and that for writing to the file; None
    also where the system does not say it."""
    try:
        shared, own = os.stat(f"{database}-shm").st_ino, session.stat().st_ino
        locks = _LOCKS.read_text()
        writing = set(_holders(locks, "POSIX", shared, _WRITE_LOCK))
        for pid, device in _holders(locks, "FLOCK", own, "0"):
            if (pid, device) in writing and _state(pid) == _STOPPED:
                return pid
    except OSError:
        pass
    return None


def _holders(locks: str, kind: str, inode: int, start: str) -> Iterator[tuple[int, str]]:
    """The process and the device of each lock for writing of that file, from lines like
    `3: POSIX  ADVISORY  WRITE 10534 fe:00:9981224 120 120`."""
    for line in locks.splitlines():
        match line.split():
            case [_, found, _, "WRITE", pid, place, begins, _] if found == kind and begins == start:
                device, _, number = place.rpartition(":")
                if number == str(inode):
                    yield int(pid), device


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
