"""Encodes Arrow columns into batches for each partition, so that a producer can send whole tables (needs pyarrow).

Rows keep their order within a partition. A batch holds about `batch_bytes`; only a
batch of a single record may be larger.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from moldau.client.batching import RECORD_OVERHEAD_BYTES
from moldau.records.arrow import from_columns, source_of
from moldau.records.columns import by_partition


class EncodedBatch(NamedTuple):
    """A batch for one partition, encoded and compressed."""

    partition: int
    data: bytearray
    rows: int


class FetchedColumns(NamedTuple):
    """Columns of equal length. Keys, values and headers may be missing; timestamps may not."""

    keys: pa.Array | None
    values: pa.Array | None
    timestamps_ms: pa.Array
    headers: pa.Array | None

    def take(self, rows: pa.Array) -> "FetchedColumns":
        return FetchedColumns(*(None if column is None else column.take(rows) for column in self))

    def slice(self, start: int, count: int) -> "FetchedColumns":
        return FetchedColumns(*(None if column is None else column.slice(start, count) for column in self))

    @property
    def size(self) -> int:
        """Approximate size of these rows in a batch, in bytes, without headers. Arrow counts only the slice's bytes."""
        contents = sum(column.nbytes for column in (self.keys, self.values) if column is not None)
        return len(self.timestamps_ms) * RECORD_OVERHEAD_BYTES + int(contents)


def columns_of(keys: Any, values: Any, timestamps_ms: Any, headers: Any, now_ms: int) -> FetchedColumns:
    """The columns in the types that the encoder takes: text as binary, chunks combined. Raises `ValueError` if their
    lengths differ."""
    given = [column for column in (keys, values, timestamps_ms, headers) if column is not None]
    if not given or any(len(column) != len(given[0]) for column in given):
        raise ValueError("the columns of a table must all have the same length")
    stamps = pa.repeat(pa.scalar(now_ms, pa.int64()), len(given[0])) if timestamps_ms is None else timestamps_ms
    return FetchedColumns(_binary(keys), _binary(values), _whole(stamps), None if headers is None else _whole(headers))


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _binary(column: Any) -> pa.Array | None:
    if column is None:
        return None
    whole = _whole(column)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return whole if pa.types.is_binary(whole.type) else whole.cast(pa.binary())


def encoded_batches(
    columns: FetchedColumns,
    partitions: int,
    partition: int | None,
    sticky: Callable[[int], int],
    *,
    batch_bytes: int,
    codec: int,
) -> Iterator[EncodedBatch]:
    """Yield the batches of all rows. A row goes to `partition` if given, else to its key's partition, else (without a
    key) to the partition that `sticky(bytes)` returns."""
    if partition is None and columns.keys is not None and columns.keys.null_count < len(columns.keys):
        sorted_columns, counts = _by_key(columns, columns.keys, partitions, sticky(0))
        start = 0
        for target, count in enumerate(counts):
            for piece in _pieces(sorted_columns.slice(start, count), batch_bytes):
                yield _encode(piece, target, codec)
            start += count
        return
    for piece in _pieces(columns, batch_bytes):
        yield _encode(piece, sticky(piece.size) if partition is None else partition, codec)


def _by_key(
    columns: FetchedColumns, keys: pa.Array, partitions: int, without_key: int
) -> tuple[FetchedColumns, list[int]]:
    """The rows in the order of their partitions, and the number of rows of each partition."""
    source = source_of(keys)
    assert source is not None, "the caller has looked for a key"
    order, counts = by_partition(source, len(keys), partitions, without_key)
    return columns.take(pa.Array.from_buffers(pa.int32(), len(keys), [None, pa.py_buffer(order)], 0)), counts


def _pieces(columns: FetchedColumns, batch_bytes: int) -> Iterator[FetchedColumns]:
    """Slices of about `batch_bytes`, with row counts from the average row size; larger slices are halved."""
    count = len(columns.timestamps_ms)
    if not count:
        return
    rows = max(batch_bytes * count // max(columns.size, 1), 1)
    for start in range(0, count, rows):
        yield from _halved(columns.slice(start, rows), batch_bytes)


def _halved(columns: FetchedColumns, batch_bytes: int) -> Iterator[FetchedColumns]:
    count = len(columns.timestamps_ms)
    if count == 1 or columns.size <= batch_bytes * 3 // 2:
        yield columns
        return
    yield from _halved(columns.slice(0, count // 2), batch_bytes)
    yield from _halved(columns.slice(count // 2, count), batch_bytes)


def _encode(columns: FetchedColumns, partition: int, codec: int) -> EncodedBatch:
    data = from_columns(columns.keys, columns.values, columns.timestamps_ms, columns.headers, codec=codec)
    return EncodedBatch(partition, data, len(columns.timestamps_ms))
