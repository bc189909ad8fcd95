"""Cuts the ranges of a load into portions, one for each Spark task. Pure.

A portion belongs to one topic, because a task writes one file for each date of its portion: few portions make few
files. A small topic is therefore one portion, and no more portions are made than keep the cores busy.
"""

from collections.abc import Iterable, Sequence

from moldau.pipeline.ranges import OffsetRange, cut, pack

TASKS_PER_CORE = 2
PORTION_RECORDS_MIN = 500_000
"""A portion is not cut if it has fewer: at more than a million records a second, starting a task would not pay."""


def portions(ranges: Iterable[OffsetRange], cores: int) -> list[list[OffsetRange]]:
    """The portions of a load, the largest first."""
    by_topic: dict[str, list[OffsetRange]] = {}
    for part in ranges:
        by_topic.setdefault(part.topic, []).append(part)
    total = sum(_size(parts) for parts in by_topic.values())
    packed: list[list[OffsetRange]] = []
    for parts in by_topic.values():
        size = _size(parts)
        share = -(-size * TASKS_PER_CORE * cores // total)
        count = max(1, min(share, -(-size // PORTION_RECORDS_MIN)))
        packed += pack(cut(parts, -(-size // count)), count)
    return [sorted(parts) for parts in sorted(packed, key=lambda parts: (-_size(parts), parts))]


def _size(parts: Sequence[OffsetRange]) -> int:
    return sum(part.size for part in parts)
