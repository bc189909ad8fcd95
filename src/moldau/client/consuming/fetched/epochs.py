"""The leader epochs of one partition's records, as a reader met them (KIP-320).

An offset alone does not say which record it means: after an unclean election another leader may write other records at
the same offsets. A position is therefore an offset and the leader epoch of the record before it. Pure.
"""

from bisect import bisect_right

from moldau.client.given_positions import NO_EPOCH

KEPT_MAX = 100
"""Epochs that are remembered; each further change of leaders lets the oldest one go."""


class RecordEpochs:
    """The epoch of each record from some offset to `end`. Epochs only grow; each begins at its first record."""

    __slots__ = ("_begins", "end")

    def __init__(self, begins: tuple[tuple[int, int], ...] = (), end: int = 0):
        self._begins = begins
        self.end = end

    @classmethod
    def before(cls, offset: int, epoch: int | None) -> "RecordEpochs":
        """Those of a reader that starts at `offset` and knows at most the epoch of the record before it."""
        known = epoch is not None and epoch >= 0
        return cls(((offset - 1, int(epoch or 0)),) if known else (), offset)

    def note(self, first_offset: int, epoch: int) -> None:
        """The records from `first_offset` on have this epoch; `end` has to follow. An epoch below the one before it, or
        none, tells nothing about what was read before: all that is forgotten."""
        begin = max(first_offset, self.end)
        last = self._begins[-1][1] if self._begins else NO_EPOCH
        if epoch < 0:
            self._begins = ()
        elif epoch < last:
            self._begins = ((begin, epoch),)
        elif epoch > last:
            self._begins = (*self._begins[1 - KEPT_MAX :], (begin, epoch))

    def of(self, offset: int) -> int | None:
        """The epoch of the record at `offset`; None if it is unknown."""
        begins = self._begins
        at = bisect_right(begins, offset, key=lambda begin: begin[0])
        return begins[at - 1][1] if at and offset < self.end else None

    def until(self, end: int) -> "RecordEpochs":
        """Those of the records below `end`."""
        return RecordEpochs(tuple(begin for begin in self._begins if begin[0] < end), min(end, self.end))

    def first_above(self, epoch: int) -> int | None:
        """The first offset that is known to have a later epoch than this; None if there is none."""
        return next((offset for offset, one in self._begins if one > epoch), None)
