"""Records as Arrow columns: fetched bytes to a `RecordBatch`, and Arrow arrays to one record batch of Kafka's.

Columns, their order and types are those of Spark's Kafka source, so that Spark takes them as they are. The buffers that
`columns.decode` fills are Arrow's own: no byte is copied a second time.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from moldau.records import columns
from moldau.records.columns import Binary, Columns, Section
from moldau.records.sections import OFFSET_MAX, Buffer, sections

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS),
    ]
)
US_PER_MS: Final = 1000


def to_record_batch(
    buffer: Buffer,
    topic: str,
    partition: int,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    check_crcs: bool = True,
) -> pa.RecordBatch:
    """All records with start_offset <= offset < end_offset in the whole batches of `buffer`, without control records.

    Raises `KafkaError` (CORRUPT_MESSAGE) for bytes that are no batches, `OverflowError` for a column of more than 2 GiB.
    """
    found = list(sections(buffer, start_offset, end_offset, check_crcs=check_crcs))
    return _record_batch(found, topic, partition)


def to_record_batches(
    buffer: Buffer,
    topic: str,
    partition: int,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    bytes_max: int = 64 * 1024 * 1024,
    check_crcs: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The same in pieces: each of whole Kafka batches of about `bytes_max` inflated bytes; nothing for no records."""
    found: list[Section] = []
    size = 0
    for section in sections(buffer, start_offset, end_offset, check_crcs=check_crcs):
        if found and size + section.stop - section.start > bytes_max:
            yield _record_batch(found, topic, partition)
            found, size = [], 0
        found.append(section)
        size += section.stop - section.start
    if found:
        yield _record_batch(found, topic, partition)


def _record_batch(found: list[Section], topic: str, partition: int) -> pa.RecordBatch:
    decoded = columns.decode(found, pa.allocate_buffer, US_PER_MS)
    count = decoded.rows
    return pa.RecordBatch.from_arrays(
        [
            _binary(pa.binary(), count, decoded.keys),
            _binary(pa.binary(), count, decoded.values),
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
            pa.Array.from_buffers(pa.int64(), count, [None, decoded.offsets], 0),
            pa.Array.from_buffers(TIMESTAMP, count, [None, decoded.timestamps], 0),
            pa.Array.from_buffers(pa.int32(), count, [None, decoded.timestamp_types], 0),
            _headers(decoded),
        ],
        schema=SCHEMA,
    )


def _binary(kind: pa.DataType, count: int, column: Binary) -> pa.Array:
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    return pa.Array.from_buffers(kind, count, [validity, column.offsets, column.data], column.nulls)


def _headers(decoded: Columns) -> pa.Array:
    lists, keys, values = decoded.lists, decoded.header_keys, decoded.header_values
    if lists is None or keys is None or values is None:
        return pa.nulls(decoded.rows, HEADERS)
    names = _binary(pa.string(), decoded.headers, keys)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = _binary(pa.binary(), decoded.headers, keys)
        names = pa.array([name.decode("utf-8", "replace") for name in raw.to_pylist()], pa.string())
    pairs = pa.StructArray.from_arrays(
        [names, _binary(pa.binary(), decoded.headers, values)], fields=list(HEADERS.value_type)
    )
    validity = None if lists.validity is None else pa.py_buffer(lists.validity)
    return pa.Array.from_buffers(HEADERS, decoded.rows, [validity, lists.offsets], lists.nulls, children=[pairs])
