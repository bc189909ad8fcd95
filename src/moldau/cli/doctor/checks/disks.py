"""Diagnoses of the disks below log folders: space, file system, and how long a flush takes."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity

AREA: Final = "disk"
MEGABYTE: Final = 1 << 20
USABLE_BYTES_MIN, USABLE_BYTES_FEW = 64 * MEGABYTE, 1024 * MEGABYTE
"""A log needs room for its next segments; below the first a start or a compaction can already fail."""
USABLE_SHARE_FEW: Final = 0.05
FILES_FREE_FEW: Final = 1000
FLUSH_MS_SLOW, FLUSH_MS_BAD = 20.0, 200.0
"""A disk that keeps a promise in 20 ms is a spinning one; 200 ms are seen by every client."""
NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs", "fuse.s3fs")
IN_MEMORY: Final = ("tmpfs", "ramfs", "devtmpfs")
OF_CONTAINERS: Final = ("overlay", "aufs")


class DiskFacts(NamedTuple):
    """`path`: a log folder, or where it will be. `error`: why it cannot be used, "" if it can. Sizes are in bytes, -1
    if unknown; `device` is the same for folders on one file system; `flush_ms` are the times of small flushes."""

    path: str
    exists: bool
    error: str = ""
    total: int = -1
    usable: int = -1
    files_free: int = -1
    file_system: str = ""
    device: int = -1
    read_only: bool = False
    flush_ms: Sequence[float] = ()


def of_disks(disks: Collection[DiskFacts]) -> list[Diagnosis]:
    found = [one for disk in disks for rule in (_usable, _space, _kind, _flushes) for one in rule(disk)]
    by_device: dict[int, list[str]] = {}
    for disk in disks:
        if disk.device >= 0:
            by_device.setdefault(disk.device, []).append(disk.path)
    for paths in by_device.values():
        if len(paths) > 1:
            together = f"The log folders {' and '.join(paths)} are on one disk, so they fill up and fail together."
            found.append(Diagnosis(Severity.NOTE, AREA, together, "Give each folder of log.dirs a disk of its own."))
    return found


def _usable(disk: DiskFacts) -> Iterator[Diagnosis]:
    if disk.read_only:
        problem = f"The file system of {disk.path} is mounted read-only."
        yield Diagnosis(
            Severity.ERROR, AREA, problem, "Look in the system's log for errors of the disk; mount it again."
        )
    elif disk.error:
        advice = "Give the broker's user the right to write there, or correct log.dirs."
        yield Diagnosis(Severity.ERROR, AREA, f"The log folder {disk.path} cannot be used: {disk.error}.", advice)
    elif not disk.exists:
        advice = "Nothing, if the broker has never run; else look whether its disk is mounted."
        yield Diagnosis(Severity.NOTE, AREA, f"The log folder {disk.path} does not exist yet.", advice)


def _space(disk: DiskFacts) -> Iterator[Diagnosis]:
    advice = "Delete data or lower retention (`moldau configs alter topic`), or move replicas to another disk."
    if 0 <= disk.usable < USABLE_BYTES_MIN:
        problem = f"The disk of {disk.path} is full: {size_text(disk.usable)} are left."
        yield Diagnosis(Severity.ERROR, AREA, problem, advice)
    elif 0 <= disk.usable < max(USABLE_BYTES_FEW, disk.total * USABLE_SHARE_FEW):
        problem = (
            f"The disk of {disk.path} is nearly full: {size_text(disk.usable)} of {size_text(disk.total)} are left."
        )
        yield Diagnosis(Severity.WARNING, AREA, problem, advice)
    if 0 <= disk.files_free < FILES_FREE_FEW and disk.total > 0 and disk.files_free != 0:
        problem = f"The file system of {disk.path} has room for only {disk.files_free} more files."
        yield Diagnosis(
            Severity.WARNING, AREA, problem, "Make a file system with more inodes, or raise log.segment.bytes."
        )


def _kind(disk: DiskFacts) -> Iterator[Diagnosis]:
    if disk.file_system in NETWORK:
        yield Diagnosis(
            Severity.WARNING,
            AREA,
            f"{disk.path} is on a network file system ({disk.file_system}), which may lose what was flushed and does"
            " not lock files well.",
            "Use a disk of this machine, and replicas on other machines.",
        )
    elif disk.file_system in IN_MEMORY:
        problem = f"{disk.path} is in memory ({disk.file_system}): a restart of the machine loses all records."
        yield Diagnosis(Severity.WARNING, AREA, problem, "Set log.dirs to a folder on a disk.")
    elif disk.file_system in OF_CONTAINERS:
        problem = f"{disk.path} is in the writable layer of a container, which goes with the container."
        yield Diagnosis(Severity.WARNING, AREA, problem, "Mount a volume there.")


def _flushes(disk: DiskFacts) -> Iterator[Diagnosis]:
    if not disk.flush_ms:
        return
    from statistics import median  # with all its numbers it is a tenth of the start

    usual_ms, worst_ms = median(disk.flush_ms), max(disk.flush_ms)
    if usual_ms < FLUSH_MS_SLOW and worst_ms < FLUSH_MS_BAD:
        return
    severity = Severity.ERROR if usual_ms >= FLUSH_MS_BAD else Severity.WARNING
    problem = f"A flush to {disk.path} takes {usual_ms:.0f} ms, and up to {worst_ms:.0f} ms."
    yield Diagnosis(severity, AREA, problem, "Look at what else uses the disk, or use a faster one.")


def size_text(size: int) -> str:
    """A size for people."""
    units = ("bytes", "KB", "MB", "GB", "TB")
    value = float(size)
    for unit in units:
        if value < 1024 or unit == units[-1]:
            break
        value /= 1024
    return f"{size} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
