from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, config
from moldau.log.compaction.dirtiness import Dirt, dirt_of, first_dirty
from moldau.log.log import Log
from tests.log.compaction.compacting import compacted_log, put


def filled(folder: Path, segments: int = 4, **settings: Any) -> Log:
    """Segments of ten records each, a second between two segments, and an active one with one record."""
    log = compacted_log(folder / "p", **settings)
    for number in range(segments):
        for _ in range(10):
            put(log, ("a", "1"), now_ms=NOW_MS + 1000 * number)
        log.roll(NOW_MS)
    put(log, ("a", "1"), now_ms=NOW_MS + 1000 * segments)
    return log


def dirt(log: Log, first: int = 0, stable: int | None = None, now_ms: int = NOW_MS) -> Dirt:
    return dirt_of(log.segments, log.config, first, log.log_end_offset if stable is None else stable, now_ms)


def test_all_but_the_active_segment_of_a_new_log_is_dirty(tmp_path: Path) -> None:
    log = filled(tmp_path)
    found = dirt(log)
    assert (found.first_dirty_offset, found.end_offset, found.clean_bytes) == (0, 40, 0)
    assert found.cleanable_bytes == sum(segment.size for segment in log.segments[:-1])
    assert found.ratio == 1.0


def test_what_was_cleaned_before_is_clean(tmp_path: Path) -> None:
    log = filled(tmp_path)
    found = dirt(log, first=30)
    assert found.ratio == 0.25
    assert dirt(log, first=25).ratio == 0.5
    assert dirt(log, first=40).cleanable_bytes == 0


def test_nothing_that_is_not_stable_is_cleanable(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert [dirt(log, stable=stable).end_offset for stable in (0, 9, 10, 19, 20, 39, 40, 41)] == [
        0, 0, 10, 10, 20, 30, 40, 40,
    ]  # fmt: skip


def test_a_record_is_safe_for_the_least_compaction_lag(tmp_path: Path) -> None:
    log = filled(tmp_path, min_compaction_lag_ms=2500)
    ends = [dirt(log, now_ms=NOW_MS + ms).end_offset for ms in (0, 2499, 2500, 3500, 4499, 5500, 10**9)]
    assert ends == [0, 0, 10, 20, 20, 40, 40]
    assert dirt(log, first=25, now_ms=NOW_MS).end_offset == 20


def test_a_record_waits_no_longer_than_the_largest_compaction_lag(tmp_path: Path) -> None:
    log = filled(tmp_path, max_compaction_lag_ms=10_000, min_cleanable_dirty_ratio=1.0)
    assert not dirt(log, now_ms=NOW_MS + 10_000).suffices(log.config)
    assert dirt(log, now_ms=NOW_MS + 10_001).suffices(log.config)
    assert not dirt(log, first=10, now_ms=NOW_MS + 10_001).suffices(log.config)
    assert dirt(log, first=10, now_ms=NOW_MS + 11_001).suffices(log.config)
    assert not dirt(log, first=40, now_ms=NOW_MS + 10**9).suffices(log.config)


@pytest.mark.parametrize(("ratio", "suffices"), [(0.0, True), (0.24, True), (0.25, False), (0.5, False)])
def test_a_log_is_cleaned_when_enough_of_it_is_dirty(tmp_path: Path, ratio: float, suffices: bool) -> None:
    log = filled(tmp_path)
    assert dirt(log, first=30).suffices(config(min_cleanable_dirty_ratio=ratio)) is suffices


def test_an_empty_log_is_not_dirty(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    assert dirt(log) == Dirt(0, 0, 0, 0, False)
    assert dirt(log).ratio == 0.0
    assert not dirt(log).suffices(config(min_cleanable_dirty_ratio=0.0))


@pytest.mark.parametrize(
    ("checkpoint", "expected"), [(None, 10), (9, 10), (10, 10), (15, 15), (20, 20), (21, 10), (-1, 10)]
)
def test_a_checkpoint_that_does_not_fit_the_log_says_nothing(checkpoint: int | None, expected: int) -> None:
    assert first_dirty(checkpoint, 10, 20) == expected
