"""Files that are no longer part of any log, and are removed after `file.delete.delay.ms`.

They already have another name (`.deleted` for a segment's files, `-delete` for a partition's folder), so that a start
after a crash finishes the work. Slow readers keep them open. Removing blocks: it runs in an executor.
"""

import threading
from pathlib import Path

from moldau.runtime import Disk


class Doomed:
    """Paths and when each may go."""

    def __init__(self, disk: Disk):
        self._disk = disk
        self._due: list[tuple[int, Path]] = []
        self._lock = threading.Lock()

    def add(self, path: Path, due_ms: int) -> None:
        with self._lock:
            self._due.append((due_ms, path))

    def remove_due(self, now_ms: int) -> int:
        """Remove what is due; how many that were. Raises `OSError`."""
        with self._lock:
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
