"""The stream operations in plain Python, which the tests compare Spark's answers with. Times are whole seconds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Event(NamedTuple):
    """One event: the case it belongs to (cases do not meet), its key, its item and its time."""

    case: int
    key: str
    item: str
    at: int


Windows = Counter[tuple[int, int, int, str]]
"""Counts by case, start, end and key."""


def windows_of(at: int, size: int, advance: int) -> list[tuple[int, int]]:
    """The windows [start, end) that hold a time."""
    last = at // advance * advance
    return [(start, start + size) for start in range(last, at - size, -advance)]


def counts(events: Iterable[Event], size: int, advance: int) -> Windows:
    return Counter(
        (event.case, start, end, event.key) for event in events for start, end in windows_of(event.at, size, advance)
    )


def sessions(events: Iterable[Event], gap: int) -> list[tuple[int, str, int, int, int]]:
    """Case, key, first time, last time and number of events of each session, sorted."""
    times: dict[tuple[int, str], list[int]] = defaultdict(list)
    for event in events:
        times[event.case, event.key].append(event.at)
    found = []
    for (case, key), each in times.items():
        run: list[int] = []
        for at in sorted(each):
            if run and at - run[-1] > gap:
                found.append((case, key, run[0], run[-1], len(run)))
                run = []
            run.append(at)
        found.append((case, key, run[0], run[-1], len(run)))
    return sorted(found)


def top_k(events: Sequence[Event], size: int, k: int) -> list[tuple[int, int, int, str, int]]:
    """Case, start, rank, item and count, sorted."""
    counted: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for event in events:
        counted[event.case, event.at // size * size][event.item] += 1
    return sorted(
        (case, start, rank, item, count)
        for (case, start), items in counted.items()
        for rank, (item, count) in enumerate(sorted(items.items(), key=lambda pair: (-pair[1], pair[0]))[:k], 1)
    )


def pairs(left: Sequence[Event], right: Sequence[Event], before: int, after: int) -> list[tuple[int, str, int, int]]:
    """Case, key and both times of each pair of rows of a key in the interval, sorted."""
    by_key: dict[tuple[int, str], list[int]] = defaultdict(list)
    for event in right:
        by_key[event.case, event.key].append(event.at)
    return sorted(
        (one.case, one.key, one.at, other)
        for one in left
        for other in by_key[one.case, one.key]
        if one.at - before <= other <= one.at + after
    )


def counts_of_stream(batches: Sequence[Sequence[Event]], size: int, advance: int, delay: int) -> tuple[Windows, int]:
    """Counts of the windows that append mode has emitted after these micro-batches, and how often events of a window
    and key were late in a micro-batch.

    A batch's watermark is the greatest time of earlier batches minus the delay. It drops events of windows that ended
    at or before the watermark of the batch before, then emits the windows that ended at or before its own watermark.
    """
    emitted, state, late = Windows(), Windows(), 0
    greatest, previous = 0, 0
    for batch in batches:
        watermark = max(greatest - delay, 0)
        for window, count in counts(batch, size, advance).items():
            if window[2] <= previous:
                late += 1
            else:
                state[window] += count
        for window in [one for one in state if one[2] <= watermark]:
            assert window not in emitted, "append mode emits a window once"
            emitted[window] = state.pop(window)
        previous = watermark
        greatest = max([greatest, *(event.at for event in batch)])
    return emitted, late
