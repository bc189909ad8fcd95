"""The progress of a log folder's recovery: partitions, segments and bytes that are left.

After an unclean stop everything behind the recovery points is read, which takes long where much was not flushed. What
there is to read is counted before the first byte of it, by the sizes of the files alone. Several threads report; a
line is logged at the start and the end if there is much, and every ten seconds if it takes long.
"""

import logging
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from moldau.log.file_names import LOG_SUFFIX, base_of, is_segment_name
from moldau.names import TopicPartition, counted
from moldau.runtime import Runtime

EVERY_MS: Final = 10_000
LARGE_BYTES: Final = 64 << 20
"""Less than this is read before anybody asks how long it takes."""

logger = logging.getLogger(__name__)


class Progress:
    """Of one folder. Making it blocks; raises `OSError`."""

    def __init__(
        self,
        path: Path,
        runtime: Runtime,
        recovery_points: Mapping[TopicPartition, int],
        partitions: Collection[TopicPartition],
    ):
        self._path = path
        self._clock = runtime.clock
        self._lock = threading.Lock()
        self._begun_ms = self._said_ms = runtime.clock.now_ms()
        self.partitions = len(partitions)
        self.segments = 0
        self.bytes = 0
        for tp in partitions:
            self._count(path / str(tp), runtime, recovery_points.get(tp, 0))
        self._much = self.bytes >= LARGE_BYTES
        if self._much:
            logger.info("%s was not closed cleanly: recovery reads %s", path, self._left())

    def _count(self, folder: Path, runtime: Runtime, recovery_point: int) -> None:
        listed = runtime.disk.list(folder)
        names = [name for name in listed if name.endswith(LOG_SUFFIX) and is_segment_name(name)]
        before = [name for name in names if base_of(name) <= recovery_point]
        for name in names[max(len(before) - 1, 0) :]:
            self.segments += 1
            self.bytes += runtime.disk.size(folder / name)

    def segment_done(self, size: int) -> None:
        """One segment of that size was read, or turned out to be superfluous."""
        with self._lock:
            self.segments -= 1
            self.bytes -= size
            now_ms = self._clock.now_ms()
            if now_ms - self._said_ms >= EVERY_MS:
                self._said_ms = now_ms
                logger.info("recovering %s: %s left", self._path, self._left())

    def partition_done(self) -> None:
        with self._lock:
            self.partitions -= 1
            seconds = (self._clock.now_ms() - self._begun_ms) / 1000
            if not self.partitions and (self._much or seconds * 1000 >= EVERY_MS):
                logger.info("%s was recovered in %.1f seconds", self._path, seconds)

    def _left(self) -> str:
        partitions, segments = counted(self.partitions, "partition"), counted(max(self.segments, 0), "segment")
        return f"{partitions}, {segments}, {max(self.bytes, 0) / 1e6:.1f} MB"
