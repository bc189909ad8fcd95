import logging
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
    records_from,
)
from moldau.log.log import Log
from moldau.records.batch import BatchHeader, Marker, Row, read_header
from moldau.records.rows import Record
from moldau.runtime import Runtime
from tests.log.compaction.compacting import COMPACTED, clean_offsets, compact, compacted_log, latest, put

DAY_MS = 86_400_000


def headers(log: Log) -> list[BatchHeader]:
    return [header for segment in log.segments for _, header in segment.walk(0)]


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]


def clock_of(log: Log) -> HandClock:
    clock = log.services.runtime.clock
    assert isinstance(clock, HandClock)
    return clock


@pytest.mark.parametrize("codec", range(5))
def test_the_last_record_of_every_key_stays_where_it_was(tmp_path: Path, codec: int) -> None:
    log = compacted_log(tmp_path / "p")
    expected: dict[bytes, Record] = {}
    for number in range(100):
        put(log, (f"k{number % 7}", f"v{number}"), (f"j{number % 5}", "w" * (number % 90)), codec=codec)
    log.roll(NOW_MS)
    for record in read_all(log):
        assert record.key is not None
        expected[record.key] = record
    assert compact(log)
    assert read_all(log) == sorted(expected.values())
    for record in expected.values():
        assert next(records_from(log, record.offset)) == record


def test_what_is_left_of_a_batch_keeps_its_place_its_codec_and_its_producer(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    put(log, ("a", "1"), ("b", "1"), ("a", "2"), codec=4, producer_id=5, producer_epoch=3, base_sequence=10)
    put(log, ("b", "2"), leader_epoch=8)
    before = headers(log)
    assert compact(log)
    first, second = headers(log)[:2]
    changed = {"batch_length": first.batch_length, "crc": first.crc, "count": 1}
    assert first == before[0]._replace(**changed)
    assert second == before[1]


def test_the_largest_timestamp_of_a_batch_is_that_of_what_is_left(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    append(log, [Row(b"a", b"1", NOW_MS - 5), Row(b"b", b"1", NOW_MS + 9), Row(b"c", b"1", NOW_MS - 7)])
    put(log, ("b", "2"))
    assert compact(log)
    first = headers(log)[0]
    assert (first.base_timestamp, first.max_timestamp) == (NOW_MS - 5, NOW_MS - 5)
    assert [record.timestamp_ms for record in read_all(log)] == [NOW_MS - 5, NOW_MS - 7, NOW_MS]
    assert offset_for_time(log, NOW_MS - 6) == (NOW_MS - 5, 0)


def test_under_log_append_time_the_time_of_a_batch_stays(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p", message_timestamp_type="LogAppendTime", delete_retention_ms=1000)
    put(log, ("a", "1"), ("b", "1"), ("c", None), now_ms=NOW_MS)
    put(log, ("b", "2"), now_ms=NOW_MS + 5)
    assert compact(log)
    found = [(record.key, record.timestamp_ms, record.timestamp_type) for record in read_all(log)]
    assert found == [(b"a", NOW_MS, 1), (b"c", NOW_MS, 1), (b"b", NOW_MS + 5, 1)]


def test_a_tombstone_stays_until_its_horizon_has_passed(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p", delete_retention_ms=DAY_MS)
    put(log, ("a", "1"), ("b", "1"))
    append(log, [Row(b"a", None, NOW_MS - 3), Row(b"c", b"1", NOW_MS)])
    assert compact(log)
    batch = headers(log)[1]
    assert batch.has_delete_horizon and batch.base_timestamp == NOW_MS + DAY_MS
    assert batch.max_timestamp == NOW_MS
    expected = [(b"b", b"1", NOW_MS), (b"a", None, NOW_MS - 3), (b"c", b"1", NOW_MS)]
    assert [(record.key, record.value, record.timestamp_ms) for record in read_all(log)] == expected

    for later_ms, rest in ((DAY_MS - 1, expected), (DAY_MS, [expected[0], expected[2]])):
        clock_of(log).ms = NOW_MS + later_ms
        put(log, ("z", "1"))
        assert compact(log)
        known = [(record.key, record.value, record.timestamp_ms) for record in read_all(log)]
        assert known[: len(rest)] == rest
        assert all(key == b"z" for key, _, _ in known[len(rest) :])


def test_a_horizon_does_not_move_when_the_log_is_cleaned_again(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p", delete_retention_ms=DAY_MS)
    put(log, ("a", None), ("b", "1"), ("c", "1"))
    for day in range(3):
        clock_of(log).ms = NOW_MS + day * 1000
        put(log, ("b", f"{day}"))
        assert compact(log)
        assert headers(log)[0].base_timestamp == NOW_MS + DAY_MS


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**62])
@pytest.mark.parametrize("stamp_ms", [-1, 0, NOW_MS, 2**62, -(2**62)])
def test_no_horizon_is_too_far_away_and_no_record_too_old(tmp_path: Path, retention_ms: int, stamp_ms: int) -> None:
    log = compacted_log(tmp_path / "p", delete_retention_ms=retention_ms)
    append(log, [Row(b"a", None, stamp_ms), Row(b"b", b"1", stamp_ms)])
    put(log, ("b", "2"))
    assert compact(log)
    assert [(record.key, record.timestamp_ms) for record in read_all(log)] == [(b"a", stamp_ms), (b"b", NOW_MS)]


def test_records_without_a_key_go(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    append(log, [Row(None, b"1", NOW_MS), Row(b"a", b"1", NOW_MS)])
    append(log, [Row(None, b"1", NOW_MS)])
    append(log, [Row(b"b", b"1", NOW_MS)])
    assert compact(log)
    assert offsets(log) == [1, 3]


def test_an_empty_batch_keeps_the_last_sequence_of_a_producer(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    for number in range(5):
        put(log, ("a", "1"), ("b", "1"), producer_id=7, producer_epoch=1, base_sequence=2 * number)
    put(log, ("a", "2"), ("b", "2"))
    assert compact(log)
    kept = [(header.base_offset, header.count, header.last_sequence) for header in headers(log)]
    assert kept == [(8, 0, 9), (10, 2, -1)]
    log.close()
    again = open_log(tmp_path / "p", clean=False, config=log.config)
    for path in (tmp_path / "p").glob("*.snapshot"):
        path.unlink()
    again.abandon()
    again = open_log(tmp_path / "p", clean=False, config=log.config)
    assert append(again, 2, producer_id=7, producer_epoch=1, base_sequence=8).duplicate
    assert append(again, 2, producer_id=7, producer_epoch=1, base_sequence=10).base_offset == 12
    assert append(again, 2, producer_id=7, producer_epoch=1, base_sequence=99).error


def test_the_empty_batch_of_a_producer_that_is_forgotten_goes(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    put(log, ("a", "1"), producer_id=7, producer_epoch=1, base_sequence=0)
    put(log, ("a", "2"))
    assert compact(log)
    assert [header.base_offset for header in headers(log)] == [0, 1]
    list(log.producers.expire(NOW_MS + 10**9, 1000))
    put(log, ("b", "1"))
    assert compact(log)
    assert [header.base_offset for header in headers(log)] == [1, 2]


def test_a_segment_of_which_nothing_is_left_still_ends_where_it_did(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    for number in range(30):
        put(log, ("a", f"{number}" * 30))
    ends = [segment.base_offset for segment in log.segments[1:]]
    assert compact(log)
    assert [segment.next_offset() for segment in log.segments[:-2]] == ends
    assert [header.count for header in headers(log)].count(1) == 1
    assert offsets(log) == [29]
    assert read_all(log, 3) == read_all(log)


def test_small_segments_become_one(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    for number in range(30):
        put(log, ("a", f"{number}" * 30))
    assert compact(log)
    many = len(log.segments)
    put(log, ("b", "1"))
    assert compact(log)
    assert len(log.segments) < many / 2
    assert latest(log) == {"a": "29" * 30, "b": "1"}
    log.services.doomed.remove_due(NOW_MS)
    kept = {segment.base_offset for segment in log.segments}
    assert {int(name.partition(".")[0]) for name in names(tmp_path / "p", "index")} == kept
    assert {int(name.partition(".")[0]) for name in names(tmp_path / "p", ".snapshot")} <= kept | {log.log_end_offset}
    assert not names(tmp_path / "p", ".deleted")


def test_readers_of_the_old_segments_go_on(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    for number in range(30):
        put(log, ("a", f"{number}" * 30))
    slices = [log.read(offset, 1000, 30) for offset in range(0, 30, 5)]
    before = [piece.file.read(piece.length, piece.offset) for piece in slices if piece]
    assert compact(log)
    log.services.doomed.remove_due(NOW_MS)
    assert [piece.file.read(piece.length, piece.offset) for piece in slices if piece] == before


def test_a_map_that_is_full_is_gone_on_from_the_next_time(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    expected = {}
    for number in range(200):
        expected[f"k{number % 90}"] = f"v{number}"
        put(log, (f"k{number % 90}", f"v{number}"), (f"j{number}", "1"), (f"k{number % 90}", f"v{number}"))
        expected[f"j{number}"] = "1"
    log.roll(NOW_MS)
    rounds = 0
    cleaner = clean_offsets(log, map_bytes=24 * 60)
    while cleaner():
        rounds += 1
        assert latest(log) == expected
    assert rounds > 3
    assert len(read_all(log)) == len(expected)


@pytest.mark.parametrize("at", [16, 22, 61, 70, 100])
def test_a_log_in_which_a_batch_is_damaged_is_left_as_it_is(
    tmp_path: Path, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = compacted_log(tmp_path / "p")
    for number in range(40):
        put(log, ("a", f"{number}"), ("b", "b" * 20))
    log.roll(NOW_MS)
    path = log.segments[1].log.path
    data = bytearray(path.read_bytes())
    data[read_header(data).size + at] ^= 0x40
    path.write_bytes(data)
    log.flush()
    before = {name: (tmp_path / "p" / name).read_bytes() for name in names(tmp_path / "p")}
    cleaner = clean_offsets(log)
    with caplog.at_level(logging.ERROR):
        cleaner()
        assert not cleaner()
    assert {name: (tmp_path / "p" / name).read_bytes() for name in names(tmp_path / "p")} == before
    assert len(caplog.records) == 1
    assert "flights-0 cannot be compacted, and is left as it is" in caplog.text
    assert not log.offline
    assert put(log, ("a", "40")) == 80


def test_a_log_of_an_old_format_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = compacted_log(tmp_path / "p")
    put(log, ("a", "1"))
    log.roll(NOW_MS)
    path = log.segments[0].log.path
    data = bytearray(path.read_bytes())
    data[16] = 1
    path.write_bytes(data)
    compact(log)
    assert "no batch of format 2" in caplog.text


PRODUCER = {"producer_id": 4, "producer_epoch": 0, "attributes": 0x10}


def end_transaction(log: Log, commits: bool, producer_id: int = 4) -> None:
    appended = log.append_marker(producer_id, 0, Marker(commits, 1), 1, 0, clock_of(log).ms)
    assert not appended.error
    log.producers.settle(log.log_end_offset)


def test_records_of_aborted_transactions_go_and_their_markers_later(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p", delete_retention_ms=DAY_MS)
    put(log, ("a", "1"))
    put(log, ("a", "2"), ("b", "2"), base_sequence=0, **PRODUCER)
    put(log, ("c", "1"))
    end_transaction(log, commits=False)
    put(log, ("b", "3"), base_sequence=2, **PRODUCER)
    end_transaction(log, commits=True)
    put(log, ("d", "1"))
    assert compact(log)
    found = [(header.base_offset, header.count, header.is_control) for header in headers(log)]
    assert found == [(0, 1, False), (3, 1, False), (4, 1, True), (5, 1, False), (6, 1, True), (7, 1, False)]
    assert [(one.first_offset, one.last_offset) for one in log.committed.aborted_between(0, 8)] == [(1, 4)]

    put(log, ("d", "2"))
    assert compact(log)
    markers = [header for header in headers(log) if header.is_control]
    assert [(one.base_offset, one.has_delete_horizon) for one in markers] == [(4, True), (6, False)]
    assert log.committed.aborted_between(0, 8) == []

    clock_of(log).ms = NOW_MS + DAY_MS
    put(log, ("d", "3"))
    assert compact(log)
    assert [header.base_offset for header in headers(log) if header.is_control] == [6]
    assert latest(log) == {"a": "1", "c": "1", "b": "3", "d": "3"}
    log.close()
    again = open_log(tmp_path / "p", clean=False, config=log.config)
    assert again.committed.last_stable_offset(again.log_end_offset) == again.log_end_offset
    assert latest(again) == {"a": "1", "c": "1", "b": "3", "d": "3"}


def test_the_index_of_aborted_transactions_is_that_of_what_is_left(tmp_path: Path) -> None:
    """The last batch of a producer stays, emptied: so does its transaction, for readers to know that it was aborted."""
    log = compacted_log(tmp_path / "p")
    put(log, ("a", "1"), base_sequence=0, **PRODUCER)
    end_transaction(log, commits=False)
    put(log, ("z", "1"))
    assert compact(log)
    assert [(one.first_offset, one.last_offset) for one in log.committed.aborted_between(0, 3)] == [(0, 1)]
    put(log, ("z", "2"))
    assert compact(log)
    assert [(one.first_offset, one.last_offset) for one in log.committed.aborted_between(0, 3)] == [(0, 1)]
    log.services.doomed.remove_due(NOW_MS)
    assert len(names(tmp_path / "p", ".txnindex")) == 1
    log.close()
    again = open_log(tmp_path / "p", clean=True, config=log.config)
    assert [(one.first_offset, one.last_offset) for one in again.committed.aborted_between(0, 3)] == [(0, 1)]


def test_nothing_of_an_open_transaction_is_cleaned(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    for number in range(20):
        put(log, ("a", f"{number}" * 20))
    put(log, ("a", "open"), base_sequence=0, **PRODUCER)
    for number in range(20):
        put(log, ("b", f"{number}" * 20))
    assert compact(log)
    assert [offset for offset in offsets(log) if offset >= 20] == list(range(20, 41))
    assert len(offsets(log)) < 41


def test_a_transaction_that_spans_segments_is_aborted_in_all_of_them(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    sequence = 0
    for number in range(30):
        put(log, (f"a{number}", "x" * 50), base_sequence=sequence, **PRODUCER)
        sequence += 1
        put(log, (f"b{number}", "y" * 50))
    end_transaction(log, commits=False)
    put(log, ("z", "1"), base_sequence=sequence, **PRODUCER)
    end_transaction(log, commits=True)
    assert len(log.segments) > 5
    assert compact(log)
    assert set(latest(log)) == {f"b{number}" for number in range(30)} | {"z"}


def test_settings_of_the_log_hold_for_what_compaction_writes(tmp_path: Path) -> None:
    runtime = Runtime(clock=HandClock())
    log = open_log(tmp_path / "p", runtime, config=config(**{**COMPACTED, "index_interval_bytes": 0}))
    for number in range(50):
        put(log, (f"{number}", "v"))
    assert compact(log)
    for segment in log.segments[:-1]:
        assert segment.offsets.entries == sum(1 for _ in segment.walk(0)) - 1


def test_a_tombstone_that_need_not_wait_goes_with_the_second_cleaning(tmp_path: Path) -> None:
    """The first one writes the horizon, also where that is the very time of the batch's first record."""
    log = compacted_log(tmp_path / "p", delete_retention_ms=0)
    put(log, ("a", None), ("b", "1"))
    put(log, ("c", "1"))
    assert compact(log)
    assert headers(log)[0].has_delete_horizon
    assert offsets(log) == [0, 1, 2]
    put(log, ("c", "2"))
    assert compact(log)
    assert offsets(log) == [1, 3]


@pytest.mark.parametrize("how", ["compaction", "retention"])
def test_no_open_file_keeps_the_space_of_a_segment_that_went(tmp_path: Path, how: str) -> None:
    log = compacted_log(tmp_path / "p", cleanup_policy=("compact", "delete"), retention_ms=1000)
    for number in range(30):
        put(log, ("a", f"{number}" * 30))
    log.roll(NOW_MS)
    old = log.segments[:-1]
    assert compact(log) if how == "compaction" else log.retain(NOW_MS + 5000, log.log_end_offset)
    assert not any(lazy.file for segment in old for lazy in (segment.log, segment.offsets.file, segment.times.file))


def test_the_record_with_the_largest_timestamp_is_found_behind_an_emptied_batch(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "p")
    put(log, ("a", "1" * 600))
    put(log, ("a", "2" * 600))
    assert compact(log)
    assert [header.count for header in headers(log)] == [0, 1]
    assert offset_of_max_timestamp(log) == (NOW_MS, 1)


def test_a_log_whose_records_have_no_time_stays_as_old_as_it_was(tmp_path: Path) -> None:
    """Retention goes by the time of the file then."""
    log = compacted_log(tmp_path / "p")
    for number in range(30):
        append(log, [Row(b"a", b"%d" % number * 30, -1)])
    log.roll(NOW_MS)
    for at, segment in enumerate(log.segments):
        os.utime(segment.log.path, (1000 + at, 1000 + at))
    count = len(log.segments)
    assert compact(log)
    assert [segment.largest_timestamp() for segment in log.segments[:-1]] == [
        1_000_000 + 1000 * at for at in range(count - 1)
    ]
