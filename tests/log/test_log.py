import os
from pathlib import Path

import pytest

from harness.logs import (
    NOW_MS,
    HandClock,
    append,
    config,
    names,
    offset_for_time,
    offset_of_max_timestamp,
    open_log,
    read_all,
    rows,
)
from moldau.errors import ErrorCode, KafkaError
from moldau.log import checkpoints, truncation
from moldau.log.indexes import Index, IndexEntry
from moldau.log.log import Log
from moldau.records.batch import LENGTH_AT, Row, batches, crc_holds
from moldau.replies import FileSlice
from moldau.runtime import Disk, Runtime

DAY_MS = 86_400_000


def headers(log: Log, piece: FileSlice | None) -> list[tuple[int, int]]:
    """First and last offset of the whole batches in a slice."""
    assert piece is not None
    data = piece.file.read(piece.length, piece.offset)
    return [(header.base_offset, header.last_offset) for _, header in batches(data)]


def test_offsets_are_given_out_in_order_and_written_into_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    assert append(log, 3) == (0, 2, -1, 0, ErrorCode.NONE, False, 0)
    assert append(log, 2, leader_epoch=4) == (3, 4, -1, 0, ErrorCode.NONE, False, 4)
    data = log.read_batches(0, 1 << 20)
    found = [header for _, header in batches(data)]
    assert [(header.base_offset, header.last_offset, header.partition_leader_epoch) for header in found] == [
        (0, 2, 0),
        (3, 4, 4),
    ]
    assert all(crc_holds(data, at) for at, _ in batches(data))
    assert (log.epochs.epoch_at(2), log.epochs.epoch_at(3), log.log_end_offset) == (0, 4, 5)


def test_a_read_begins_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    for _ in range(100):
        append(log, 10)
    for offset in (0, 5, 9, 10, 555, 990, 999):
        assert headers(log, log.read(offset, 1 << 20, 1000))[0][0] == offset // 10 * 10


def test_the_first_batch_goes_out_whole_even_if_it_is_too_large(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, rows(1, value=b"x" * 5000))
    append(log, 1)
    assert headers(log, log.read(0, 10, 2)) == [(0, 0)]
    assert log.read(0, 10, 2, min_one=False) is None
    piece = log.read(0, 5100, 2)
    assert piece is not None and piece.length == 5100


def test_nothing_is_read_at_or_beyond_the_given_end(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=2000))
    for _ in range(100):
        append(log, 3)
    assert log.read(300, 1000, 300) is None
    assert log.read(6, 1000, 6) is None
    assert log.read(7, 1000, 6) is None
    for up_to in range(1, 40):
        seen = []
        for offset in range(up_to):
            piece = log.read(offset, 1 << 20, up_to)
            seen += headers(log, piece) if piece is not None else []
        assert all(last < up_to for _, last in seen)
        assert {base for base, _ in seen} == set(range(0, up_to - 2, 3))


def test_offsets_outside_the_log_are_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, 5)
    log.delete_records_before(2)
    for offset in (-1, 0, 1, 6):
        with pytest.raises(KafkaError) as raised:
            log.read(offset, 100, 5)
        assert raised.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert [record.offset for record in read_all(log, 2)] == [2, 3, 4]


def test_a_tailing_reader_gets_each_batch_once(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=1000))
    at, seen = 0, []
    for number in range(60):
        append(log, number % 3 + 1)
        piece = log.read(at, 1 << 20, log.log_end_offset)
        seen += headers(log, piece)
        at = int(log.log_end_offset)
    assert [base for base, _ in seen] == [0, *(last + 1 for _, last in seen[:-1])]


def test_readers_that_follow_the_tail_need_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    searches: list[int] = []
    around = Index.around

    def search(index: Index, wanted: int) -> tuple[IndexEntry | None, IndexEntry | None]:
        searches.append(wanted)
        return around(index, wanted)

    append(log, 2)
    monkeypatch.setattr(Index, "around", search)
    readers = [0] * 3
    for number in range(60):
        reader = number % 3
        piece = log.read(readers[reader], 1 << 20, log.log_end_offset)
        assert headers(log, piece)[0][0] == readers[reader]
        readers[reader] = int(log.log_end_offset)
        append(log, number % 4 + 1)
    assert searches == [0] * 3


def test_a_reader_at_the_tail_of_a_truncated_log_gets_what_came_instead(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, 5)
    append(log, 5)
    log.read(0, 1 << 20, log.log_end_offset)
    truncation.truncate_to(log, 5, 5, NOW_MS)
    append(log, 3)
    append(log, 4)
    assert headers(log, log.read(10, 1 << 20, log.log_end_offset)) == [(8, 11)]


def test_segments_roll_by_size(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=1000))
    for _ in range(50):
        append(log, 5)
    assert len(log.segments) > 5
    assert all(segment.size <= 1000 for segment in log.segments)
    assert len(read_all(log)) == 250
    closed = log.segments[0]
    for suffix, entry_bytes in (("index", 8), ("timeindex", 12)):
        size = (tmp_path / "p" / f"{closed.base_offset:020d}.{suffix}").stat().st_size
        assert size < 1000 and size % entry_bytes == 0


def test_segments_roll_by_the_time_of_records(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_ms=DAY_MS))
    append(log, rows(1, NOW_MS))
    append(log, rows(1, NOW_MS + DAY_MS))
    assert len(log.segments) == 1
    append(log, rows(1, NOW_MS + DAY_MS + 1))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_segments_without_record_times_roll_by_the_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_ms=DAY_MS))
    append(log, rows(1, -1))
    append(log, rows(1, -1), now_ms=NOW_MS + DAY_MS + 1)
    assert len(log.segments) == 2


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_index_bytes=40, index_interval_bytes=0))
    for number in range(30):
        append(log, rows(1, NOW_MS + number))
    assert len(log.segments) > 5
    assert [record.offset for record in read_all(log)] == list(range(30))
    assert all((tmp_path / "p" / name).stat().st_size <= 40 for name in names(tmp_path / "p", "index"))


def test_segments_roll_when_an_offset_would_not_fit(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, 1)
    log.log_end_offset = type(log.log_end_offset)(2**31 - 1)
    append(log, 1)
    assert len(log.segments) == 1
    append(log, 1)
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=500))
    assert append(log, rows(1, value=b"x" * 500)).error is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_log_append_time_is_written_and_answered(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(message_timestamp_type="LogAppendTime"))
    assert append(log, rows(2, 5), now_ms=NOW_MS + 7).log_append_time_ms == NOW_MS + 7
    assert {(record.timestamp_ms, record.timestamp_type) for record in read_all(log)} == {(NOW_MS + 7, 1)}
    assert offset_for_time(log, NOW_MS + 7) == (NOW_MS + 7, 0)


def test_a_time_finds_the_first_record_at_or_after_it(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=3000, index_interval_bytes=200))
    for number in range(200):
        append(log, [Row(None, b"v", NOW_MS + 10 * number + 3 * within) for within in range(3)])
    for asked, found in ((0, 0), (NOW_MS, 0), (NOW_MS + 1, 1), (NOW_MS + 1006, 302), (NOW_MS + 1007, 303)):
        answer = offset_for_time(log, asked)
        assert answer is not None and answer.offset == found
    assert offset_for_time(log, NOW_MS + 1997) is None
    log.delete_records_before(302)
    assert offset_for_time(log, 0) == (NOW_MS + 1006, 302)


def test_a_time_is_found_among_records_that_are_not_in_order_of_time(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=1000, index_interval_bytes=0))
    times = [NOW_MS + (number * 7919) % 997 for number in range(300)]
    for time in times:
        append(log, rows(1, time))
    for asked in range(NOW_MS, NOW_MS + 1000, 13):
        expected = next(((time, offset) for offset, time in enumerate(times) if time >= asked), None)
        assert offset_for_time(log, asked) == expected
    assert offset_of_max_timestamp(log) == (max(times), times.index(max(times)))


def test_an_empty_log_has_no_largest_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    assert offset_of_max_timestamp(log) is None
    assert offset_for_time(log, 0) is None


def test_a_duplicate_is_answered_with_its_first_offset_and_not_appended(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    first = append(log, 3, producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, 1, producer_id=7, producer_epoch=0, base_sequence=3)
    again = append(log, 3, producer_id=7, producer_epoch=0, base_sequence=0)
    assert (again.base_offset, again.last_offset, again.duplicate) == (first.base_offset, first.last_offset, True)
    assert append(log, 1, producer_id=7, producer_epoch=0, base_sequence=9).error is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert log.log_end_offset == 4


def test_deleted_records_stay_deleted_and_the_rest_is_served(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=1000))
    for _ in range(60):
        append(log, 2, leader_epoch=3)
    assert log.delete_records_before(77) == 77
    assert log.delete_records_before(50) == 77
    assert log.epochs.starts == ((3, 77),)
    gone = log.retain(NOW_MS, 120)
    assert gone and all(segment.base_offset < 77 for segment in gone)
    assert log.segments[0].base_offset <= 77 < log.segments[1].base_offset
    assert [record.offset for record in read_all(log)] == list(range(77, 120))
    with pytest.raises(KafkaError):
        log.delete_records_before(121)


def test_a_slice_of_a_deleted_segment_can_still_be_sent(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=1000, retention_bytes=0, file_delete_delay_ms=0))
    for _ in range(60):
        append(log, 2)
    piece = log.read(0, 500, 120)
    assert piece is not None
    before = piece.file.read(piece.length, piece.offset)
    assert log.retain(NOW_MS, 120)
    assert names(tmp_path / "p", ".deleted")
    log.services.doomed.remove_due(NOW_MS)
    assert not names(tmp_path / "p", ".deleted")
    assert piece.file.read(piece.length, piece.offset) == before


def test_a_flush_moves_the_recovery_point_and_nothing_else_does(tmp_path: Path) -> None:
    clock = HandClock()
    log = open_log(tmp_path / "p", Runtime(clock=clock), config=config(flush_ms=1000, segment_bytes=1000))
    append(log, 3)
    clock.ms += 999
    assert (log.unflushed_records, log.flush_overdue()) == (3, False)
    clock.ms += 1
    clock.set_back_ms = 3_600_000
    assert log.flush_overdue(), "by no clock that can be set"
    log.flush()
    clock.ms += 5000
    assert (log.recovery_point, log.unflushed_records, log.flush_overdue()) == (3, 0, False)
    append(log, 1)
    log.flush()
    while len(log.segments) == 1:
        append(log, 5)
    assert (log.has_closed_unflushed, log.flush_overdue()) == (True, False)
    log.flush_closed()
    assert (log.recovery_point, log.has_closed_unflushed) == (log.segments[1].base_offset, False)
    log.flush()
    assert log.recovery_point == log.log_end_offset
    assert log.segments[0].flushed


class FailingFile:
    """A file of which writes and flushes fail when told."""

    def __init__(self, file: object, failing: set[str]):
        self._file = file
        self._failing = failing
        self.flushes = 0

    def __getattr__(self, name: str) -> object:
        if name in self._failing:
            raise OSError(28, os.strerror(28))
        return getattr(self._file, name)


@pytest.mark.parametrize("operation", ["write", "flush"])
def test_an_error_of_the_disk_takes_the_log_offline_for_good(tmp_path: Path, operation: str) -> None:
    failures: list[OSError] = []
    log = open_log(tmp_path / "p", on_failure=failures.append)
    append(log, 3)
    lazy, failing = log.active_segment.log, {operation}
    lazy.file = FailingFile(lazy.get(), failing)  # type: ignore[assignment]
    for attempt in range(3):
        with pytest.raises(KafkaError) as raised:
            log.flush() if operation == "flush" else append(log, 1)
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        if attempt:
            failing.clear()
    assert len(failures) == 1
    assert (log.offline, log.log_end_offset, log.recovery_point) == (True, 3, 0)
    for refused in (lambda: log.read(0, 10, 3), lambda: log.retain(NOW_MS, 3), lambda: log.delete_records_before(1)):
        with pytest.raises(KafkaError):
            refused()


@pytest.mark.parametrize("is_last", [True, False])
def test_a_damaged_batch_is_an_error_and_not_the_end_of_the_log(tmp_path: Path, is_last: bool) -> None:
    log = open_log(tmp_path / "p")
    for _ in range(4):
        append(log, 1)
    (position, _), *_ = [place for place in batches(log.read_batches(0, 1 << 20)) if place[1].base_offset == 2]
    if not is_last:
        log.roll(NOW_MS)
        append(log, 1)
    with open(log.segments[0].log.path, "r+b") as file:
        file.seek(position + LENGTH_AT)
        file.write(bytes(4))
    assert log.read(1, 1, log.log_end_offset) is not None
    for offset in (2, 3):
        with pytest.raises(KafkaError, match=f"no batch begins at byte {position} of ") as refused:
            log.read(offset, 1000, log.log_end_offset)
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_snapshot_of_producers_may_not_last_until_it_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention, in another thread, removes batches once no snapshot is left to be flushed."""
    log = open_log(tmp_path / "p")
    append(log, 1, producer_id=7, producer_epoch=0, base_sequence=0)
    log.roll(NOW_MS)
    before, left, flush_file = list(log.flushing.snapshots), list[list[Path]](), checkpoints.flush_file

    def flushed(disk: Disk, path: Path) -> None:
        left.append(list(log.flushing.snapshots))
        flush_file(disk, path)

    monkeypatch.setattr(checkpoints, "flush_file", flushed)
    log.flush()
    assert len(before) == 1 and left[0] == before and not log.flushing.snapshots
