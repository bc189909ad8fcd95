from pathlib import Path

import pytest

from harness.logs import NOW_MS, HandClock, append, config, names, open_log, read_all, rows
from moldau.log.log import Log
from moldau.runtime import Runtime

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


def filled(folder: Path, times: list[int], **settings: int | tuple[str, ...]) -> Log:
    """One record a segment, stamped with these times."""
    log = open_log(folder, config=config(segment_bytes=80, **settings))
    for time in times:
        append(log, rows(1, time))
    return log


def test_segments_whose_records_are_too_old_go(tmp_path: Path) -> None:
    log = filled(tmp_path / "p", [NOW_MS + DAY_MS * day for day in range(10)], retention_ms=WEEK_MS)
    assert log.retain(NOW_MS + WEEK_MS, 10) == []
    assert [segment.base_offset for segment in log.retain(NOW_MS + WEEK_MS + 1, 10)] == [0]
    assert [segment.base_offset for segment in log.retain(NOW_MS + WEEK_MS + 2 * DAY_MS + 1, 10)] == [1, 2]
    assert (log.log_start_offset, log.log_end_offset) == (3, 10)
    assert [record.offset for record in read_all(log)] == list(range(3, 10))


def test_a_record_of_2013_in_a_topic_with_default_settings_goes_at_the_first_pass(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(retention_ms=WEEK_MS))
    append(log, rows(5, 1_370_000_000_000), producer_id=7, producer_epoch=0, base_sequence=0)
    assert len(log.retain(NOW_MS, 5)) == 1
    assert (log.log_start_offset, log.log_end_offset, log.size) == (5, 5, 0)
    assert [segment.base_offset for segment in log.segments] == [5]
    assert log.retain(NOW_MS, 5) == []
    assert append(log, 1, producer_id=7, producer_epoch=0, base_sequence=5).base_offset == 5
    assert append(log, 5, producer_id=7, producer_epoch=0, base_sequence=0).duplicate


def test_records_from_the_future_that_stop_retention_are_told_to_the_operator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """KAFKA-18929: timestamps in microseconds kept all later segments until the disk was full, and no line said so."""
    log = filled(tmp_path / "p", [NOW_MS, NOW_MS * 1000, NOW_MS, NOW_MS], retention_ms=WEEK_MS)
    assert log.retain(NOW_MS, 4) == [] and not caplog.records
    assert [segment.base_offset for segment in log.retain(NOW_MS + WEEK_MS + 1, 4)] == [0]
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.startswith(f"{log.tp} keeps its records beyond retention.ms: one in the segment at offset 1 is stamped")
    caplog.clear()
    kept = filled(tmp_path / "q", [NOW_MS * 1000, NOW_MS])
    slightly = filled(tmp_path / "r", [NOW_MS + 60_000, NOW_MS], retention_ms=WEEK_MS)
    active = filled(tmp_path / "s", [NOW_MS * 1000], retention_ms=WEEK_MS)
    assert [one.retain(NOW_MS, 2) for one in (kept, slightly, active)] == [[], [], []]
    assert not caplog.records


def test_retention_minus_one_keeps_everything(tmp_path: Path) -> None:
    log = filled(tmp_path / "p", [0, 1, 2])
    assert log.retain(NOW_MS, 3) == []


def test_the_oldest_segments_go_until_the_log_fits_its_size(tmp_path: Path) -> None:
    log = filled(tmp_path / "p", [NOW_MS] * 10, retention_bytes=210)
    one = log.segments[0].size
    log.retain(NOW_MS, 10)
    assert len(log.segments) == -(-210 // one)
    assert log.size >= 210 > log.size - one


def test_nothing_at_or_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = filled(tmp_path / "p", [1] * 10, retention_ms=WEEK_MS)
    assert [segment.base_offset for segment in log.retain(NOW_MS, 4)] == [0, 1, 2, 3]
    assert log.retain(NOW_MS, 4) == []


def test_records_without_a_time_go_by_the_time_of_their_file(tmp_path: Path) -> None:
    log = filled(tmp_path / "p", [-1] * 3, retention_ms=WEEK_MS)
    written_ms = Runtime().clock.now_ms()
    assert log.retain(written_ms, 3) == []
    assert len(log.retain(written_ms + WEEK_MS + DAY_MS, 3)) == 3


def test_a_compacted_topic_loses_only_what_is_below_its_start(tmp_path: Path) -> None:
    log = filled(tmp_path / "p", [1] * 5, cleanup_policy=("compact",), retention_ms=1)
    assert log.retain(NOW_MS, 5) == []
    log.delete_records_before(3)
    assert len(log.retain(NOW_MS, 5)) == 3


def test_deleted_segments_stay_deleted_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    log = filled(tmp_path / "p", [1, 1, 1, NOW_MS, NOW_MS], retention_ms=WEEK_MS)
    log.retain(NOW_MS, 5)
    log.close()
    assert len(names(tmp_path / "p", ".log.deleted")) == 3
    again = open_log(tmp_path / "p", Runtime(clock=clock))
    assert (again.log_start_offset, again.log_end_offset) == (3, 5)
    assert not names(tmp_path / "p", ".deleted")
    assert [record.offset for record in read_all(again)] == [3, 4]
