"""A search among many segments looks at few of them."""

from pathlib import Path

import pytest

from moldau.log.segment import Segment
from tests.log.making import NOW_MS, append, config, open_log, rows


def test_a_time_is_looked_for_in_few_segments_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=80))
    for number in range(200):
        append(log, rows(1, NOW_MS + number))
    assert log.offset_for_time(NOW_MS + 5) == (NOW_MS + 5, 5)
    asked = []
    largest_timestamp = Segment.largest_timestamp
    monkeypatch.setattr(Segment, "largest_timestamp", lambda self: asked.append(self) or largest_timestamp(self))
    for number in (0, 17, 150, 199):
        assert log.offset_for_time(NOW_MS + number) == (NOW_MS + number, number)
    assert log.offset_for_time(NOW_MS + 200) is None
    assert len(asked) == 5


def test_times_are_found_as_segments_come_and_go(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=80, retention_bytes=500))
    times = [NOW_MS + (number * 7919) % 50 for number in range(40)]
    for number, time in enumerate(times):
        append(log, rows(1, time))
        if number % 10 == 9:
            log.retain(NOW_MS, number + 1)
        start = int(log.log_start_offset)
        for asked in (NOW_MS, NOW_MS + 20, NOW_MS + 45, NOW_MS + 50):
            there = ((time, at) for at, time in enumerate(times[: number + 1]) if at >= start and time >= asked)
            assert log.offset_for_time(asked) == next(there, None)
