import struct

import pytest

from moldau.records import batch as batches
from moldau.records import columns
from moldau.records.batch import HEADER_SIZE, Row, crc_holds, encode_batch, place, read_header, stamp
from moldau.records.batch import batches as walk
from tests.records.making import NOW, batch, record

WRITTEN_BY_KAFKA = bytes.fromhex(
    "00000000000000000000004300000000023d1d8951000000000001000001a1fd781d9f000001a1fd781d9fffffffffffffff"
    "ffffffffffffff0000000210000000026b02760010000002026b027600"
)
"""Two records as Apache Kafka 4.3.1 stored them (offset 0, leader epoch 0)."""


def test_a_batch_that_kafka_stored_is_read() -> None:
    header = read_header(WRITTEN_BY_KAFKA)
    assert header.size == len(WRITTEN_BY_KAFKA)
    assert (header.base_offset, header.last_offset, header.next_offset, header.count) == (0, 1, 2, 2)
    assert (header.magic, header.codec, header.partition_leader_epoch) == (2, 0, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (-1, -1, -1, -1)
    assert crc_holds(WRITTEN_BY_KAFKA)


def test_what_we_write_is_what_kafka_stored() -> None:
    header = read_header(WRITTEN_BY_KAFKA)
    rows = [Row(b"k", b"v", header.base_timestamp), Row(b"k", b"v", header.base_timestamp)]
    ours = encode_batch(rows)
    place(ours, 0, 0)
    assert ours == WRITTEN_BY_KAFKA


def test_each_field_of_the_header_has_its_place() -> None:
    made = batch(
        record(0), record(1), codec=4, attributes=0x78, base_offset=1, leader_epoch=3, base_timestamp=5,
        max_timestamp=6, producer_id=7, producer_epoch=8, sequence=9,
    )  # fmt: skip
    header = read_header(b"??" + made, 2)
    assert header == (1, len(made) - 12, 3, 2, header.crc, 0x7C, 1, 5, 6, 7, 8, 9, 2)
    assert header.codec == 4
    assert header.log_append_time and header.is_transactional and header.is_control and header.has_delete_horizon
    plain = read_header(batch(record()))
    assert not (plain.log_append_time or plain.is_transactional or plain.is_control or plain.has_delete_horizon)


def test_sequences_wrap_to_zero() -> None:
    header = read_header(batch(record(0), record(1), record(2), producer_id=1, sequence=2**31 - 2))
    assert header.last_sequence == 0


def test_a_header_that_is_cut_off_is_no_header() -> None:
    with pytest.raises(struct.error):
        read_header(bytes(60))


def test_walking_stops_at_what_is_cut_off_or_no_batch() -> None:
    first, second = batch(record()), batch(record(0), record(1), base_offset=1)
    whole = first + second
    assert [(at, header.base_offset) for at, header in walk(whole)] == [(0, 0), (len(first), 1)]
    assert [at for at, _ in walk(whole[:-1])] == [0]
    assert [at for at, _ in walk(first + bytes(100))] == [0]
    assert [at for at, _ in walk(first + batch(record(), magic=1))] == [0]
    assert list(walk(b"")) == []


def test_the_checksum_covers_all_but_offset_length_and_epoch() -> None:
    made = batch(record())
    for at in range(len(made)):
        changed = bytearray(made)
        changed[at] ^= 1
        covered = at >= 17
        if not 8 <= at < 12:
            assert crc_holds(changed) is not covered
    assert not crc_holds(made[:-1])


def test_offsets_are_written_in_place_without_the_checksum() -> None:
    made = batch(record())
    crc = read_header(made).crc
    place(memoryview(made), 123456789012, 42)
    header = read_header(made)
    assert (header.base_offset, header.partition_leader_epoch, header.crc) == (123456789012, 42, crc)
    assert crc_holds(made)


def test_a_stamp_redoes_the_checksum() -> None:
    made = b"??" + batch(record())
    stamp(made := bytearray(made), 8, 77, 2)
    header = read_header(made, 2)
    assert (header.attributes, header.max_timestamp, header.log_append_time) == (8, 77, True)
    assert crc_holds(made, 2)


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_of_rows_has_the_right_header_in_each_codec(codec: int) -> None:
    made = encode_batch(
        [Row(b"k", b"v" * 50, NOW), Row(None, None, NOW + 3, [("h", None)]), Row(b"", b"", NOW - 2)],
        codec=codec, attributes=batches.TRANSACTIONAL_BIT, base_offset=5, leader_epoch=6, producer_id=7,
        producer_epoch=8, base_sequence=9,
    )  # fmt: skip
    header = read_header(made)
    assert crc_holds(made) and header.size == len(made)
    assert header[5:] == (codec | 0x10, 2, NOW, NOW + 3, 7, 8, 9, 3)
    assert (header.base_offset, header.partition_leader_epoch) == (5, 6)


def test_a_batch_needs_a_row() -> None:
    with pytest.raises(ValueError, match="row"):
        encode_batch([])


def test_records_that_are_there_are_wrapped_without_or_with_a_copy() -> None:
    records = columns.encode_rows([(b"k", b"v", 5, ())], 5)[0]
    roomy = columns.encode_rows([(b"k", b"v", 5, ())], 5, HEADER_SIZE)[0]
    copied = batches.write_batch(records, count=1, base_timestamp=5, max_timestamp=5)
    placed = batches.write_batch(roomy, count=1, base_timestamp=5, max_timestamp=5, room=HEADER_SIZE)
    assert placed is roomy
    assert copied == placed == encode_batch([(b"k", b"v", 5, ())])
    gaps = batches.write_batch(records, count=1, base_timestamp=5, max_timestamp=5, last_offset_delta=9)
    assert read_header(gaps).last_offset == 9
