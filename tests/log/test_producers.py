from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.log import snapshots
from moldau.log.producers import Batch, Producers
from moldau.records.batch import BatchHeader, encode_batch, read_header
from moldau.runtime import RealDisk
from tests.log.making import NOW_MS, rows

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
LAST_SEQUENCE = 2**31 - 1


def header(sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7) -> BatchHeader:
    batch = encode_batch(rows(count), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return read_header(batch)


def wrote(*batches: BatchHeader) -> Producers:
    producers, offset = Producers(), 100
    for batch in batches:
        producers.appended(batch, offset, NOW_MS)
        offset += batch.count
    return producers


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Producers().check(header(5)) is None


def test_the_next_sequence_is_welcome_and_others_are_out_of_order() -> None:
    producers = wrote(header(0, count=3))
    assert producers.check(header(3)) is None
    assert producers.check(header(4)) is OUT_OF_ORDER
    assert producers.check(header(2)) is OUT_OF_ORDER


def test_the_last_five_batches_are_known_as_duplicates_with_their_offsets() -> None:
    producers = wrote(*(header(2 * number, count=2) for number in range(6)))
    assert producers.check(header(0, count=2)) is OUT_OF_ORDER
    for number in range(1, 6):
        duplicate = producers.check(header(2 * number, count=2))
        assert isinstance(duplicate, Batch)
        assert (duplicate.base_offset, duplicate.last_offset) == (100 + 2 * number, 101 + 2 * number)
        assert duplicate.base_sequence == 2 * number
    assert producers.check(header(10, count=1)) is OUT_OF_ORDER


def test_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero() -> None:
    producers = wrote(header(0, epoch=3))
    assert producers.check(header(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(header(1, epoch=4)) is OUT_OF_ORDER
    assert producers.check(header(0, epoch=4)) is None
    producers.appended(header(0, epoch=4), 101, NOW_MS)
    assert producers.check(header(0, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(header(1, epoch=4)) is None


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    producers = wrote(header(LAST_SEQUENCE - 1, count=2))
    assert producers.check(header(0)) is None
    assert producers.check(header(1)) is OUT_OF_ORDER
    across = wrote(header(LAST_SEQUENCE, count=3))
    assert across.check(header(2)) is None
    duplicate = across.check(header(LAST_SEQUENCE, count=3))
    assert isinstance(duplicate, Batch) and duplicate.last_sequence == 1


def test_producers_do_not_know_each_other() -> None:
    producers = wrote(header(0, producer_id=1), header(9, producer_id=2))
    assert producers.check(header(1, producer_id=1)) is None
    assert producers.check(header(10, producer_id=2)) is None


def test_a_silent_producer_expires_by_its_records_time() -> None:
    producers = wrote(header(0))
    producers.expire(NOW_MS + 999, 1000)
    assert len(producers) == 1
    producers.expire(NOW_MS + 1000, 1000)
    assert len(producers) == 0


def test_a_snapshot_holds_epoch_and_last_batch_of_each_producer(tmp_path: Path) -> None:
    producers = wrote(header(0, count=3), header(3, count=2), header(4, epoch=2, producer_id=9))
    snapshots.write(RealDisk(), tmp_path, producers, 106)
    data = (tmp_path / "00000000000000000106.snapshot").read_bytes()
    assert len(data) == 10 + 2 * 46
    found = snapshots.read(RealDisk(), tmp_path, 106)
    assert found is not None
    assert found.end_offset == 106
    seven, nine = found.get(7), found.get(9)
    assert seven is not None and nine is not None
    assert (seven.epoch, seven.batches) == (0, [Batch(4, 104, 1, NOW_MS)])
    assert (nine.epoch, nine.batches) == (2, [Batch(4, 105, 0, NOW_MS)])


@pytest.mark.parametrize("at", [0, 1, 3, 7, 12, 40, 55])
def test_a_snapshot_with_a_flipped_bit_does_not_hold(at: int) -> None:
    data = bytearray(snapshots.encode(wrote(header(0))))
    assert snapshots.decode(bytes(data)) is not None
    data[at] ^= 4
    assert snapshots.decode(bytes(data)) is None


def test_a_snapshot_that_is_cut_off_does_not_hold(tmp_path: Path) -> None:
    data = snapshots.encode(wrote(header(0)))
    assert all(snapshots.decode(data[:length]) is None for length in range(len(data)))
    assert snapshots.read(RealDisk(), tmp_path, 5) is None
