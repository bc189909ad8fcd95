import struct
from pathlib import Path

import pytest

from harness.logs import NOW_MS, append, config, names, open_log
from moldau.errors import ErrorCode
from moldau.log.files import OpenFiles
from moldau.log.indexes import CorruptIndex
from moldau.log.log import Log
from moldau.log.transaction_index import ENTRY, AbortedTxn, TransactionIndex
from moldau.names import Offset
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, batches, read_marker
from moldau.runtime import RealDisk

SMALL = config(segment_bytes=1000, index_interval_bytes=100)
COMMIT, ABORT = Marker(True, 0), Marker(False, 0)


class Writer:
    """A transactional producer and its coordinator, in one partition."""

    def __init__(self, log: Log, producer_id: int, epoch: int = 0):
        self.log = log
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def write(self, count: int = 1) -> int:
        rows = [Row(b"k", b"%d" % self.producer_id, NOW_MS)] * count
        appended = append(
            self.log,
            rows,
            attributes=TRANSACTIONAL_BIT,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        assert not appended.error, appended
        self.sequence += count
        return appended.base_offset

    def end(self, marker: Marker) -> int:
        """As a coordinator of transaction version 2 does: in the next epoch."""
        self.epoch, self.sequence = self.epoch + 1, 0
        appended = self.log.append_marker(self.producer_id, self.epoch, marker, 2, 0, NOW_MS)
        assert not appended.error, appended
        return appended.base_offset


def stable(log: Log, high_watermark: int | None = None) -> int:
    return log.committed.last_stable_offset(Offset(log.log_end_offset if high_watermark is None else high_watermark))


def aborted(log: Log, start: int = 0, end: int | None = None) -> list[tuple[int, ...]]:
    return [tuple(found) for found in log.committed.aborted_between(start, log.log_end_offset if end is None else end)]


def index(path: Path, *entries: AbortedTxn, base: int = 0) -> TransactionIndex:
    made = TransactionIndex(path, base, OpenFiles(RealDisk()))
    for entry in entries:
        made.append(entry)
    return made


def test_the_file_is_kafkas_and_made_with_the_first_entry(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.txnindex"
    made = index(path)
    made.flush()
    made.truncate(0)
    assert not path.exists()
    made.append(AbortedTxn(7, 3, 9, 10))
    made.append(AbortedTxn(8, 4, 12, 11))
    assert path.read_bytes() == struct.pack(">hqqqqhqqqq", 0, 7, 3, 9, 10, 0, 8, 4, 12, 11)
    again = TransactionIndex(path, 0, OpenFiles(RealDisk()), path.stat().st_size)
    again.check()
    assert list(again) == [(7, 3, 9, 10), (8, 4, 12, 11)]


def test_entries_are_found_from_an_offset_on_and_cut_at_one(tmp_path: Path) -> None:
    made = index(tmp_path / "i", *(AbortedTxn(1, 10 * n, 10 * n + 9, 10 * n + 10) for n in range(2500)))
    assert [found.last_offset for found in made.from_offset(24980)] == [24989, 24999]
    assert next(iter(made.from_offset(0))).last_offset == 9
    assert not list(made.from_offset(25000))
    made.truncate(100)
    assert (made.entries, (tmp_path / "i").stat().st_size) == (10, 340)
    made.append(AbortedTxn(1, 100, 105, 106))
    assert [found.first_offset for found in made] == [*range(0, 100, 10), 100]


@pytest.mark.parametrize(
    "entry",
    [
        (1, 7, 20, 29, 30),
        (0, 7, 20, 19, 30),
        (0, 7, 20, 29, 31),
        (0, 7, -1, 29, 30),
        (0, 7, 20, 5, 6),
        (0, 7, 3, 15, 16),
    ],
)
def test_an_impossible_entry_is_found(tmp_path: Path, entry: tuple[int, ...]) -> None:
    path = tmp_path / "i"
    path.write_bytes(ENTRY.pack(0, 7, 5, 15, 16) + ENTRY.pack(*entry))
    with pytest.raises(CorruptIndex):
        TransactionIndex(path, 10, OpenFiles(RealDisk()), path.stat().st_size).check()


def test_bytes_behind_the_last_whole_entry_are_none(tmp_path: Path) -> None:
    path = tmp_path / "i"
    path.write_bytes(ENTRY.pack(0, 7, 5, 15, 16) + b"\1" * 20)
    made = TransactionIndex(path, 10, OpenFiles(RealDisk()), path.stat().st_size)
    made.check()
    made.append(AbortedTxn(8, 20, 21, 22))
    assert list(made) == [(7, 5, 15, 16), (8, 20, 21, 22)]


def test_an_open_transaction_holds_the_last_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    append(log, 3)
    assert (stable(log), log.producers.first_unstable_offset) == (3, None)
    one = Writer(log, 1)
    assert one.write(2) == 3
    append(log, 4)
    assert (stable(log), log.producers.first_unstable_offset) == (3, 3)
    assert stable(log, 2) == 2
    assert one.end(COMMIT) == 9
    assert stable(log, 9) == 3
    assert stable(log) == 10
    assert not names(tmp_path / "p", ".txnindex")
    assert aborted(log) == []


def test_an_aborted_transaction_is_told_to_who_reads_where_it_was(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    one, two = Writer(log, 1), Writer(log, 2)
    assert (one.write(), two.write(), one.end(ABORT), two.write(), two.end(ABORT)) == (0, 1, 2, 3, 4)
    assert aborted(log) == [(1, 0, 2, 1), (2, 1, 4, 5)]
    assert aborted(log, 3) == [(2, 1, 4, 5)]
    assert aborted(log, 0, 1) == [(1, 0, 2, 1)]
    assert aborted(log, 5) == []
    assert len(names(tmp_path / "p", ".txnindex")) == 1


def test_aborted_transactions_are_found_in_later_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=SMALL)
    one, two = Writer(log, 1), Writer(log, 2)
    one.write()
    for _ in range(30):
        two.write()
    end = one.end(ABORT)
    two.end(ABORT)
    assert len(log.segments) > 2
    assert not log.segments[0].aborted.entries
    assert aborted(log, 0, 1) == [(1, 0, end, 1)]
    assert aborted(log, 0, 2) == [(1, 0, end, 1), (2, 1, end + 1, end + 2)]
    assert aborted(log, 20, 25) == [(1, 0, end, 1), (2, 1, end + 1, end + 2)]
    piece = log.read(0, 10, int(log.log_end_offset))
    assert log.committed.aborted_in(0, piece) == log.committed.aborted_between(0, log.segments[1].base_offset)


def test_a_damaged_offset_index_hides_no_aborted_transaction(tmp_path: Path) -> None:
    settings = config(index_interval_bytes=100)
    log = open_log(tmp_path / "p", config=settings)
    one = Writer(log, 1)
    for _ in range(40):
        one.write()
        one.end(ABORT)
    log.close()
    (path,) = (log.folder / name for name in names(log.folder, ".index"))
    data = bytearray(path.read_bytes())
    for at in range(8, len(data) - 8, 8):  # the ends fit, so that the file is opened
        data[at : at + 4] = bytes(4)
    path.write_bytes(data)
    again = open_log(log.folder, config=settings)
    piece = again.read(0, 500, int(again.log_end_offset))
    assert again.committed.aborted_in(0, piece)[:2] == [(1, 0, 1, 2), (1, 2, 3, 4)]


def test_the_search_ends_where_everything_was_decided(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=SMALL)
    one = Writer(log, 1)
    for _ in range(40):
        one.write()
        one.end(ABORT)
    log.segments[-1].aborted.file.let_go()
    (log.segments[-1].aborted.file.path).unlink()
    assert aborted(log, 4, 9) == [(1, 4, 5, 6), (1, 6, 7, 8), (1, 8, 9, 10)]


def test_markers_of_old_epochs_and_old_coordinators_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    one = Writer(log, 1, epoch=5)
    one.write()
    assert log.append_marker(1, 4, COMMIT, 0, 0, NOW_MS).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.append_marker(1, 5, COMMIT, 2, 0, NOW_MS).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert not log.append_marker(1, 6, Marker(True, 3), 2, 0, NOW_MS).error
    assert not log.append_marker(1, 6, Marker(True, 3), 2, 0, NOW_MS).error
    assert log.append_marker(1, 7, Marker(True, 2), 2, 0, NOW_MS).error is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 3
    legacy = Writer(log, 2, epoch=5)
    legacy.write()
    assert not log.append_marker(2, 5, COMMIT, 1, 0, NOW_MS).error
    assert stable(log) == 5


def test_a_marker_is_a_control_batch_of_kafka(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    log.append_marker(7, 3, Marker(False, 11), 2, 4, NOW_MS)
    data = log.read_batches(0, 1000)
    ((_, header),) = batches(data)
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (0x30, 7, 3, -1)
    assert (header.max_timestamp, header.partition_leader_epoch, header.count) == (NOW_MS, 4, 1)
    assert read_marker(data) == Marker(False, 11)


def test_a_segment_goes_with_its_transaction_index(tmp_path: Path) -> None:
    settings = config(segment_bytes=1000, index_interval_bytes=100, retention_bytes=1000, file_delete_delay_ms=0)
    log = open_log(tmp_path / "p", config=settings)
    one = Writer(log, 1)
    for _ in range(40):
        one.write()
        one.end(ABORT)
    before = names(tmp_path / "p", ".txnindex")
    gone = log.retain(NOW_MS, log.log_end_offset)
    log.services.doomed.remove_due(NOW_MS)
    assert len(gone) > 1
    assert names(tmp_path / "p", ".txnindex") == before[len(gone) :]
    assert not names(tmp_path / "p", ".deleted")
    assert aborted(log)[0][2] >= log.log_start_offset == log.segments[0].base_offset > 0
