"""A search that goes on while its stream is read: rounds of a scan, sorted by time, up to the limit."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from typing import NamedTuple

from moldau.console.search.records import ShownRecord
from moldau.console.search.rounds import Ranges
from moldau.console.search.scanning import DamagedRange, ScanStep, TopicScan
from moldau.console.search.wanted import SearchWanted
from moldau.errors import ErrorCode, KafkaError

SHOW_EACH_S = 0.25


class SearchProgress(NamedTuple):
    """Records to show now, and how far the search is. `left` is set at the end of a round: what is not searched yet.
    `is_full`: the limit was reached, and the search has ended. `damaged` is what could not be read just now."""

    records: list[ShownRecord]
    scanned: int
    left: Ranges | None = None
    is_full: bool = False
    damaged: DamagedRange | None = None


async def searched(scan: TopicScan, wanted: SearchWanted) -> AsyncIterator[SearchProgress]:
    """The hits in order of time within each round, and news four times a second. Closing the iterator ends the scan.
    Raises `KafkaError`."""
    loop = asyncio.get_running_loop()
    sign = -1 if wanted.newest_first else 1
    best: list[tuple[tuple[int, int, int], ShownRecord]] = []
    room, told_s = wanted.limit, loop.time()
    try:
        while (step := await scan.next()) is not None:
            # Of a round only as many as will be shown are kept: the first of them in time.
            for one in step.hits:
                rank = sign * one.timestamp_ms, sign * one.offset, one.partition
                entry = (_negative(rank), one)
                if len(best) < room:
                    heapq.heappush(best, entry)
                elif entry[0] > best[0][0]:
                    heapq.heapreplace(best, entry)
            if step.damaged is not None:
                yield SearchProgress([], step.scanned, damaged=step.damaged)
            if step.left is not None:
                records = _in_order(best)
                best, room = [], room - len(records)
                yield SearchProgress(records, step.scanned, step.left, is_full=room <= 0)
                if room <= 0:
                    return
                told_s = loop.time()
            elif loop.time() - told_s >= SHOW_EACH_S:
                told_s = loop.time()
                records = _in_order(best) if len(best) * 2 < room else []
                if records:  # few so far: they need not wait for the end of a large round
                    best, room = [], room - len(records)
                yield SearchProgress(records, step.scanned)
    finally:
        await scan.end()


def _in_order(best: "list[tuple[tuple[int, int, int], ShownRecord]]") -> list[ShownRecord]:
    return [one for _, one in sorted(best, key=lambda entry: _negative(entry[0]))]


def _negative(rank: tuple[int, int, int]) -> tuple[int, int, int]:
    return -rank[0], -rank[1], -rank[2]


async def steps(scan: TopicScan, first: ScanStep | None) -> AsyncIterator[ScanStep]:
    """The first step and each that follows, in the order of offsets, for an export. It ends at what cannot be read: a
    file does not say what it lacks. Raises `KafkaError`."""
    step = first
    try:
        while step is not None:
            if step.damaged is not None:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(step.damaged))
            yield step
            step = await scan.next()
    finally:
        await scan.end()
