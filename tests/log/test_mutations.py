"""Bugs of retention, and of what compaction takes, put in on purpose: the tests of each rule find them. What a crash
shows is in `tests/crash_points`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.log.segment import Segment
from tests.log import test_retention as retention
from tests.log.compaction import test_cleaning as cleaning
from tests.log.compaction import test_dirtiness as dirtiness
from tests.replacing import Instead, assert_found, returns

DELETABLE = "moldau.log.retention:deletable"
DIRTINESS = "moldau.log.compaction.dirtiness"
Do = Callable[..., Any]


def _beyond_the_watermark(deletable: Do, *log: Any) -> Any:
    *rest, log_end, _ = log
    return deletable(*rest, log_end, log_end)


def _one_too_many(deletable: Do, segments: Any, *rest: Any) -> tuple[int, str]:
    count, why = deletable(segments, *rest)
    return min(count + 1, len(segments) - 1), why


def _what_is_not_stable(dirt_of: Do, segments: Any, config: Any, first: int, stable: int, now_ms: int) -> Any:
    return dirt_of(segments, config, first, 1 << 62, now_ms)


def _of_any_age(dirt_of: Do, segments: Any, config: Any, first: int, stable: int, now_ms: int) -> Any:
    return dirt_of(segments, config, first, stable, now_ms + (1 << 50))


def _only_of_records(largest_timestamp: Do, self: Segment) -> int:
    return largest_timestamp(self) if self.max_timestamp >= 0 else 1 << 62


BUGS: dict[str, tuple[Instead, Callable[[Path], None]]] = {
    "records that are not committed are too old": (
        Instead(DELETABLE, _beyond_the_watermark),
        retention.test_nothing_at_or_above_the_high_watermark_goes,
    ),
    "one segment too many goes": (
        Instead(DELETABLE, _one_too_many),
        retention.test_the_oldest_segments_go_until_the_log_fits_its_size,
    ),
    "a compacted topic loses old records": (
        Instead("moldau.config:TopicConfig.deletes", returns(True)),
        retention.test_a_compacted_topic_loses_only_what_is_below_its_start,
    ),
    "records without a time never go": (
        Instead("moldau.log.segment:Segment.largest_timestamp", _only_of_records),
        retention.test_records_without_a_time_go_by_the_time_of_their_file,
    ),
    "what is not stable is compacted": (
        Instead(f"{DIRTINESS}:dirt_of", _what_is_not_stable),
        dirtiness.test_nothing_that_is_not_stable_is_cleanable,
    ),
    "records are compacted before min.compaction.lag.ms": (
        Instead(f"{DIRTINESS}:dirt_of", _of_any_age),
        dirtiness.test_a_record_is_safe_for_the_least_compaction_lag,
    ),
    "records of aborted transactions stay": (
        Instead("moldau.log.compaction.compactor:CleanedTransactions.is_aborted", returns(False)),
        cleaning.test_records_of_aborted_transactions_go_and_their_markers_later,
    ),
    "a checkpoint of another log is believed": (
        Instead(
            f"{DIRTINESS}:first_dirty", lambda _, checkpoint, start, __: start if checkpoint is None else checkpoint
        ),
        lambda _: dirtiness.test_a_checkpoint_that_does_not_fit_the_log_says_nothing(21, 10),
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    bug, check = BUGS[name]
    assert_found(bug, lambda: check(tmp_path_factory.mktemp("log")))
