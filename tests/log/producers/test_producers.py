import random
from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, rows
from moldau.errors import ErrorCode
from moldau.log.producers import snapshot_entries, snapshots
from moldau.log.producers.producer_state import BatchMetadata
from moldau.log.producers.producers import Producers
from moldau.log.producers.snapshot_entries import AT_ONCE, ENTRY
from moldau.names import Offset
from moldau.records.batch import TRANSACTIONAL_BIT, BatchHeader, Marker, encode_batch, encode_marker, read_header
from moldau.runtime import RealDisk

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
LAST_SEQUENCE = 2**31 - 1


def header(sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7, attributes: int = 0) -> BatchHeader:
    batch = encode_batch(
        rows(count), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, attributes=attributes
    )
    return read_header(batch)


def in_transaction(sequence: int, epoch: int = 0, producer_id: int = 7) -> BatchHeader:
    return header(sequence, epoch=epoch, producer_id=producer_id, attributes=TRANSACTIONAL_BIT)


def ends(epoch: int = 0, producer_id: int = 7) -> BatchHeader:
    return read_header(encode_marker(producer_id, epoch, False, 0, NOW_MS))


PLAIN = header(0)


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
        assert isinstance(duplicate, BatchMetadata)
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
    assert isinstance(duplicate, BatchMetadata) and duplicate.last_sequence == 1


def test_producers_do_not_know_each_other() -> None:
    producers = wrote(header(0, producer_id=1), header(9, producer_id=2))
    assert producers.check(header(1, producer_id=1)) is None
    assert producers.check(header(10, producer_id=2)) is None


def test_a_silent_producer_expires_by_its_records_time() -> None:
    producers = wrote(header(0))
    list(producers.expire(NOW_MS + 999, 1000))
    assert len(producers) == 1
    list(producers.expire(NOW_MS + 1000, 1000))
    assert len(producers) == 0


def test_what_is_not_of_the_open_transaction_is_refused() -> None:
    producers = wrote(in_transaction(0))
    assert producers.check(header(1)) is ErrorCode.INVALID_TXN_STATE
    assert producers.check(header(0, epoch=1)) is ErrorCode.INVALID_TXN_STATE
    assert producers.check(header(2)) is OUT_OF_ORDER
    assert producers.check(in_transaction(1)) is None
    producers.ended(ends(), Marker(True, 0), 101, NOW_MS)
    assert producers.check(header(1)) is None


def test_a_marker_of_a_new_epoch_begins_the_sequences_anew() -> None:
    producers = wrote(in_transaction(0), in_transaction(1))
    producers.ended(ends(epoch=1), Marker(True, 0), 102, NOW_MS)
    assert producers.check(in_transaction(2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(in_transaction(2, epoch=1)) is OUT_OF_ORDER
    assert producers.check(in_transaction(0, epoch=1)) is None


def test_a_marker_in_the_same_epoch_leaves_the_sequences() -> None:
    producers = wrote(in_transaction(0))
    producers.ended(ends(), Marker(True, 0), 101, NOW_MS)
    assert producers.check(in_transaction(1)) is None
    assert isinstance(producers.check(in_transaction(0)), BatchMetadata)


def test_a_coordinators_batches_have_no_sequence() -> None:
    producers = wrote(in_transaction(-1))
    assert producers.check(in_transaction(-1)) is None
    assert producers.check(in_transaction(-1, epoch=1)) is None
    assert producers.check(header(-1)) is ErrorCode.INVALID_TXN_STATE
    producer = producers.get(7)
    assert producer is not None and producer.batches == [BatchMetadata(-1, 100, 0, NOW_MS)]
    again = snapshots.decode(snapshots.encode(producers))
    assert again is not None and (found := again.get(7)) is not None
    assert (found.batches, found.transaction_start) == ([BatchMetadata(-1, 100, 0, NOW_MS)], 100)


def test_a_marker_of_nobody_known_makes_a_producer_known() -> None:
    producers = Producers()
    assert producers.check_marker(7, 3, 5, 2) is None
    assert producers.ended(ends(epoch=3), Marker(False, 5), 100, NOW_MS) is None
    found = producers.get(7)
    assert found is not None and (found.epoch, found.coordinator_epoch) == (3, 5)
    assert producers.check(header(1, epoch=3)) is OUT_OF_ORDER
    assert producers.first_unstable_offset is None


def test_the_oldest_transaction_that_is_open_or_not_committed_is_unstable() -> None:
    producers = wrote(in_transaction(0, producer_id=1), in_transaction(0, producer_id=2))
    assert producers.first_unstable_offset == 100
    assert producers.ended(ends(producer_id=1), Marker(False, 0), 102, NOW_MS) == (1, 100, 102, 101)
    assert producers.first_unstable_offset == 100
    assert producers.last_stable_offset(Offset(102), Offset(0)) == 100
    assert producers.last_stable_offset(Offset(103), Offset(0)) == 101
    assert producers.last_stable_offset(Offset(103), Offset(102)) == 102
    assert producers.ended(ends(producer_id=2), Marker(False, 0), 103, NOW_MS) == (2, 101, 103, 104)
    assert producers.last_stable_offset(Offset(103), Offset(0)) == 101
    assert producers.last_stable_offset(Offset(104), Offset(0)) == 104
    assert not producers.unsettled


def test_an_open_transaction_is_in_the_snapshot_and_keeps_its_producer() -> None:
    producers = wrote(in_transaction(0, producer_id=2), in_transaction(0, producer_id=1), header(0, producer_id=3))
    producers.ended(ends(producer_id=3, epoch=1), Marker(True, 9), 103, NOW_MS)
    again = snapshots.decode(snapshots.encode(producers))
    assert again is not None and again.unsettled
    assert again.first_unstable_offset == 100
    three = again.get(3)
    assert three is not None and (three.coordinator_epoch, three.epoch, three.batches) == (9, 1, [])
    list(again.expire(NOW_MS + 1000, 1000))
    assert [producer_id for producer_id, _ in again] == [2, 1]


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
    assert (seven.epoch, seven.batches) == (0, [BatchMetadata(4, 104, 1, NOW_MS)])
    assert (nine.epoch, nine.batches) == (2, [BatchMetadata(4, 105, 0, NOW_MS)])


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


def entry_of(producer_id: int, producers: Producers) -> tuple[int, ...]:
    found = producers.get(producer_id)
    assert found is not None
    last = found.batches[-1] if found.batches else BatchMetadata(-1, -1, 0, found.last_timestamp)
    numbers = (found.epoch, *last[:3], found.last_timestamp, found.coordinator_epoch, found.transaction_start)
    return (producer_id, *numbers)


def assert_packed(producers: Producers) -> None:
    """A snapshot made now has one entry for each producer, as it is now."""
    found = list(ENTRY.iter_unpack(producers.entries.packed()))
    assert sorted(found) == sorted(entry_of(producer_id, producers) for producer_id, _ in producers)


def test_a_snapshot_holds_what_the_producers_are_after_any_changes() -> None:
    chance, producers, sequences = random.Random(7), Producers(), dict.fromkeys(range(3 * AT_ONCE), 0)
    for offset in range(20 * AT_ONCE):
        producer_id = chance.choice((chance.randrange(3 * AT_ONCE), chance.randrange(10)))
        attributes = TRANSACTIONAL_BIT if chance.random() < 0.1 else 0
        made = PLAIN._replace(producer_id=producer_id, base_sequence=sequences[producer_id], attributes=attributes)
        sequences[producer_id] += 1
        producers.appended(made, offset, offset)
        if chance.random() < 0.1:
            producers.ended(made, Marker(chance.random() < 0.5, offset % 3), offset, offset)
        if not offset % 3000:
            assert_packed(producers)
            list(producers.expire(offset, 2500))
            assert_packed(producers)
            again = snapshots.decode(snapshots.encode(producers))
            assert again is not None
            assert_packed(again)
            assert again.entries.packed() == producers.entries.packed()


def test_a_snapshot_packs_a_few_producers_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = 0

    class Counting:
        size = ENTRY.size

        def pack_into(self, *fields: Any) -> None:
            nonlocal packed
            packed += 1
            ENTRY.pack_into(*fields)

    producers = Producers()
    for producer_id in range(30 * AT_ONCE + 5):
        producers.appended(PLAIN._replace(producer_id=producer_id), producer_id, NOW_MS)
    monkeypatch.setattr(snapshot_entries, "ENTRY", Counting())
    data = snapshots.encode(producers)
    assert packed == 5
    assert len(data) == 10 + ENTRY.size * len(producers)
    assert snapshots.encode(producers) == data
    assert packed == 5


def test_producers_expire_one_by_one_while_others_write() -> None:
    producers = wrote(*(header(0, producer_id=number) for number in range(5)))
    steps = producers.expire(NOW_MS + 1000, 1000)
    next(steps)
    assert len(producers) == 4
    producers.appended(header(1, producer_id=3), 200, NOW_MS + 500)
    producers.appended(header(0, producer_id=9), 201, NOW_MS)
    list(steps)
    assert [producer_id for producer_id, _ in producers] == [3, 9]
    assert_packed(producers)


def test_producers_may_come_and_go_while_others_are_looked_at() -> None:
    producers = wrote(*(header(0, producer_id=number) for number in range(3)))
    producers.appended(header(1, producer_id=1), 200, NOW_MS + 900)
    looked_at = iter(producers)
    assert next(looked_at)[0] == 0
    producers.appended(header(0, producer_id=9), 201, NOW_MS + 900)
    list(producers.expire(NOW_MS + 1000, 1000))
    assert [producer_id for producer_id, _ in looked_at] == [1]
