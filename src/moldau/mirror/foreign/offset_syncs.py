"""Which pairs of offsets are told, and how an offset of the source is translated by them. Pure.

A pair says where one record of the source is in its mirror. It is told by MirrorMaker's rule: for the first record of a
partition that a worker copies, after a gap of the source's offsets, and as soon as a translation would be
`offset.lag.max` records too early. The last record is told later, if nothing follows it.

An offset is translated by the last pair at or before it. At the pair's own offset that is exact. Behind it the mirror's
position is one behind the pair: how many records in between were copied is not known (markers, compaction), and a
position that is too early has a group read records again, one that is too late has it lose some.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from moldau.names import TopicPartition

LAG_MAX: Final = 100
"""MirrorMaker's default of `offset.lag.max`."""
SYNCS_MAX: Final = 10
"""Pairs told of one partition in one transaction: MirrorMaker has as many on their way at once."""

Pair = tuple[int, int]
"""The offset of a record in the source, and in the mirror."""


class Run(NamedTuple):
    """Records whose offsets follow one another: from `upstream` on in the source, `downstream` on in the mirror."""

    upstream: int
    downstream: int
    records: int


def runs_of(offsets: Sequence[int], placed: Iterable[tuple[int, int]]) -> list[Run]:
    """The runs of records with these offsets in the source, which are in the mirror in pieces: (first offset, records)
    of each."""
    runs: list[Run] = []
    at = 0
    for downstream, count in placed:
        piece = offsets[at : at + count]
        at += count
        if not piece:
            continue
        starts = [0]
        if piece[-1] - piece[0] != len(piece) - 1:
            starts += [n for n in range(1, len(piece)) if piece[n] != piece[n - 1] + 1]
        for start, end in zip(starts, [*starts[1:], len(piece)], strict=True):
            runs.append(Run(piece[start], downstream + start, end - start))
    return runs


class SyncRule:
    """What was told of one partition. Make a new one when copying begins, or begins again: `upstream` is the next
    offset of the source then, `downstream` where the mirror ended after what is before it."""

    __slots__ = ("_downstream", "_lag_max", "_told", "_upstream")

    def __init__(self, lag_max: int = LAG_MAX, upstream: int = 0, downstream: int = 0):
        self._lag_max = lag_max
        # If the offset before was a marker's, the pair of both is too early, and never too late.
        self._upstream, self._downstream = upstream - 1, downstream - 1
        self._told: Pair | None = None

    def copied(self, runs: Iterable[Run]) -> list[Pair]:
        """The pairs to be told of these records, in order."""
        pairs: list[Pair] = []
        for upstream, downstream, count in runs:
            told = self._told
            is_gap = upstream != self._upstream + 1 or downstream < self._downstream
            if told is None or is_gap or downstream - (told[1] + 1) >= self._lag_max:
                pairs.append((upstream, downstream))
                self._told = told = pairs[-1]
            while (step := told[1] + 1 + self._lag_max - downstream) < count:
                pairs.append((upstream + step, downstream + step))
                self._told = told = pairs[-1]
            self._upstream, self._downstream = upstream + count - 1, downstream + count - 1
        return thinned(pairs)

    def last(self) -> list[Pair]:
        """The pair of the last record, if it was not told; it counts as told."""
        if self._downstream < 0 or self._told == (self._upstream, self._downstream):
            return []
        self._told = self._upstream, self._downstream
        return [self._told]


def thinned(pairs: list[Pair]) -> list[Pair]:
    """At most `SYNCS_MAX` of the pairs, evenly, the last among them."""
    step = -(-len(pairs) // SYNCS_MAX)
    return pairs if step <= 1 else pairs[::-1][::step][::-1]


class OffsetTranslation:
    """The pairs that were told, and the translation of offsets. `is_complete`: they were read up to their end once;
    before that nothing is translated."""

    def __init__(self) -> None:
        self.is_complete = False
        self._pairs: dict[TopicPartition, list[Pair]] = {}

    def add(self, tp: TopicPartition, upstream: int, downstream: int) -> None:
        """Take in the next pair. If it goes back in the source or in the mirror, a topic was made anew: what was told
        before is of the topic that is gone."""
        pairs = self._pairs.setdefault(tp, [])
        if pairs and (upstream < pairs[-1][0] or downstream < pairs[-1][1]):
            pairs.clear()
        if pairs and pairs[-1][0] == upstream:
            pairs.pop()
        pairs.append((upstream, downstream))
        self._pairs[tp] = _spread(pairs)

    def translate(self, tp: TopicPartition, offset: int) -> int | None:
        """The position in the mirror for a position in the source, never behind it; None if it is not known."""
        if not self.is_complete:
            return None
        for upstream, downstream in reversed(self._pairs.get(tp, ())):
            if upstream <= offset:
                return downstream if upstream == offset else downstream + 1
        return None


def _spread(pairs: list[Pair]) -> list[Pair]:
    """The pairs to be kept: the first and the last of those whose distance from the newest has the same power of two in
    it. So at most 128 stay, more of them where groups are."""
    newest = pairs[-1][0]
    kept: list[Pair] = []
    powers: list[int] = []
    for pair in pairs:
        power = (newest - pair[0]).bit_length()
        if powers[-2:] == [power, power]:
            kept.pop()
            powers.pop()
        kept.append(pair)
        powers.append(power)
    return kept
