"""Encodes Arrow columns into batches for each partition, so that a producer can send whole tables (needs pyarrow).

Rows keep their order within a partition. A batch holds about `batch_bytes`; only a
batch of a single record may be larger.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from moldau.records.arrays import integers
from moldau.records.arrow import from_columns, source_of
from moldau.records.columns import RECORD_SIZE_MAX, by_partition
from moldau.records.compression import Compressor

SPLIT_BYTES, SPLIT_BATCHES = 16 * 1024 * 1024, 8
"""Rows are sorted by partition in portions of about this size, or of this many batches for each partition."""


class EncodedBatch(NamedTuple):
    """A batch for one partition, encoded and compressed, without a checksum."""

    partition: int
    data: bytearray
    rows: int


Encode = Callable[["RecordColumns", int], EncodedBatch]


class RecordColumns(NamedTuple):
    """Columns of equal length. Keys, values, headers and partitions may be missing; timestamps may not. A partition of
    -1 is chosen by the key, or without a key by the sticky partitioner."""

    keys: pa.Array | pa.ChunkedArray | None
    values: pa.Array | pa.ChunkedArray | None
    timestamps_ms: pa.Array
    headers: pa.Array | None
    partitions: pa.Array | None

    def take(self, rows: pa.Array) -> "RecordColumns":
        return RecordColumns(*(None if column is None else column.take(rows) for column in self))

    def slice(self, start: int, count: int) -> "RecordColumns":
        return RecordColumns(*(None if column is None else column.slice(start, count) for column in self))

    @property
    def size(self) -> int:
        """Approximate size of these rows in a batch, in bytes, without headers. Arrow counts only the slice's bytes."""
        contents = sum(column.nbytes for column in (self.keys, self.values) if column is not None)
        return len(self.timestamps_ms) * RECORD_SIZE_MAX + int(contents)

    def with_chosen(self, choose: Callable[[bytes | None], int]) -> "RecordColumns":
        """These columns, with a partition that `choose(key)` returned in each row that names none."""
        rows = len(self.timestamps_ms)
        keys = [None] * rows if self.keys is None else self.keys.to_pylist()
        given = [-1] * rows if self.partitions is None else self.partitions.to_pylist()
        chosen = [choose(key) if named < 0 else named for key, named in zip(keys, given, strict=True)]
        return self._replace(partitions=integers(chosen, pa.int32()))

    @property
    def highest_partition(self) -> int | None:
        """The largest partition that a row names; None if no row names one."""
        if self.partitions is None or not len(self.partitions):
            return None
        highest: int = pc.max(self.partitions).as_py()
        return highest if highest >= 0 else None


def encoded_batches(
    columns: RecordColumns,
    partitions: int,
    sticky: Callable[[int], int],
    *,
    batch_bytes: int,
    codec: int,
    by_key: bool = True,
    spare: Callable[[], bytearray | None] = lambda: None,
) -> Iterator[EncodedBatch]:
    """Yield the batches of all rows, without checksums: they need `stamp`. A row goes to the partition that it names,
    else (with `by_key`) to its key's partition, else to the one that `sticky(bytes)` returns. `spare()` may return the
    memory of a batch that is no longer needed."""
    encode = (
        partial(_encode_compressed, codec, spare, bytearray(), Compressor(codec)) if codec else partial(_encode, spare)
    )
    keys = columns.keys if by_key else None
    if columns.partitions is None and (keys is None or keys.null_count == len(keys)):
        for piece, size in _pieces(columns, batch_bytes):
            yield encode(piece, sticky(size))
        return
    rows = len(columns.timestamps_ms)
    portion = max(rows * max(SPLIT_BYTES, SPLIT_BATCHES * partitions * batch_bytes) // max(columns.size, 1), 1)
    for start in range(0, rows, portion):
        yield from _split(columns.slice(start, portion), partitions, sticky(0), batch_bytes, encode, by_key)


def _split(
    columns: RecordColumns, partitions: int, without_key: int, batch_bytes: int, encode: "Encode", by_key: bool
) -> Iterator[EncodedBatch]:
    """The batches of these rows, partition by partition."""
    rows, given = len(columns.timestamps_ms), None
    if columns.partitions is not None:
        given = memoryview(columns.partitions.buffers()[1] or b"").cast("B").cast("i")[columns.partitions.offset :]
    order, counts = by_partition(source_of(columns.keys if by_key else None), rows, partitions, without_key, given)
    by_target = columns.take(pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(order)], 0))
    start = 0
    for target, count in enumerate(counts):
        for piece, _ in _pieces(by_target.slice(start, count), batch_bytes):
            yield encode(piece, target)
        start += count


def _pieces(columns: RecordColumns, batch_bytes: int) -> Iterator[tuple[RecordColumns, int]]:
    """Slices of about `batch_bytes` and their sizes, with row counts from the average row size; larger slices are
    halved."""
    count = len(columns.timestamps_ms)
    if not count:
        return
    rows = max(batch_bytes * count // max(columns.size, 1), 1)
    for start in range(0, count, rows):
        yield from _halved(columns.slice(start, rows), batch_bytes)


def _halved(columns: RecordColumns, batch_bytes: int) -> Iterator[tuple[RecordColumns, int]]:
    count, size = len(columns.timestamps_ms), columns.size
    if count == 1 or size <= batch_bytes * 3 // 2:
        yield columns, size
        return
    yield from _halved(columns.slice(0, count // 2), batch_bytes)
    yield from _halved(columns.slice(count // 2, count), batch_bytes)


def _encode(spare: Callable[[], bytearray | None], columns: RecordColumns, partition: int) -> EncodedBatch:
    data = from_columns(*columns[:4], into=spare(), checksum=False)
    return EncodedBatch(partition, data, len(columns.timestamps_ms))


def _encode_compressed(
    codec: int,
    spare: Callable[[], bytearray | None],
    scratch: bytearray,
    compressor: Compressor,
    columns: RecordColumns,
    partition: int,
) -> EncodedBatch:
    data = from_columns(*columns[:4], into=scratch, checksum=False, codec=codec, compressor=compressor, over=spare())
    return EncodedBatch(partition, data, len(columns.timestamps_ms))
