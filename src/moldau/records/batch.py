"""The record batch, format v2: its 61-byte header, its checksum, and the offsets that a leader writes into it.

    0   8  base_offset              the first record's offset; a leader writes it
    8   4  batch_length             bytes after this field: the size is batch_length + 12
   12   4  partition_leader_epoch   a leader writes it
   16   1  magic                    2
   17   4  crc                      CRC-32C of everything below: base_offset and the epoch change without touching it
   21   2  attributes               bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon
   23   4  last_offset_delta        offset of the last record - base_offset, also after compaction
   27   8  base_timestamp           ms; records hold deltas to it (bit 6: the delete horizon)
   35   8  max_timestamp            ms; with bit 3 the timestamp of every record
   43   8  producer_id              -1 without idempotence
   51   2  producer_epoch
   53   4  base_sequence            sequence of the first record, -1 without idempotence
   57   4  count                    records that follow
   61   ..  records                  one after the other, compressed as a whole if bits 0-2 say so

A control batch with the transactional bit holds one record, the marker that ends a transaction:

    key     0  2  version 0           value   0  2  version 0
            2  2  0 abort, 1 commit           2  4  coordinator_epoch

One without that bit and with 30010 in place of 0 or 1 is ours: it ends what a mirror has of its source (`HANDOVER`).
This module decodes no other record and does not decide whether a batch is accepted (`validation` does).
Source: "Record Batch" and "Control Batches" of Kafka's documentation; KIP-98.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from moldau.checksums import crc32c
from moldau.errors import KafkaError
from moldau.records import columns, compression

Buffer: TypeAlias = bytes | bytearray | memoryview
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""The bytes of a batch that `batch_length` does not count."""
MAGIC: Final = 2
LENGTH_AT, EPOCH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, MAX_TIMESTAMP_AT = 8, 12, 16, 17, 21, 35
assert HEADER.size == HEADER_SIZE
assert struct.calcsize(">qiib") == CRC_AT and struct.calcsize(">qiibI") == ATTRIBUTES_AT
assert struct.calcsize(">qiibIhiq") == MAX_TIMESTAMP_AT

CODEC_BITS, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 0x07, 0x08, 0x10, 0x20, 0x40
KNOWN_BITS: Final = 0x7F
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1

MARKER_BYTES_MAX: Final = 1024
"""The largest batch that holds a marker: a search for markers can skip larger batches."""
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1
_HANDOVER: Final = 30_010
"""A kind of control record of ours. Clients and Kafka's tools pass over kinds that they do not know."""
_INT64 = struct.Struct(">q")
_UINT32 = struct.Struct(">I")


class BatchHeader(NamedTuple):
    """The header, field by field."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; after 2**31 - 1 comes 0. -1 without idempotence."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0


class Row(NamedTuple):
    """One record to be written."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = NO_TIMESTAMP
    headers: Headers = ()


class Marker(NamedTuple):
    """The end of a transaction, as its control record states it."""

    commits: bool
    coordinator_epoch: int


HANDOVER: Final = Marker(False, -1)
"""Stands for the control record behind the last batch of a mirror: from there on the producers are this cluster's. The
ids of those before it may be those of others here."""


def read_header(buffer: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`; raises `struct.error` if fewer than 61 bytes follow. Its fields are not verified."""
    return tuple.__new__(BatchHeader, HEADER.unpack_from(buffer, at))


def batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch, up to the first that is cut off or not a batch."""
    at, end = 0, len(buffer)
    while end - at >= HEADER_SIZE:
        header = read_header(buffer, at)
        size = header.batch_length + LOG_OVERHEAD
        if size < HEADER_SIZE or size > end - at or header.magic != MAGIC:
            return
        yield at, header
        at += size


def crc_holds(buffer: Buffer, at: int = 0) -> bool:
    """Whether the whole batch at `at` has the right checksum."""
    (length,) = struct.unpack_from(">i", buffer, at + LENGTH_AT)
    (crc,) = _UINT32.unpack_from(buffer, at + CRC_AT)
    view = memoryview(buffer)[at + ATTRIBUTES_AT : at + LOG_OVERHEAD + length]
    return len(view) == LOG_OVERHEAD + length - ATTRIBUTES_AT and bool(crc == crc32c(view))


def place(buffer: bytearray | memoryview, base_offset: int, leader_epoch: int, at: int = 0) -> None:
    """Write offset and leader epoch into the batch at `at`; the checksum does not cover them."""
    _INT64.pack_into(buffer, at, base_offset)
    struct.pack_into(">i", buffer, at + EPOCH_AT, leader_epoch)


def stamp(buffer: bytearray | memoryview, attributes: int, max_timestamp: int, at: int = 0) -> None:
    """Write attributes and max_timestamp into the batch at `at`, and recompute its checksum."""
    struct.pack_into(">h", buffer, at + ATTRIBUTES_AT, attributes)
    _INT64.pack_into(buffer, at + MAX_TIMESTAMP_AT, max_timestamp)
    (length,) = struct.unpack_from(">i", buffer, at + LENGTH_AT)
    view = memoryview(buffer)[at + ATTRIBUTES_AT : at + LOG_OVERHEAD + length]
    _UINT32.pack_into(buffer, at + CRC_AT, crc32c(view))


def write_batch(
    records: Buffer,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: int = compression.NONE,
    level: int | None = None,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    last_offset_delta: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    room: int = 0,
    checksum: bool = True,
    compressor: compression.Compressor | None = None,
    over: bytearray | None = None,
) -> bytearray:
    """One whole batch around encoded records, which are compressed here. With `checksum=False`, `stamp` must follow.

    `attributes`: the bits other than the codec's. `room`: 61 if `records` is a bytearray with free space for the header
    in front; without a codec that bytearray becomes the batch. `compressor` compresses in place of `compression`; a
    compressed batch is written over `over`, a batch that nobody needs.
    """
    if codec == compression.NONE and room == HEADER_SIZE and isinstance(records, bytearray):
        batch = records
    else:
        plain = memoryview(records)[room:]
        body = _compressed(codec, plain, level, compressor) if codec else plain
        if over is None:
            batch = bytearray(HEADER_SIZE)
            batch += body
        else:
            batch = _resized(over, HEADER_SIZE + len(body))
            memoryview(batch)[HEADER_SIZE:] = body
    if last_offset_delta is None:
        last_offset_delta = count - 1
    attributes = attributes & ~CODEC_BITS | codec
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch, MAGIC, 0, attributes, last_offset_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    if checksum:
        _UINT32.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return batch


def _compressed(codec: int, plain: Buffer, level: int | None, compressor: compression.Compressor | None) -> Buffer:
    return compression.compress(codec, plain, level) if compressor is None else compressor.compress(plain)


def _resized(memory: bytearray, size: int) -> bytearray:
    if len(memory) < size:
        memory += bytes(size - len(memory))
    else:
        del memory[size:]
    return memory


def encode_batch(
    rows: Sequence[Row] | Sequence[tuple[bytes | None, bytes | None, int, Headers]],
    *,
    codec: int = compression.NONE,
    level: int | None = None,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """One whole batch of rows, at least one. Raises `ValueError` if the rows do not fit into one batch."""
    if not rows:
        raise ValueError("a batch needs a row")
    base_timestamp = rows[0][2]
    records, max_timestamp = columns.encode_rows(rows, base_timestamp, HEADER_SIZE)
    return write_batch(
        records,
        count=len(rows),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        codec=codec,
        level=level,
        attributes=attributes,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        room=HEADER_SIZE,
    )


def encode_marker(
    producer_id: int, producer_epoch: int, commits: bool, coordinator_epoch: int, timestamp_ms: int
) -> bytearray:
    """The control batch that ends a producer's transaction in one partition."""
    key = _MARKER_KEY.pack(0, _COMMIT if commits else _ABORT)
    return encode_batch(
        [Row(key, _MARKER_VALUE.pack(0, coordinator_epoch), timestamp_ms)],
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def read_marker(batch: Buffer) -> Marker | None:
    """The marker in a whole control batch; None if it holds none: compaction emptied it, or it is of another kind."""
    header = read_header(batch)
    size = header.size
    if not header.is_control or header.codec or header.count != 1 or header.producer_id < 0:
        return None
    if not HEADER_SIZE < size <= min(len(batch), MARKER_BYTES_MAX):
        return None
    try:
        section = columns.Section(batch, HEADER_SIZE, size, 1, header.last_offset_delta, 0, 0, None, 0, 1 << 31)
        ((_, _, _, key, value, _),) = columns.rows(section)
        version, kind = _MARKER_KEY.unpack_from(key or b"")
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(value or b"")
    except (KafkaError, struct.error):
        return None
    return Marker(kind == _COMMIT, coordinator_epoch) if version >= 0 and kind in (_ABORT, _COMMIT) else None


def encode_handover(timestamp_ms: int) -> bytearray:
    """The control batch of `HANDOVER`."""
    return encode_batch([Row(_MARKER_KEY.pack(0, _HANDOVER), b"", timestamp_ms)], attributes=CONTROL_BIT)


def read_control(batch: Buffer) -> Marker | None:
    """As `read_marker`, and `HANDOVER` for that control batch."""
    header = read_header(batch)
    if header.producer_id >= 0 or not header.is_control or header.codec or header.count != 1:
        return read_marker(batch)
    # Attributes, deltas of timestamp and offset take a byte each: the key's length, 4, follows.
    key = bytes(batch[HEADER_SIZE + 4 : HEADER_SIZE + 9])
    return HANDOVER if key == b"\x08" + _MARKER_KEY.pack(0, _HANDOVER) else None
