"""Hits of a round are shown in order of time, up to the limit; few hits are shown before a large round ends."""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest

from moldau.console.search import searching
from moldau.console.search.records import ShownRecord
from moldau.console.search.scanning import ScanStep, TopicScan
from moldau.console.search.wanted import SearchWanted


class Steps:
    """A scan whose steps are known."""

    def __init__(self, steps: Iterable[ScanStep]):
        self._steps = iter(steps)
        self.has_ended = False

    async def next(self) -> ScanStep | None:
        return next(self._steps, None)

    async def end(self) -> None:
        self.has_ended = True


def hits(*times: int) -> list[ShownRecord]:
    return [ShownRecord(0, time, time, None, None, [], 0) for time in times]


def shown(limit: int, *steps: ScanStep) -> tuple[list[list[int]], bool, Any]:
    """The times of the records of each news, whether the limit was reached, and the scan."""
    scan = Steps(steps)

    async def run() -> tuple[list[list[int]], bool]:
        news = [one async for one in searching.searched(cast(TopicScan, scan), SearchWanted(limit=limit))]
        return [[record.timestamp_ms for record in one.records] for one in news], any(one.is_full for one in news)

    return *asyncio.run(run()), scan


def test_the_newest_of_a_round_are_shown_in_order() -> None:
    times, is_full, scan = shown(3, ScanStep(hits(1, 5), 2), ScanStep(hits(4, 2, 3), 5), ScanStep([], 5, {0: (0, 9)}))
    assert times == [[5, 4, 3]] and is_full and scan.has_ended


def test_rounds_follow_each_other_until_the_limit() -> None:
    first = ScanStep(hits(9), 1), ScanStep([], 1, {0: (0, 9)})
    times, is_full, _ = shown(2, *first, ScanStep(hits(3, 8), 3), ScanStep([], 3, {0: (0, 7)}), ScanStep(hits(1), 4))
    assert times == [[9], [8]] and is_full


def test_few_hits_do_not_wait_for_the_end_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SHOW_EACH_S", 0.0)
    steps = ScanStep(hits(7), 1), ScanStep([], 2), ScanStep(hits(8), 3), ScanStep([], 4, {})
    times, is_full, _ = shown(50, *steps)
    assert times == [[7], [], [8], []] and not is_full
