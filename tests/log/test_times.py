"""A time is searched for in steps: what is much to inflate, read or pass over is left to whoever carries the search
out, and what the log does meanwhile spoils nothing."""

import errno
from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, append, carried_out, config, offset_for_time, offset_of_max_timestamp, open_log, rows
from moldau.errors import ErrorCode, KafkaError
from moldau.log import times
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.records import columns, compression
from moldau.records.batch import Row, batches
from moldau.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from moldau.records.validation import INLINE_BYTES
from moldau.runtime import RealFile

MANY = 9000


def rising(count: int, value: bytes = b"") -> list[Row]:
    return [Row(None, value, NOW_MS + number) for number in range(count)]


def first_step(log: Log, timestamp_ms: int) -> tuple[times.TimestampSearch, Any]:
    """A search that has come to something that is too much for the loop, and that."""
    search = log.by_time.first_since(timestamp_ms)
    step = next(search)
    assert callable(step)
    return search, step


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_only_a_step_inflates_much(codec: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    append(log, rising(MANY), codec=codec)
    inflated = []
    decompress = compression.decompress

    def noting(codec: int, data: Any, limit: int, *arena: Any) -> Any:
        inflated.append(limit)
        return decompress(codec, data, limit, *arena)

    monkeypatch.setattr(compression, "decompress", noting)
    search, step = first_step(log, NOW_MS + 4321)
    assert all(limit <= INLINE_BYTES for limit in inflated)
    assert carried_out(search, step()) == (NOW_MS + 4321, 4321)
    assert max(inflated) > INLINE_BYTES


def test_no_object_is_made_for_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    append(log, rising(MANY), codec=ZSTD)
    append(log, rising(10), codec=ZSTD)
    append(log, rising(10))
    monkeypatch.setattr(columns, "rows", lambda *_: pytest.fail("an object for a record"))
    assert offset_for_time(log, NOW_MS + 8000) == (NOW_MS + 8000, 8000)
    assert offset_of_max_timestamp(log) == (NOW_MS + MANY - 1, MANY - 1)


def test_little_is_looked_at_without_a_step(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    for _ in range(50):
        append(log, rising(20, b"some value"), codec=LZ4)
        append(log, rising(20, b"some value"))
    for search in (log.by_time.first_since(NOW_MS + 19), log.by_time.first_of_largest()):
        with pytest.raises(StopIteration) as answered:
            next(search)
        assert answered.value.value == (NOW_MS + 19, 19)


def test_a_large_batch_that_is_not_compressed_is_looked_at_in_a_step(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, rising(10, bytes(10_000)))
    search, step = first_step(log, NOW_MS + 7)
    assert carried_out(search, step()) == (NOW_MS + 7, 7)


def test_the_header_is_enough_where_all_records_have_one_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p", config=config(message_timestamp_type="LogAppendTime"))
    append(log, rising(MANY), NOW_MS + 5, codec=GZIP)
    append(log, rising(MANY), NOW_MS + 7, codec=GZIP)
    log.delete_records_before(100)
    monkeypatch.setattr(compression, "decompress", lambda *_: pytest.fail("inflated"))
    assert offset_for_time(log, NOW_MS) == (NOW_MS + 5, 100)
    assert offset_for_time(log, NOW_MS + 6) == (NOW_MS + 7, MANY)
    assert offset_of_max_timestamp(log) == (NOW_MS + 7, MANY)


def test_the_header_is_enough_for_a_single_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    for number in range(3):
        append(log, [Row(None, bytes(100_000), NOW_MS + number)], codec=ZSTD)
    monkeypatch.setattr(compression, "decompress", lambda *_: pytest.fail("inflated"))
    assert offset_for_time(log, NOW_MS + 1) == (NOW_MS + 1, 1)


def bytes_on_the_loop(search: times.TimestampSearch, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Any]:
    """The most bytes read from segments between two steps, and the record found."""
    reads, most, answer = [0], 0, None
    read = RealFile.read

    def counting(self: RealFile, length: int, at: int) -> bytes:
        data = read(self, length, at)
        reads[0] += len(data)
        return data

    monkeypatch.setattr(RealFile, "read", counting)
    try:
        step = next(search)
        while True:
            most, reads[0] = max(most, reads[0]), 0
            result = None if step is None else step()
            reads[0] = 0
            step = search.send(result)
    except StopIteration as found:
        answer = found.value
    monkeypatch.undo()
    return max(most, reads[0]), answer


def test_times_that_do_not_rise_cost_no_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    append(log, [Row(None, b"", NOW_MS)])
    for _ in range(10_000):
        append(log, [Row(None, b"", NOW_MS - 100)])
    append(log, [Row(None, b"", NOW_MS + 1)])
    for _ in range(100):
        append(log, [Row(None, b"", NOW_MS - 100)])
    read, found = bytes_on_the_loop(log.by_time.first_since(NOW_MS + 1), monkeypatch)
    assert found == (NOW_MS + 1, 10_001)
    assert read < 16_384


@pytest.mark.parametrize("interval", [4096, 2**31 - 1])
def test_a_walk_that_no_index_shortens_is_taken_in_steps(
    interval: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "p", config=config(index_interval_bytes=interval))
    append(log, [Row(None, b"", NOW_MS + 2)])
    for _ in range(10_000):
        append(log, [Row(None, b"", NOW_MS - 100)])
    append(log, [Row(None, b"", NOW_MS + 1)])
    log.delete_records_before(1)
    read, found = bytes_on_the_loop(log.by_time.first_since(NOW_MS + 1), monkeypatch)
    assert found == (NOW_MS + 1, 10_001)
    assert read <= INLINE_BYTES + 8192


def test_entries_of_the_index_are_near_each_other_whatever_is_asked_for(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(index_interval_bytes=2**31 - 1))
    for _ in range(5000):
        append(log, 1)
    segment = log.active_segment
    assert segment.size > 300_000
    assert segment.offsets.entries == segment.size // 65_536


def test_segments_are_opened_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=80))
    for number in range(300):
        append(log, [Row(None, b"", NOW_MS + number)])
    log.close()
    log = open_log(tmp_path / "p", config=config(segment_bytes=80))
    looked: list[Segment] = []
    look = Segment.look
    monkeypatch.setattr(Segment, "look", lambda self: (looked.append(self), look(self))[1])
    search = log.by_time.first_since(NOW_MS + 250)
    most = 0
    try:
        while True:
            looked.clear()
            step = next(search)
            assert step is None
            most = max(most, len(set(looked)))
    except StopIteration as found:
        answer = found.value
    assert answer == (NOW_MS + 250, 250)
    assert 0 < most <= times.SEGMENTS_A_TURN


def test_a_segment_that_is_deleted_meanwhile_is_not_answered_from(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=100_000, retention_bytes=0))
    append(log, rising(MANY))
    append(log, rising(MANY))
    search, step = first_step(log, NOW_MS + 5)
    assert len(log.retain(NOW_MS, MANY)) == 1
    assert carried_out(search, step()) == (NOW_MS + 5, MANY + 5)


def test_a_segment_whose_files_are_gone_before_the_step_is_not_a_failure_of_the_disk(tmp_path: Path) -> None:
    failures: list[OSError] = []
    log = open_log(tmp_path / "p", config=config(segment_bytes=100_000, retention_bytes=0), on_failure=failures.append)
    append(log, rising(MANY))
    append(log, rising(MANY))
    search, step = first_step(log, NOW_MS + 5)
    (gone,) = log.retain(NOW_MS, MANY)
    gone.log.path.unlink()
    with pytest.raises(FileNotFoundError) as missing:
        step()
    again = search.throw(missing.value)
    assert callable(again)
    assert carried_out(search, again()) == (NOW_MS + 5, MANY + 5)
    assert not failures


def test_a_search_that_waits_holds_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    append(log, [Row(None, bytes(70_000), NOW_MS), Row(None, b"", NOW_MS + 1)])
    searches = [first_step(log, NOW_MS + 1) for _ in range(3)]
    closed = []
    close = RealFile.close
    monkeypatch.setattr(RealFile, "close", lambda self: (closed.append(self.fileno()), close(self))[1])
    fileno = log.active_segment.log.get().fileno()
    log.active_segment.log.let_go()
    assert closed == [fileno]
    for search, step in searches:
        assert carried_out(search, step()) == (NOW_MS + 1, 1)


def test_records_that_are_deleted_meanwhile_are_not_answered(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, rising(MANY))
    search, step = first_step(log, NOW_MS + 5)
    log.delete_records_before(10)
    assert carried_out(search, step()) == (NOW_MS + 10, 10)


def test_a_log_that_is_let_go_meanwhile_answers_with_its_error_and_fails_no_folder(tmp_path: Path) -> None:
    failures: list[OSError] = []
    log = open_log(tmp_path / "p", on_failure=failures.append)
    append(log, rising(MANY))
    search, step = first_step(log, NOW_MS + 5)
    log.abandon()
    for path in (tmp_path / "p").iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError) as missing:
        step()
    with pytest.raises(KafkaError) as refused:
        search.throw(missing.value)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not failures


def test_a_disk_that_fails_in_a_step_takes_the_log_offline(tmp_path: Path) -> None:
    failures: list[OSError] = []
    log = open_log(tmp_path / "p", on_failure=failures.append)
    append(log, rising(MANY))
    search, _ = first_step(log, NOW_MS + 5)
    with pytest.raises(KafkaError, match="failed or is closed"):
        search.throw(OSError(errno.EIO, "a read failed"))
    assert len(failures) == 1
    assert log.offline


def test_a_file_that_is_cut_meanwhile_is_corrupt_and_no_more(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, rising(MANY))
    search, step = first_step(log, NOW_MS + 5)
    log.active_segment.log.get().truncate(100)
    with pytest.raises(KafkaError) as refused:
        step()
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(KafkaError):
        search.throw(refused.value)
    assert not log.offline


def test_what_inflates_to_more_than_any_append_may_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "p")
    append(log, rising(MANY, bytes(300)), codec=ZSTD)
    monkeypatch.setattr(times, "MAX_INFLATED_MAX", 1 << 21)
    _, step = first_step(log, NOW_MS + 5)
    with pytest.raises(KafkaError, match="more than 2097152 bytes"):
        step()
    assert sum(1 for _ in batches(log.read_batches(0, 1))) == 1


def test_a_time_is_looked_for_in_few_segments_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=80))
    for number in range(200):
        append(log, rows(1, NOW_MS + number))
    assert offset_for_time(log, NOW_MS + 5) == (NOW_MS + 5, 5)
    asked = []
    largest_timestamp = Segment.largest_timestamp
    monkeypatch.setattr(Segment, "largest_timestamp", lambda self: asked.append(self) or largest_timestamp(self))
    for number in (0, 17, 150, 199):
        assert offset_for_time(log, NOW_MS + number) == (NOW_MS + number, number)
    assert offset_for_time(log, NOW_MS + 200) is None
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
            assert offset_for_time(log, asked) == next(there, None)
