"""Removing the end of a log, one rule at a time; `test_truncation_against_a_list` mixes them all."""

import errno
from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, append, config, names, open_log, read_all
from moldau.errors import ErrorCode, KafkaError
from moldau.log import truncation
from moldau.log.log import Log
from moldau.names import Offset
from moldau.records.batch import TRANSACTIONAL_BIT, Marker

SMALL = config(segment_bytes=400, index_interval_bytes=0)


def filled(tmp_path: Path, **more: Any) -> Log:
    """Ten batches of two records each, a leader epoch for every four records."""
    log = open_log(tmp_path / "p", config=SMALL, **more)
    for number in range(10):
        append(log, 2, leader_epoch=number // 2)
    return log


def test_the_batch_that_holds_the_offset_goes_as_a_whole(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert truncation.truncate_to(log, 9, 0, NOW_MS) == 8
    assert [record.offset for record in read_all(log)] == list(range(8))
    assert append(log, 1, leader_epoch=9).base_offset == 8


@pytest.mark.parametrize("offset", [20, 25])
def test_an_epoch_without_a_batch_goes_even_if_no_batch_does(tmp_path: Path, offset: int) -> None:
    """Kafka forgot it there, and a follower asked for a wrong epoch's end for ever (KAFKA-10706)."""
    log = filled(tmp_path)
    log.epochs.assign(7, 20)
    assert truncation.truncate_to(log, offset, 0, NOW_MS) == 20
    assert (log.epochs.latest, len(read_all(log))) == (4, 20)


def test_epochs_of_removed_batches_go(tmp_path: Path) -> None:
    log = filled(tmp_path)
    truncation.truncate_to(log, 8, 0, NOW_MS)
    assert [tuple(start) for start in log.epochs.starts] == [(0, 0), (1, 4)]


def test_the_recovery_point_is_written_down_before_a_file_changes(tmp_path: Path) -> None:
    written: list[tuple[int, list[str]]] = []
    log = filled(tmp_path, write_recovery_points=lambda: written.append((log.recovery_point, names(tmp_path / "p"))))
    log.flush()
    before = names(tmp_path / "p")
    truncation.truncate_to(log, 8, 0, NOW_MS)
    assert written == [(8, before)]
    truncation.truncate_to(log, 8, 0, NOW_MS)
    append(log, 1, leader_epoch=9)
    truncation.truncate_to(log, 8, 0, NOW_MS)
    assert len(written) == 1, "what was not flushed needs no other recovery point"


def test_nothing_is_cut_if_the_recovery_point_cannot_be_written(tmp_path: Path) -> None:
    def fails() -> None:
        raise OSError(errno.EIO, "gone")

    log = filled(tmp_path, write_recovery_points=fails)
    log.flush()
    with pytest.raises(KafkaError) as failed:
        truncation.truncate_to(log, 8, 0, NOW_MS)
    assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR and log.offline
    assert len(read_all(open_log(tmp_path / "p", config=SMALL))) == 20


def test_a_log_is_not_truncated_below_its_start(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.delete_records_before(6)
    with pytest.raises(KafkaError) as refused:
        truncation.truncate_to(log, 5, 0, NOW_MS)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert truncation.truncate_to(log, 6, 0, NOW_MS) == 6


def test_a_start_within_the_batch_that_goes_falls_to_the_new_end(tmp_path: Path) -> None:
    """As Kafka's UnifiedLog.truncateTo lowers it; the leader's start comes with the next Fetch."""
    log = filled(tmp_path)
    log.delete_records_before(7)
    assert truncation.truncate_to(log, 7, 0, NOW_MS) == 6
    assert (log.log_start_offset, log.log_end_offset) == (6, 6)
    assert append(log, 2, leader_epoch=9).base_offset == 6
    assert [record.offset for record in read_all(log, 6)] == [6, 7]


def test_a_truncation_below_the_high_watermark_is_logged_as_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(tmp_path)
    truncation.truncate_to(log, 16, 16, NOW_MS)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    truncation.truncate_to(log, 8, 16, NOW_MS)
    assert "flights-0 is truncated from offset 16 to 8, below its high watermark 16" in caplog.text


def test_a_transaction_whose_marker_is_removed_is_open_again(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=SMALL)
    named = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL_BIT}
    append(log, 2, **named)
    log.append_marker(9, 0, Marker(False, 0), 1, 0, NOW_MS)
    assert log.committed.has_aborted and log.committed.last_stable_offset(Offset(3)) == 3
    truncation.truncate_to(log, 2, 0, NOW_MS)
    assert (log.committed.has_aborted, log.committed.last_stable_offset(Offset(2))) == (False, 0)
    assert log.committed.aborted_between(0, 2) == []


def test_a_transaction_stays_unstable_until_its_marker_is_below_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=SMALL)
    named = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL_BIT}
    append(log, 2, **named)
    log.append_marker(9, 0, Marker(True, 0), 1, 0, NOW_MS)
    log.roll(NOW_MS)
    append(log, 2)
    truncation.truncate_to(log, 3, 0, NOW_MS)
    assert log.committed.last_stable_offset(Offset(2)) == 0
    assert log.committed.last_stable_offset(Offset(3)) == 3


def test_a_reader_that_is_slow_keeps_its_file(tmp_path: Path) -> None:
    log = filled(tmp_path)
    piece = log.read(12, 10_000, 20)
    assert piece is not None
    before = piece.file.read(piece.length, piece.offset)
    truncation.truncate_to(log, 4, 0, NOW_MS)
    assert piece.file.read(piece.length, piece.offset) == before, "its segment was removed, and its file is open"
    with pytest.raises(KafkaError):
        log.read(12, 10_000, 20)


@pytest.mark.parametrize("offset", [100, 20, 0])
def test_a_log_begins_anew_where_the_leaders_begins_and_remembers_nothing(tmp_path: Path, offset: int) -> None:
    log = filled(tmp_path)
    append(log, 1, producer_id=7, producer_epoch=0, base_sequence=5)
    log.flush()
    truncation.begin_at(log, offset, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (offset, offset, 0)
    assert (log.epochs.latest, len(log.producers)) == (-1, 0)
    assert append(log, 2, leader_epoch=11).base_offset == offset
    log.close()
    again = open_log(tmp_path / "p", config=SMALL)
    assert [record.offset for record in read_all(again)] == [offset, offset + 1]


def test_a_log_that_begins_anew_survives_a_crash(tmp_path: Path) -> None:
    log = filled(tmp_path)
    truncation.begin_at(log, 100, NOW_MS)
    append(log, 2, leader_epoch=11)
    again = open_log(tmp_path / "p", config=SMALL, clean=False)
    assert [record.offset for record in read_all(again)] == [100, 101]


def test_a_log_that_begins_anew_below_its_start_is_flushed_from_there(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    truncation.begin_at(log, 50, NOW_MS)
    append(log, 10)
    log.flush()
    truncation.begin_at(log, 20, NOW_MS)
    append(log, 5)
    log.flush()
    append(log, 5)
    assert log.recovery_point == 25 and log.unflushed_records == 5
