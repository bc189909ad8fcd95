from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies

from moldau.errors import DamagedBatch, ErrorCode, KafkaError
from moldau.records import arrow, rows
from moldau.records.batch import CONTROL_BIT, LOG_APPEND_TIME_BIT, encode_batch, read_header, stamp
from moldau.records.validation import Rules, check_produce
from tests.records import making
from tests.records.making import NOW, batch, record

FLAT = arrow.SCHEMA.remove(arrow.SCHEMA.get_field_index("timestamp"))


def microseconds(column: Any) -> list[int]:
    return column.cast(pa.int64()).to_pylist()


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in arrow.SCHEMA] == [
        ("key", "binary", True),
        ("value", "binary", True),
        ("topic", "string", True),
        ("partition", "int32", True),
        ("offset", "int64", True),
        ("timestamp", "timestamp[us, tz=UTC]", True),
        ("timestampType", "int32", True),
        ("headers", "list<item: struct<key: string, value: binary>>", True),
    ]


@given(making.row_lists)
def test_columns_hold_what_rows_hold(some: list[Any]) -> None:
    data = bytearray()
    for codec in range(5):
        data += encode_batch(some, codec=codec, base_offset=codec * len(some))
    stamp(view := data[-read_header_of_last(data) :], LOG_APPEND_TIME_BIT | 4, 77)
    data[-len(view) :] = view
    start, end = len(some) // 2, 5 * len(some) - len(some) // 3
    columns = arrow.to_record_batch(data, "t", 3, start, end)
    columns.validate(full=True)
    assert columns.schema.equals(arrow.SCHEMA)
    limit = (2**63 - 1) // 1000 * 1000
    for got, stamp_us, want in zip(
        columns.select(FLAT.names).to_pylist(),
        microseconds(columns["timestamp"]),
        rows.iterate(data, start, end),
        strict=True,
    ):
        pairs = [{"key": name, "value": value} for name, value in want.headers] or None
        assert got == {
            "key": want.key,
            "value": want.value,
            "topic": "t",
            "partition": 3,
            "offset": want.offset,
            "timestampType": want.timestamp_type,
            "headers": pairs,
        }
        assert stamp_us == max(-limit, min(limit, want.timestamp_ms * 1000))


def read_header_of_last(data: bytearray) -> int:
    """The size of the last batch."""
    at = size = 0
    while at < len(data):
        size = read_header(data, at).size
        at += size
    return size


def test_nothing_fetched_is_an_empty_batch_and_no_pieces() -> None:
    assert arrow.to_record_batch(b"", "t", 0).num_rows == 0
    assert arrow.to_record_batch(b"", "t", 0).schema.equals(arrow.SCHEMA)
    assert list(arrow.to_record_batches(b"", "t", 0)) == []


def test_control_batches_and_what_is_cut_off_are_left_out() -> None:
    data = encode_batch([(b"c", None, NOW, ())], attributes=CONTROL_BIT) + batch(record(), base_offset=1)
    columns = arrow.to_record_batch(data + batch(record(), base_offset=2)[:-1], "t", 0)
    assert columns["offset"].to_pylist() == [1]
    assert columns["headers"].null_count == 1


def test_pieces_hold_whole_batches_of_about_the_size_asked_for() -> None:
    data = b"".join(bytes(encode_batch([(None, bytes(1000), NOW, ())] * 10, base_offset=10 * i)) for i in range(6))
    pieces = list(arrow.to_record_batches(data, "t", 0, 5, bytes_max=25_000))
    assert [piece.num_rows for piece in pieces] == [25, 30]
    whole = pa.Table.from_batches(pieces)
    assert whole["offset"].to_pylist() == list(range(5, 60))
    assert whole.equals(pa.Table.from_batches([arrow.to_record_batch(data, "t", 0, 5)]))
    assert [piece.num_rows for piece in arrow.to_record_batches(data, "t", 0, bytes_max=1)] == [10] * 6


@given(making.row_lists, strategies.sets(strategies.sampled_from(arrow.SCHEMA.names), min_size=1))
def test_columns_that_are_left_out_change_nothing_in_the_others(some: list[Any], names: set[str]) -> None:
    data = encode_batch(some)
    (columns,) = arrow.to_record_batches(data, "t", 3, names=names)
    columns.validate(full=True)
    assert columns.schema.names == [name for name in arrow.SCHEMA.names if name in names]
    assert columns.equals(arrow.to_record_batch(data, "t", 3).select(columns.schema.names))


def test_header_keys_that_are_no_utf8_are_mended() -> None:
    columns = arrow.to_record_batch(batch(record(headers=[(b"\xff", b"x"), (b"ok", None)])), "t", 0)
    columns.validate(full=True)
    assert columns["headers"].to_pylist() == [[{"key": "�", "value": b"x"}, {"key": "ok", "value": None}]]


def test_garbage_is_corrupt() -> None:
    for bad in (batch(record(), crc=1), batch(record(1)), bytes(100)):
        with pytest.raises(KafkaError) as refused:
            arrow.to_record_batch(bad, "t", 0)
        assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


KEYS = pa.array([b"a", None, b"", b"ccc", b"d"])
VALUES = pa.array(["x", "y", None, "", "ž"])
STAMPS = pa.array([NOW, NOW + 5, NOW - 5, NOW, NOW], pa.int64())
HEADERS = pa.array([None, [], [{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None, None], arrow.HEADERS)


@pytest.mark.parametrize("codec", range(5))
def test_columns_written_are_columns_read(codec: int) -> None:
    for low, high in ((0, 5), (1, 4), (3, 4)):
        part = slice(low, high)
        data = arrow.from_columns(KEYS[part], VALUES[part], STAMPS[part], HEADERS[part], codec=codec, producer_id=5)
        header = read_header(data)
        assert (header.codec, header.producer_id, header.count) == (codec, 5, high - low)
        assert check_produce(memoryview(data), Rules(), NOW).error == (
            ErrorCode.INVALID_RECORD if header.base_sequence < 0 else ErrorCode.NONE
        )
        read = arrow.to_record_batch(data, "t", 0)
        assert read["key"].equals(KEYS[part])
        assert read["value"].equals(VALUES[part].cast(pa.binary()))
        assert microseconds(read["timestamp"]) == [1000 * stamp for stamp in STAMPS[part].to_pylist()]
        assert read["headers"].to_pylist() == [row or None for row in HEADERS[part].to_pylist()]


def test_columns_may_be_missing_chunked_large_or_timestamps() -> None:
    chunked = pa.chunked_array([VALUES[:2], VALUES[2:]]).cast(pa.large_string())
    stamps = STAMPS.cast(pa.timestamp("ms")).cast(pa.timestamp("ns"))
    data = arrow.from_columns(None, chunked, pa.chunked_array([stamps[:1], stamps[1:]]))
    assert data == arrow.from_columns(pa.nulls(5, pa.binary()), VALUES, STAMPS)
    assert arrow.to_record_batch(data, "t", 0)["key"].null_count == 5


def test_columns_that_do_not_fit_are_refused() -> None:
    for arguments in (
        (KEYS, VALUES[:3], STAMPS),
        (KEYS, VALUES, pa.array([1, None, 2, 3, 4])),
        (KEYS[:0], VALUES[:0], STAMPS[:0]),
        (KEYS, VALUES, STAMPS, HEADERS[:1]),
    ):
        with pytest.raises(ValueError):
            arrow.from_columns(*arguments)


def test_a_single_chunk_becomes_an_array_without_a_copy() -> None:
    array = pa.array([b"one", b"two", b"three"], pa.binary())
    whole = arrow.one_array(pa.chunked_array([array]).slice(1))
    assert whole.to_pylist() == [b"two", b"three"]
    assert whole.buffers()[2].address == array.buffers()[2].address
    assert arrow.one_array(pa.chunked_array([array, array])).to_pylist() == array.to_pylist() * 2


@pytest.mark.parametrize("value", ["topic", "t" * 249, 7])
@pytest.mark.parametrize("count", [0, 1, 5, 4096, 100_000])
def test_a_column_of_equal_values_has_as_many_rows_as_asked_for(value: str | int, count: int) -> None:
    column = arrow.repeated(value, pa.int32() if isinstance(value, int) else pa.string(), count)
    assert column.to_pylist() == [value] * count
    column.validate(full=True)


def test_what_is_before_a_damaged_batch_comes_before_the_failure() -> None:
    data = bytearray()
    for number in range(3):
        data += encode_batch([(b"k", b"v", NOW, ())], base_offset=number)
    data[-1] ^= 1
    pieces = arrow.to_record_batches(data, "t", 0)
    assert next(pieces).column("offset").to_pylist() == [0, 1]
    with pytest.raises(KafkaError) as damaged:
        next(pieces)
    assert damaged.value.code is ErrorCode.CORRUPT_MESSAGE


def test_what_is_before_a_malformed_batch_whose_checksum_holds_comes_before_the_failure() -> None:
    good = [encode_batch([(b"k", b"v", NOW, ())], base_offset=number) for number in range(3)]
    malformed = batch(record(1), base_offset=2)
    pieces = arrow.to_record_batches(b"".join([*good[:2], malformed, encode_batch([(b"k", b"v", NOW, ())])]), "t", 0)
    assert [next(pieces).column("offset").to_pylist() for _ in range(2)] == [[0], [1]]
    with pytest.raises(KafkaError, match="offset 2") as damaged:
        next(pieces)
    assert damaged.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_of_many_records_comes_in_pieces() -> None:
    many = [(None, b"%d" % number, NOW, ()) for number in range(100)]
    data = b"".join(
        encode_batch(some, codec=codec, base_offset=at)
        for at, codec, some in ((0, 4, many[:1]), (1, 4, many), (101, 0, many[:30]), (131, 4, many[:1]))
    )
    whole = arrow.to_record_batch(data, "t", 0, 5, 120)
    pieces = list(arrow.to_record_batches(data, "t", 0, 5, 120, rows_max=30))
    assert pa.Table.from_batches(pieces).combine_chunks() == pa.Table.from_batches([whole]).combine_chunks()
    assert all(0 < len(piece) <= 30 for piece in pieces)


def test_a_damaged_batch_names_its_offsets() -> None:
    good = encode_batch([(None, b"v", NOW, ())] * 3, base_offset=7)
    broken, malformed = bytearray(good), batch(record(1), base_offset=2)
    broken[-1] ^= 1
    for data, first, last in ((broken, 7, 9), (malformed, 2, 2)):
        with pytest.raises(DamagedBatch) as damaged:
            list(arrow.to_record_batches(data, "t", 0))
        assert (damaged.value.first, damaged.value.last) == (first, last)
