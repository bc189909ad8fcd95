"""Files that are no longer part of any log, and are removed after `file.delete.delay.ms`.

They already have another name (`.deleted` for a segment's files, `-delete` for a partition's folder), so that a start
after a crash finishes the work. Slow readers keep them open, and the space is free when they are done. Removing blocks:
it runs in an executor.
"""

import threading
from pathlib import Path

from moldau.log.file_names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from moldau.log.files import LazyFile
from moldau.log.segment import Segment
from moldau.runtime import Disk


class Doomed:
    """Paths and when each may go."""

    def __init__(self, disk: Disk):
        self._disk = disk
        self._due: list[tuple[int, Path]] = []
        self._latest_ms = 0
        self._lock = threading.Lock()

    def add(self, path: Path, due_ms: int) -> None:
        with self._lock:
            self._due.append((due_ms, path))

    def remove_due(self, now_ms: int) -> int:
        """Remove what is due; how many that were. Raises `OSError`."""
        with self._lock:
            back_ms = max(self._latest_ms - now_ms, 0)
            if back_ms:  # the clock was set back: the space must be free no later
                self._due = [(due_ms - back_ms, path) for due_ms, path in self._due]
            self._latest_ms = now_ms
            due = [path for due_ms, path in self._due if due_ms <= now_ms]
            self._due = [(due_ms, path) for due_ms, path in self._due if due_ms > now_ms]
        for at, path in enumerate(due):
            try:
                self._disk.remove(path)
            except OSError:
                with self._lock:
                    self._due += [(now_ms, left) for left in due[at:]]
                raise
        return len(due)


def files_of(segment: Segment, disk: Disk) -> list[LazyFile]:
    """The files that a segment has, the log first."""
    # Most segments have no aborted transaction, and no index of them.
    aborted = [segment.aborted.file] if disk.exists(segment.aborted.file.path) else []
    return [segment.log, segment.offsets.file, segment.times.file, *aborted]


def doom(segment: Segment, disk: Disk, *, with_snapshot: bool = True) -> list[Path]:
    """The segment is no longer part of its log: rename its files to `.deleted`, and also the snapshot of producers at
    its base offset if `with_snapshot`. Returns their paths. Raises `OSError`."""
    segment.deleted = True
    paths = []
    for lazy in files_of(segment, disk):
        lazy.rename(lazy.path.with_name(lazy.path.name + DELETED_SUFFIX))
        paths.append(lazy.path)
    snapshot = segment.folder / file_name(segment.base_offset, SNAPSHOT_SUFFIX)
    if with_snapshot and disk.exists(snapshot):
        doomed = snapshot.with_name(snapshot.name + DELETED_SUFFIX)
        disk.rename(snapshot, doomed)
        paths.append(doomed)
    segment.let_go()
    return paths
