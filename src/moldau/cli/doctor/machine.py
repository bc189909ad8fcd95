"""Facts about this machine: the disks below log folders, and how many files a process may open."""

import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from moldau.cli.doctor.checks.disks import DiskFacts
from moldau.cli.doctor.checks.machines import DescriptorFacts
from moldau.descriptors import share_out
from moldau.errors import StorageError
from moldau.log.folders.identity import LOCK

FLUSHES: Final = 5
FLUSHED_BYTES: Final = 4096
PREFIX: Final = ".moldau-doctor-"
_MOUNTS, _LOCKS, _PROCESSES = Path("/proc/self/mountinfo"), Path("/proc/locks"), Path("/proc")


def disk_facts(folder: Path, flushes: int = FLUSHES) -> DiskFacts:
    """Writes and flushes a small file in the folder, and removes it. Blocks."""
    exists = folder.is_dir()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        space, device = os.statvfs(there), os.stat(there).st_dev
    except OSError as error:
        return DiskFacts(str(folder), exists, error.strerror or str(error))
    problem, flush_ms = "", list[float]()
    read_only = bool(space.f_flag & os.ST_RDONLY)
    if folder.exists() and not exists:
        problem = "it is not a folder"
    elif exists and not read_only:
        try:
            flush_ms = _flush_times(folder, flushes)
        except OSError as error:
            problem = error.strerror or str(error)
    elif not os.access(there, os.W_OK | os.X_OK):
        problem = f"{there} may not be written to"
    return DiskFacts(
        str(folder),
        exists,
        problem,
        space.f_frsize * space.f_blocks,
        space.f_frsize * space.f_bavail,
        space.f_favail,
        _file_system(device),
        device,
        read_only,
        flush_ms,
    )


def _flush_times(folder: Path, flushes: int) -> list[float]:
    times = []
    handle, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
    try:
        for number in range(flushes):
            os.pwrite(handle, b"." * FLUSHED_BYTES, number * FLUSHED_BYTES)
            began_s = time.monotonic()
            os.fsync(handle)
            times.append((time.monotonic() - began_s) * 1000)
    finally:
        os.close(handle)
        os.unlink(name)
    return times


def _file_system(device: int) -> str:
    """The kind of the file system that is mounted as this device; "" where the system does not say it. A line:
    `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        before, _, after = line.partition(" - ")
        if wanted in before.split()[2:3]:
            return after.split()[0]
    return ""


def descriptor_facts(folders: Sequence[Path]) -> DescriptorFacts:
    """Those of this user's processes, and of the broker that runs here with these log folders, if this user may see
    them."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = -1 if soft == resource.RLIM_INFINITY else soft
    try:
        connections = share_out(None if limit < 0 else limit).connections
    except StorageError:
        connections = 0
    process = next((pid for folder in folders if (pid := broker_process(folder)) is not None), None)
    if process is None:
        return DescriptorFacts(limit, connections)
    try:
        opened = len(os.listdir(_PROCESSES / str(process) / "fd"))
        limits = (_PROCESSES / str(process) / "limits").read_text()
        of_broker = next(line.split()[3] for line in limits.splitlines() if line.startswith("Max open files"))
        return DescriptorFacts(limit, connections, int(of_broker) if of_broker.isdecimal() else -1, opened)
    except (OSError, StopIteration, IndexError):
        return DescriptorFacts(limit, connections)


def broker_process(folder: Path) -> int | None:
    """The process that holds the lock of a log folder; None if there is none, or the system does not say it. A line:
    `3: FLOCK  ADVISORY  WRITE 10534 fe:00:9981224 0 EOF`."""
    try:
        inode = str((folder / LOCK).stat().st_ino)
        for line in _LOCKS.read_text().splitlines():
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5:6] and words[5].rpartition(":")[2] == inode:
                return int(words[4])
    except (OSError, ValueError):
        pass
    return None
