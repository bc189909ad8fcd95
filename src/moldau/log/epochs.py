"""Leader epochs: at which offset each leader of the partition began to write. Pure.

A list of (epoch, start offset), both rising. It answers which epoch wrote a record, and where an epoch ended, which
tells a follower how far it agrees with its leader. It never goes below the log's start nor beyond its end.
Source: KIP-101, KIP-279, KIP-320.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from moldau.names import LeaderEpoch, Offset

NO_EPOCH = LeaderEpoch(-1)


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class Epochs:
    """`dirty` says that something changed since it was last written to its checkpoint."""

    __slots__ = ("_starts", "dirty", "latest")

    def __init__(self, starts: Iterable[tuple[int, int]] = ()):
        self._starts: list[EpochStart] = []
        self.latest: int = NO_EPOCH
        for epoch, start_offset in starts:
            self.assign(epoch, start_offset)
        self.dirty = False

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def starts(self) -> tuple[EpochStart, ...]:
        return tuple(self._starts)

    def assign(self, epoch: int, start_offset: int) -> None:
        """The leader of `epoch` writes from `start_offset` on; entries that contradict it go."""
        if epoch < 0 or start_offset < 0:
            return
        starts = self._starts
        if starts and starts[-1].epoch == epoch and start_offset >= starts[-1].start_offset:
            return
        while starts and (starts[-1].epoch >= epoch or starts[-1].start_offset >= start_offset):
            starts.pop()
        starts.append(EpochStart(epoch, start_offset))
        self._changed()

    def epoch_at(self, offset: int) -> LeaderEpoch:
        """The epoch that wrote, or will write, `offset`; -1 where nothing is known."""
        at = bisect_right(self._starts, offset, key=lambda start: start.start_offset)
        return LeaderEpoch(self._starts[at - 1].epoch) if at else NO_EPOCH

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[LeaderEpoch, Offset]:
        """The largest epoch at or below `epoch`, and where it ended; (-1, -1) where that is not known.

        An epoch below the oldest known one ended where that one began, and is answered under its own number.
        """
        starts = self._starts
        if epoch < 0 or not starts or epoch > starts[-1].epoch:
            return NO_EPOCH, Offset(-1)
        if epoch == starts[-1].epoch:
            return LeaderEpoch(epoch), Offset(log_end_offset)
        above = bisect_right(starts, epoch, key=lambda start: start.epoch)
        largest = starts[above - 1].epoch if above else epoch
        return LeaderEpoch(largest), Offset(starts[above].start_offset)

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs of removed records: those from `end_offset` on."""
        kept = bisect_left(self._starts, end_offset, key=lambda start: start.start_offset)
        if kept < len(self._starts):
            del self._starts[kept:]
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs of removed records, below `start_offset`, where the epoch of that offset begins now."""
        at = bisect_right(self._starts, start_offset, key=lambda start: start.start_offset)
        if at > 1 or (at and self._starts[0].start_offset < start_offset):
            self._starts[:at] = [EpochStart(self._starts[at - 1].epoch, start_offset)]
            self._changed()

    def _changed(self) -> None:
        self.dirty = True
        self.latest = self._starts[-1].epoch if self._starts else NO_EPOCH
