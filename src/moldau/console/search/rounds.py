"""The order in which a topic is searched: windows of offsets, in rounds over all partitions. Pure.

The first round is small, so that it answers at once; rounds grow, so that a long search costs few requests. Within a
round all partitions advance, so that what is found comes in about the order of time.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

FIRST, ROUND_MAX, WINDOW_MIN = 200, 400_000, 10_000
"""Offsets of a partition in the first round, of all partitions in the largest one, of a partition there at least."""
Ranges = Mapping[int, tuple[int, int]]
"""Partition -> first offset and end."""


class SearchWindow(NamedTuple):
    """Offsets of one partition, from `start` up to `end` (excluded)."""

    partition: int
    start: int
    end: int


class SearchRound(NamedTuple):
    """Windows, and what is left of each partition when they have been searched."""

    windows: list[SearchWindow]
    left: dict[int, tuple[int, int]]


def rounds(ranges: Ranges, *, newest_first: bool, first: int = FIRST) -> Iterator[SearchRound]:
    """All of these ranges, without a gap or an overlap."""
    left = {number: (start, end) for number, (start, end) in sorted(ranges.items()) if start < end}
    most = max(ROUND_MAX // max(len(left), 1), WINDOW_MIN)
    size = first
    while left:
        windows, after = [], dict[int, tuple[int, int]]()
        for number, (start, end) in left.items():
            if newest_first:
                window = SearchWindow(number, max(start, end - size), end)
                rest = start, window.start
            else:
                window = SearchWindow(number, start, min(end, start + size))
                rest = window.end, end
            windows.append(window)
            if rest[0] < rest[1]:
                after[number] = rest
        yield SearchRound(windows, after)
        left, size = after, min(size * 4, most)


def count(ranges: Ranges) -> int:
    """The offsets in these ranges."""
    return sum(max(end - start, 0) for start, end in ranges.values())


def place_of(left: Ranges) -> str:
    """What is left, as text for an event's id: a stream that broke goes on there."""
    return ",".join(f"{number}:{start}-{end}" for number, (start, end) in left.items())


def ranges_at(place: str, ranges: Ranges) -> dict[int, tuple[int, int]]:
    """What is left at this place, within the ranges; all of them if it is not a place."""
    found: dict[int, tuple[int, int]] = {}
    for piece in place.split(","):
        number, _, offsets = piece.partition(":")
        start, _, end = offsets.partition("-")
        if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in (number, start, end)):
            return dict(ranges)
        if int(number) in ranges:
            low, high = ranges[int(number)]
            found[int(number)] = max(int(start), low), min(int(end), high)
    return found
