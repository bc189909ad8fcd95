"""Flushing a log: its recovery point, and what must be flushed before that may rise.

A flush takes the segments that were not flushed since they grew, the leader epochs, and the names of new files with the
file that says whose partition it is; only then does the recovery point move. It blocks and may run beside appends, in
any thread, one at a time: a flush holds `lock`, and checks again under it whether the log still serves, since a
failed fsync is never tried again. Where only a descriptor was missing, what is not flushed is still noted as such, and
the next flush takes it.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from moldau.log import checkpoints
from moldau.log.epochs import Epochs
from moldau.log.recovering.recovery import LoadedLog
from moldau.log.segment import Segment
from moldau.log.services import LogServices

NOT_FALLEN: Final = (1 << 63) - 1


class Flushing:
    """`unsynced_names`: the folder has files whose names might not outlive a power loss. `snapshots`: those of
    producers that might not. `done_ms`: when all was flushed last, as `elapsed_ms` says. `fallen_to`: the lowest offset
    to which the recovery point has fallen since `take_fall`, `NOT_FALLEN` if it has not."""

    __slots__ = (
        "_clock", "_disk", "_folder", "_write_recovery_points", "done_ms", "fallen_to", "lock", "recovery_point",
        "snapshots", "unsynced_names",
    )  # fmt: skip

    def __init__(self, folder: Path, services: LogServices, loaded: LoadedLog):
        self._disk = services.files.disk
        self._folder = folder
        self._write_recovery_points = services.write_recovery_points
        self.recovery_point = loaded.recovery_point
        self.fallen_to = NOT_FALLEN
        self.unsynced_names = loaded.changed_names
        self.snapshots = loaded.snapshots
        self._clock = services.runtime.clock
        self.done_ms = self.elapsed_ms()
        self.lock = threading.Lock()

    def lower(self, recovery_point: int) -> None:
        """The log is about to be cut at this offset: nothing behind it counts as flushed any more, and the folder's
        checkpoint says so. Raises `OSError`; then the recovery point stays."""
        before = self.recovery_point
        if recovery_point < before:
            self.recovery_point, self.fallen_to = recovery_point, min(self.fallen_to, recovery_point)
            try:
                if self._write_recovery_points is not None:
                    self._write_recovery_points()
            except BaseException:
                self.recovery_point = before
                raise

    def take_fall(self) -> int:
        """`fallen_to`, which is `NOT_FALLEN` from then on: the records behind it may be others than before."""
        fallen_to, self.fallen_to = self.fallen_to, NOT_FALLEN
        return fallen_to

    def elapsed_ms(self) -> int:
        """The wall clock may be set back, and `flush.ms` must not wait until it has caught up."""
        return int(self._clock.elapsed_s() * 1000)

    def age_ms(self) -> int:
        return self.elapsed_ms() - self.done_ms

    def is_wanted(self, end: int, epochs: Epochs) -> bool:
        """Whether anything below `end` may not last yet."""
        return end > self.recovery_point or epochs.dirty or self.unsynced_names

    def force(
        self, segments: Sequence[Segment], end: int, epochs: Epochs, *, with_active: bool = True, closing: bool = False
    ) -> None:
        """Flush these segments, the last of which is active and which hold everything below `end`, and what is known of
        them. Raises `OSError`."""
        active = segments[-1]
        for segment in segments[_first_unflushed(segments) :]:
            if not segment.flushed and not segment.deleted and (with_active or segment is not active):
                segment.flush(active=segment is active and not closing)
        if epochs.dirty:
            epochs.dirty = False
            try:
                checkpoints.write_epochs(self._disk, self._folder, epochs.starts)
            except OSError:
                epochs.dirty = True
                raise
        self.force_snapshots()
        self._force_names()
        self.recovery_point = max(self.recovery_point, end)

    def write_out(self, epochs: Epochs) -> None:
        """Write what `force` would write, without a flush. Raises `OSError`."""
        if epochs.dirty:
            checkpoints.stage_epochs(self._disk, self._folder, epochs.starts)

    def was_forced(self, segments: Sequence[Segment], end: int, epochs: Epochs) -> bool:
        """Everything below `end` was flushed with its whole file system, after `write_out`. False if that has to be
        done once more, for the name of what was staged. Raises `OSError`."""
        if epochs.dirty:
            checkpoints.place_file(self._disk, self._folder / checkpoints.LEADER_EPOCHS)
            epochs.dirty, self.unsynced_names = False, True
            return False
        for segment in segments[_first_unflushed(segments) :]:
            segment.assume_flushed()
        self.unsynced_names = False
        self.snapshots.clear()
        self.recovery_point = max(self.recovery_point, end)
        return True

    def _force_names(self) -> None:
        if not self.unsynced_names:
            return
        self.unsynced_names = False
        try:
            checkpoints.flush_topic_id(self._disk, self._folder)
            self._disk.sync_folder(self._folder)
            self._disk.sync_folder(self._folder.parent)
        except OSError:
            self.unsynced_names = True
            raise

    def force_snapshots(self) -> None:
        """Flush the snapshots of producers that may not last. One is forgotten only then: retention, in another thread,
        removes the batches that it stands for as soon as none is left. Raises `OSError`."""
        for path in list(self.snapshots):
            with suppress(FileNotFoundError):  # gone with its segment
                checkpoints.flush_file(self._disk, path)
            with suppress(ValueError):  # another thread has flushed it, too
                self.snapshots.remove(path)


def _first_unflushed(segments: Sequence[Segment]) -> int:
    at = len(segments) - 1
    while at > 0 and not segments[at - 1].flushed:
        at -= 1
    return at
