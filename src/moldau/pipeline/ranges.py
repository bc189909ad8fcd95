"""Offset ranges of partitions: cutting them into tasks, and sharing a record limit among partitions.

Pure functions over names and numbers. A range includes `start` and excludes `end`; functions never return an empty
range. Nothing here knows a broker, a file or Spark.
"""

import heapq
import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.names import TopicPartition


class OffsetRange(NamedTuple):
    """Offsets `start` (included) to `end` (excluded) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """The non-empty ranges from each start to its end, in the order of topic and partition."""
    return [
        OffsetRange(tp.topic, tp.partition, start[tp], end[tp])
        for tp in sorted(end)
        if tp in start and end[tp] > start[tp]
    ]


def cut(ranges: Iterable[OffsetRange], records_max: int) -> list[OffsetRange]:
    """Cut every range into even pieces of at most `records_max` offsets, the largest piece first."""
    assert records_max > 0
    pieces: list[OffsetRange] = []
    for whole in ranges:
        count = -(-whole.size // records_max)
        edges = [whole.start + whole.size * i // count for i in range(count + 1)]
        pieces += [whole._replace(start=a, end=b) for a, b in itertools.pairwise(edges)]
    return sorted(pieces, key=lambda piece: (-piece.size, piece))


def ration(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], records_max: int
) -> dict[TopicPartition, int]:
    """New ends that admit at most `records_max` offsets in total, in proportion to each partition's waiting offsets.

    The offsets lost to rounding go to the largest remainders, so a positive limit always makes progress.
    """
    waiting = {tp: max(0, end[tp] - start.get(tp, end[tp])) for tp in sorted(end)}
    total = sum(waiting.values())
    if total <= records_max:
        return dict(end)
    share = {tp: records_max * count // total for tp, count in waiting.items()}
    left = records_max - sum(share.values())
    by_remainder = sorted(waiting, key=lambda tp: (-(records_max * waiting[tp] % total), tp))
    for tp in by_remainder[:left]:
        share[tp] += 1
    return {tp: start.get(tp, end[tp]) + min(share[tp], count) for tp, count in waiting.items()}


def pack(pieces: Iterable[OffsetRange], tasks_max: int) -> list[list[OffsetRange]]:
    """Distribute the pieces to at most `tasks_max` tasks of about the same size, each with at least one piece."""
    bins: list[tuple[int, int, list[OffsetRange]]] = [(0, number, []) for number in range(tasks_max)]
    heapq.heapify(bins)
    for piece in sorted(pieces, key=lambda one: (-one.size, one)):
        size, number, packed = heapq.heappop(bins)
        heapq.heappush(bins, (size + piece.size, number, [*packed, piece]))
    return [packed for _, _, packed in sorted(bins, key=lambda one: one[1]) if packed]
