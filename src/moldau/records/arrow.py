"""Records as Arrow columns: fetched bytes to a `RecordBatch`, and Arrow arrays to one record batch of Kafka's.

The columns, their order and types are those of Spark's Kafka source, so that Spark uses them unchanged. The buffers
that `columns.decode` fills are Arrow's own: no byte is copied a second time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from moldau.errors import DamagedBatch, KafkaError
from moldau.records import columns
from moldau.records.arena import Arena
from moldau.records.arrays import binaries, repeated, texts
from moldau.records.batch import HEADER_SIZE, write_batch
from moldau.records.columns import Binary, Columns, Section, Source
from moldau.records.sections import INFLATED_MAX, OFFSET_MAX, Buffer, malformed, parts, sections

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
ROWS_MAX: Final = 1 << 20
"""A batch of more records is decoded in pieces: columns of a million empty records have 40 MB."""
ALL: Final = tuple(SCHEMA.names)


def to_record_batch(
    buffer: Buffer,
    topic: str,
    partition: int,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    check_crcs: bool = True,
    aborted: Iterable[tuple[int, int]] = (),
) -> pa.RecordBatch:
    """All records with start_offset <= offset < end_offset in the whole batches of `buffer`, without control records
    and those of the transactions in `aborted`: (producer id, first offset) of each.

    Raises `KafkaError` (CORRUPT_MESSAGE) for bytes that are not batches, `OverflowError` for a column of more than 2
    GiB.
    """
    selected = list(sections(buffer, start_offset, end_offset, check_crcs=check_crcs, aborted=aborted))
    return _record_batch(selected, topic, partition)


def to_record_batches(
    buffer: Buffer,
    topic: str,
    partition: int,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    bytes_max: int = 64 * 1024 * 1024,
    check_crcs: bool = True,
    aborted: Iterable[tuple[int, int]] = (),
    arena: Arena | None = None,
    names: Collection[str] = ALL,
    inflated_max: int = INFLATED_MAX,
    rows_max: int = ROWS_MAX,
) -> Iterator[pa.RecordBatch]:
    """Like `to_record_batch`, in pieces of whole Kafka batches, about `bytes_max` inflated bytes each; yields nothing
    if no record is selected. A batch of more than `rows_max` records comes in several pieces. Batches are inflated in
    `arena`; a piece does not need its memory, the next one does. Only the columns
    `names` are decoded, in the order of `SCHEMA`. `inflated_max` as for `sections`. What is before a damaged batch is
    yielded before `DamagedBatch` is raised."""
    arena = Arena() if arena is None else arena
    found = sections(
        buffer, start_offset, end_offset, check_crcs=check_crcs, aborted=aborted, arena=arena, inflated_max=inflated_max
    )
    is_over, damaged = False, None
    while not is_over:
        selected, size, rows = list[Section](), 0, 0
        while size < bytes_max and rows < rows_max and not is_over:
            try:
                section = next(found, None)
            except DamagedBatch as failure:
                section, damaged = None, failure
            if section is None:
                is_over = True
                continue
            selected.append(section)
            size += section.stop - section.start
            rows += min(section.count, section.high - section.low)
        try:
            yield from _decoded(selected, topic, partition, names, rows_max)
        finally:
            arena.clear()
    if damaged is not None:
        raise damaged


def _decoded(
    selected: list[Section], topic: str, partition: int, names: Collection[str], rows_max: int
) -> Iterator[pa.RecordBatch]:
    """All records at once, unless a batch has too many of them or is malformed: then batch by batch. Raises
    `DamagedBatch` for one whose checksum holds and whose records cannot be decoded."""
    pieces = [piece for section in selected for piece in parts(section, rows_max)]
    if len(pieces) == len(selected) > 1:
        try:
            whole = _record_batch(selected, topic, partition, names)
        except KafkaError:
            pass  # one of them is malformed
        else:
            pieces = []
            if len(whole):
                yield whole
    for piece in pieces:
        try:
            one = _record_batch([piece], topic, partition, names)
        except KafkaError as failure:
            raise malformed(piece, failure) from None
        if len(one):
            yield one


def _record_batch(selected: list[Section], topic: str, partition: int, names: Collection[str] = ALL) -> pa.RecordBatch:
    decoded = columns.decode(
        selected, pa.allocate_buffer, US_PER_MS, "key" in names, "value" in names, "headers" in names
    )
    count = decoded.rows
    make: dict[str, Callable[[], pa.Array]] = {
        "key": lambda: _binary(pa.binary(), count, decoded.keys),
        "value": lambda: _binary(pa.binary(), count, decoded.values),
        "topic": lambda: repeated(topic, pa.string(), count),
        "partition": lambda: repeated(partition, pa.int32(), count),
        "offset": lambda: pa.Array.from_buffers(pa.int64(), count, [None, decoded.offsets], 0),
        "timestamp": lambda: pa.Array.from_buffers(TIMESTAMP, count, [None, decoded.timestamps], 0),
        "timestampType": lambda: pa.Array.from_buffers(pa.int32(), count, [None, decoded.timestamp_types], 0),
        "headers": lambda: _headers(decoded),
    }
    chosen = [name for name in ALL if name in names]
    schema = SCHEMA if len(chosen) == len(ALL) else pa.schema([SCHEMA.field(name) for name in chosen])
    return pa.RecordBatch.from_arrays([make[name]() for name in chosen], schema=schema)


def _binary(kind: pa.DataType, count: int, column: Binary | None) -> pa.Array:
    assert column is not None, "the column was wanted"
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
        names = texts([name.decode("utf-8", "replace") for name in raw.to_pylist()])
    pairs = pa.StructArray.from_arrays(
        [names, _binary(pa.binary(), decoded.headers, values)], fields=list(HEADERS.value_type)
    )
    validity = None if lists.validity is None else pa.py_buffer(lists.validity)
    return pa.Array.from_buffers(HEADERS, decoded.rows, [validity, lists.offsets], lists.nulls, children=[pairs])


def from_columns(
    keys: pa.Array | None,
    values: pa.Array | None,
    timestamps_ms: pa.Array,
    headers: pa.Array | None = None,
    *,
    into: bytearray | None = None,
    **batch: Any,
) -> bytearray:
    """One record batch of whole columns; None is a column of nulls. `batch` are further arguments for `write_batch`.
    The records are written over `into`, if given; without a codec it becomes the batch.

    Keys and values are binary or strings, timestamps int64 in ms or Arrow's, headers as in `SCHEMA`. Raises
    `ValueError` for columns of different lengths or of more than 2 GiB.
    """
    stamps = _flat(timestamps_ms, None)
    if pa.types.is_timestamp(stamps.type):
        stamps = stamps.cast(pa.timestamp("ms", tz=stamps.type.tz), safe=False)
    if stamps.null_count:
        raise ValueError("a row has no timestamp")
    count = len(stamps)
    for column in (keys, values, headers):
        if column is not None and len(column) != count:
            raise ValueError("the columns of a batch have different lengths")
    numbers = memoryview(stamps.buffers()[1] or b"").cast("B").cast("q")[stamps.offset : stamps.offset + count]
    blocks = None
    if headers is not None and headers.null_count < count:
        pairs = headers.to_pylist()
        blocks = binaries([columns.header_block([(pair["key"], pair["value"]) for pair in row or ()]) for row in pairs])
    records, max_timestamp = columns.encode_columns(
        count, source_of(keys), source_of(values), numbers, source_of(blocks), HEADER_SIZE, into
    )
    return write_batch(
        records, count=count, base_timestamp=numbers[0], max_timestamp=max_timestamp, room=HEADER_SIZE, **batch
    )


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array. A single chunk is not copied, as `combine_chunks` would."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _flat(column: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """One array, of type `kind` if given."""
    whole = one_array(column)
    return whole if kind is None or whole.type == kind else whole.cast(kind)


def source_of(column: pa.Array | None) -> Source | None:
    """The buffers of a column of byte strings; None if all are null."""
    if column is None or column.null_count == len(column):
        return None
    flat = _flat(column, pa.binary())
    validity, offsets, data = flat.buffers()
    return Source(
        memoryview(offsets).cast("B").cast("i"),
        memoryview(data or b"\0").cast("B"),
        memoryview(validity).cast("B") if flat.null_count else None,
        flat.offset,
    )
