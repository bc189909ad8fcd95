"""The offsets of partitions in the checkpoint files of a log folder: as they were read, and as last written.

    recovery-point-offset-checkpoint     below it everything was flushed
    log-start-offset-checkpoint          where logs start that no longer start with their first segment
    replication-offset-checkpoint        the high watermarks
    closed-offset-checkpoint             where those logs end that a stop had closed when it was cut off; not Kafka's

Files are written one at a time, each with what holds at that moment: a recovery point may fall when a log is truncated,
and an older, higher one must never be written after it. Every method that writes blocks and raises `OSError`.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders import identity
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.runtime import Disk

logger = logging.getLogger(__name__)


class FolderCheckpoints:
    """`logs`: the folder's open logs, which change. `unloaded`: partitions that an interrupted start did not open; what
    was written down about them is kept. `knows_recovery_points`: their checkpoint could be read."""

    def __init__(self, disk: Disk, path: Path, logs: Mapping[TopicPartition, Log]):
        """Reads the files. Raises `OSError`."""
        self._disk = disk
        self._path = path
        self._logs = logs
        self._writing = threading.Lock()
        self.unloaded: list[TopicPartition] = []
        self.knows_recovery_points = True
        self.closed_ends = identity.take_closed_ends(disk, path)
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        self.log_starts = self._read(checkpoints.LOG_STARTS)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARKS)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        """A damaged checkpoint counts as all zero, so that more is recovered rather than less."""
        try:
            return checkpoints.read_offsets(self._disk, self._path / name)
        except CorruptCheckpoint as error:
            logger.warning("%s; it counts as empty", error)
            self.knows_recovery_points = self.knows_recovery_points and name != checkpoints.RECOVERY_POINTS
            return {}

    def mentions(self, tp: TopicPartition) -> bool:
        """Whether any checkpoint has an offset of a partition of this name."""
        return any(tp in offsets for offsets in (self.recovery_points, self.log_starts, self.high_watermarks))

    def write(self, high_watermarks: Mapping[TopicPartition, int] | None) -> None:
        """Write recovery points, log starts and, if given, high watermarks."""
        self.write_recovery_points()
        self.write_log_starts()
        if high_watermarks is not None:
            self.write_high_watermarks(high_watermarks)

    def write_recovery_points(self) -> None:
        def points() -> dict[TopicPartition, int]:
            self.recovery_points = self._of_unloaded(self.recovery_points)
            self.recovery_points.update((tp, log.recovery_point) for tp, log in list(self._logs.items()))
            return self.recovery_points

        self._write(checkpoints.RECOVERY_POINTS, points)

    def write_log_starts(self) -> None:
        def starts() -> dict[TopicPartition, int]:
            logs = list(self._logs.items())
            self.log_starts = self._of_unloaded(self.log_starts)
            self.log_starts.update((tp, int(log.log_start_offset)) for tp, log in logs if not log.shows_its_start)
            return self.log_starts

        self._write(checkpoints.LOG_STARTS, starts)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self.high_watermarks = dict(high_watermarks)
        self._write(checkpoints.HIGH_WATERMARKS, lambda: high_watermarks)

    def write_closed_ends(self, closed: Mapping[TopicPartition, int]) -> None:
        """Write the closed logs and their ends, for a start after an interrupted stop."""
        self.write_recovery_points()
        self.write_log_starts()
        self._write(checkpoints.CLOSED_ENDS, lambda: {**self._of_unloaded(self.closed_ends), **closed})

    def restore_closed_ends(self) -> None:
        """Nothing was opened: the next start finds what this one found."""
        self._write(checkpoints.CLOSED_ENDS, lambda: self.closed_ends)

    def _of_unloaded(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {tp: offsets[tp] for tp in self.unloaded if tp in offsets}

    def _write(self, name: str, offsets: Callable[[], Mapping[TopicPartition, int]]) -> None:
        with self._writing:
            checkpoints.write_offsets(self._disk, self._path / name, offsets())
