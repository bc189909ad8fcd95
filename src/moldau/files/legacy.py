"""Reads message formats v0 and v1, which brokers before 0.11 wrote. We never write them (KIP-724).

     0   8  offset       of a wrapper: the last inner message's
     8   4  size         bytes after this field, at least 14
    12   4  crc          zlib's CRC-32 of everything below
    16   1  magic        0 or 1
    17   1  attributes   bits 0-2 codec (none, gzip, snappy, lz4), bit 3 log append time (v1)
    18   8  timestamp    ms; in v1 only
    ..   4  key length   below 0: no key
    ..   4  value length below 0: no value

A message with a codec is a wrapper: its inflated value is a sequence of messages, none of them a wrapper. In v0, inner
offsets are absolute. In v1 they are relative, and the last inner message has the wrapper's own offset: adding the
difference to each inner offset also reads wrappers with absolute inner offsets and the gaps that compaction leaves. In
a wrapper at offset 0, inner offsets are taken as they are. With log append time, the wrapper's timestamp applies to all
inner messages. LZ4 in v0 has a header checksum that wrongly covers the frame's magic (KAFKA-3160).

One file may hold messages v0 and v1 and batches v2, one after another; each of them is a `LogEntry` here. For any
bytes, the only exception is `Damaged`, and memory is bounded by `ENTRY_BYTES_MAX`, `INFLATED_BYTES_MAX` and (all
records of a batch v2 are read at once) `BATCH_RECORDS_MAX`. Sources: "Message sets" of Kafka's documentation; KIP-31,
KIP-32; the behaviour of Kafka's dump tool.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, NoReturn, TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.records import batch, columns, compression
from moldau.records.batch import HEADER_SIZE, crc_holds, read_header
from moldau.records.rows import Record
from moldau.records.sections import section_of

Buffer: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[int, int], Buffer]
"""`read(length, at)` returns up to `length` bytes from position `at`, as `runtime.File.read` does."""

LOG_OVERHEAD: Final = batch.LOG_OVERHEAD
CRC_AT, MAGIC_AT, ATTRIBUTES_AT, TIMESTAMP_AT = 12, 16, 17, 18
KEY_AT: Final = (18, 26)
"""Position of the key's length, by magic."""
SMALLEST_SIZE: Final = 14
"""The smallest size of an entry: a v0 message without key and value."""
START_SIZE: Final = MAGIC_AT + 1
CODEC_BITS, LOG_APPEND_TIME_BIT = 0x07, 0x08
NO_TIMESTAMP, NO_TIMESTAMP_TYPE = -1, -1
ENTRY_BYTES_MAX: Final = 256 * 1024 * 1024
INFLATED_BYTES_MAX: Final = 256 * 1024 * 1024
BATCH_RECORDS_MAX: Final = 1 << 20
WINDOW_BYTES: Final = 256 * 1024
OFFSET_MAX: Final = (1 << 63) - 1
assert struct.calcsize(">qi") == CRC_AT and struct.calcsize(">qiIb") == ATTRIBUTES_AT
assert struct.calcsize(">qiIbb") == TIMESTAMP_AT == KEY_AT[0] and struct.calcsize(">qiIbbq") == KEY_AT[1]
assert KEY_AT[0] + 8 == LOG_OVERHEAD + SMALLEST_SIZE

_START = struct.Struct(">qiIb")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")

_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_CONTENT_SIZE, _LZ4_DICTIONARY = 0x08, 0x01


class Damaged(KafkaError):
    """The bytes from `position` on cannot be read. `at_end`: the file ends in the middle of an entry.

    `zeros`: only zeros follow, as in a preallocated file that was never closed.
    """

    def __init__(self, position: int, what: str, *, at_end: bool = False, zeros: bool = False):
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"at position {position}: {what}")
        self.position = position
        self.what = what
        self.at_end = at_end
        self.zeros = zeros


class LogEntry(NamedTuple):
    """One entry of a log file: a message, a wrapper of messages, or a batch v2."""

    position: int
    size: int
    """Size in bytes, including the offset and size fields."""
    magic: int
    offset: int
    """The offset field: the offset of the first record in v2, of the only or last record in v0 and v1."""
    crc: int
    crc_ok: bool
    attributes: int
    timestamp_ms: int
    """Timestamp in ms; the largest of the records' in v2, -1 in v0."""
    data: memoryview

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def timestamp_type(self) -> int:
        """0 create time, 1 log append time, -1 none (v0)."""
        if self.magic == 0:
            return NO_TIMESTAMP_TYPE
        return 1 if self.attributes & LOG_APPEND_TIME_BIT else 0

    @property
    def base_offset(self) -> int:
        """The offset of the first record. A wrapper is inflated to find it, so this raises `Damaged` as `rows` does."""
        if self.magic == batch.MAGIC or not self.codec:
            return self.offset
        return next(rows(self, check_crcs=False)).offset

    @property
    def last_offset(self) -> int:
        return read_header(self.data).last_offset if self.magic == batch.MAGIC else self.offset


def entries(buffer: Buffer) -> Iterator[LogEntry]:
    """All entries in the bytes of a file. Raises `Damaged` where the bytes are not an entry or end in the middle of
    one.

    An entry with a wrong checksum is yielded too, with `crc_ok` false.
    """
    view = memoryview(buffer).cast("B")
    return stream(lambda length, at: view[at : at + length], len(view))


def stream(read: Read, end: int, at: int = 0) -> Iterator[LogEntry]:
    """The entries of a file of `end` bytes from position `at` on. At most one entry or window is in memory at a
    time."""
    window, window_at = memoryview(b""), at
    while at < end:
        if at + START_SIZE > window_at + len(window):
            window, window_at = memoryview(read(WINDOW_BYTES, at)), at
        start = window[at - window_at : at - window_at + HEADER_SIZE]
        size = _size_at(start, at, end, read)
        if at + size > window_at + len(window):
            window, window_at = memoryview(read(max(size, WINDOW_BYTES), at)), at
        data = window[at - window_at : at - window_at + size]
        if len(data) < size:
            raise Damaged(at, f"an entry of {size} bytes is cut off after {len(data)}", at_end=True)
        yield _entry(data, at)
        at += size


def rows(
    entry: LogEntry, *, control: bool = False, check_crcs: bool = True, inflated_max: int = INFLATED_BYTES_MAX
) -> Iterator[Record]:
    """The records of an entry, including control records only with `control`. Records of v0 and v1 have no headers.

    Raises `Damaged` if the checksum of the entry or of an inner message is wrong (unless `check_crcs` is false), or if
    the records cannot be read.
    """
    if check_crcs and not entry.crc_ok:
        raise Damaged(entry.position, f"the checksum of the entry at offset {entry.offset} is wrong")
    if entry.magic == batch.MAGIC:
        yield from _batch_rows(entry, control, inflated_max)
    elif entry.codec == compression.NONE:
        key, value = _key_and_value(entry.data, 0, entry.size, entry)
        yield Record(entry.offset, entry.timestamp_ms, entry.timestamp_type, key, value, [])
    else:
        yield from _wrapped_rows(entry, check_crcs, inflated_max)


def _size_at(start: memoryview, at: int, end: int, read: Read) -> int:
    """The size of the entry that begins with these bytes. Raises `Damaged` if no entry can begin so."""
    left = end - at
    if len(start) < START_SIZE:
        if not any(start):
            raise Damaged(at, f"{left} bytes of zeros follow", at_end=True, zeros=True)
        raise Damaged(at, f"{left} bytes are too few for an entry", at_end=True)
    _, length, _, magic = _START.unpack_from(start)
    if length < SMALLEST_SIZE:
        if not any(start) and _only_zeros(read, at, end):
            raise Damaged(at, f"{left} bytes of zeros follow", at_end=True, zeros=True)
        raise Damaged(at, f"an entry has size {length}, less than the minimum")
    if not 0 <= magic <= batch.MAGIC:
        raise Damaged(at, f"an entry has the unknown format {magic}; formats are 0, 1 and 2")
    size = int(length) + LOG_OVERHEAD
    if size < (HEADER_SIZE if magic == batch.MAGIC else KEY_AT[magic] + 8):
        raise Damaged(at, f"an entry of format {magic} has only {size} bytes, less than its header")
    if size > left:
        raise Damaged(at, f"an entry of {size} bytes is cut off after {left}", at_end=True)
    if size > ENTRY_BYTES_MAX:
        raise Damaged(at, f"an entry has {size} bytes, more than the maximum of {ENTRY_BYTES_MAX}")
    return size


def _only_zeros(read: Read, at: int, end: int) -> bool:
    while at < end:
        piece = bytes(read(WINDOW_BYTES, at))
        if piece.strip(b"\0"):
            return False
        if not piece:
            break
        at += len(piece)
    return True


def _entry(data: memoryview, position: int) -> LogEntry:
    if data[MAGIC_AT] == batch.MAGIC:
        h = read_header(data)
        holds = crc_holds(data)
        return LogEntry(position, len(data), h.magic, h.base_offset, h.crc, holds, h.attributes, h.max_timestamp, data)
    offset, _, crc, magic = _START.unpack_from(data)
    timestamp_ms = _INT64.unpack_from(data, TIMESTAMP_AT)[0] if magic else NO_TIMESTAMP
    holds = zlib.crc32(data[MAGIC_AT:]) == crc
    return LogEntry(position, len(data), magic, offset, crc, holds, data[ATTRIBUTES_AT], timestamp_ms, data)


def _batch_rows(entry: LogEntry, control: bool, inflated_max: int) -> Iterator[Record]:
    header = read_header(entry.data)
    if header.base_offset < 0 or header.count < 0 or header.last_offset > OFFSET_MAX:
        _refuse(entry, f"has the impossible number of {header.count} records up to offset {header.last_offset}")
    if header.count == 0 or (header.is_control and not control):
        return
    if header.count > BATCH_RECORDS_MAX:
        _refuse(entry, f"has {header.count} records, more than the maximum of {BATCH_RECORDS_MAX}")
    try:
        section = section_of(entry.data, 0, header, inflated_max=inflated_max)
        yield from columns.rows(section, Record)
    except KafkaError as error:
        raise Damaged(entry.position, str(error)) from None


def _wrapped_rows(wrapper: LogEntry, check_crcs: bool, inflated_max: int) -> Iterator[Record]:
    inner = _inflated(wrapper, inflated_max)
    last = -1
    for at, size in _inner(inner, wrapper):
        (last,) = _INT64.unpack_from(inner, at)
        if inner[at + ATTRIBUTES_AT] & CODEC_BITS:
            _refuse(wrapper, "is a wrapper that contains another wrapper")
        if check_crcs and _START.unpack_from(inner, at)[2] != zlib.crc32(inner[at + MAGIC_AT : at + size]):
            _refuse(wrapper, f"contains a message at {last} with a wrong checksum")
    base = 0
    if wrapper.magic and wrapper.offset:
        base = wrapper.offset - last
        if base < 0:
            _refuse(wrapper, f"ends with a message at {last}, after the entry's own offset")
    fixed = wrapper.timestamp_ms if wrapper.timestamp_type == 1 else None
    for at, size in _inner(inner, wrapper):
        offset, _, _, magic = _START.unpack_from(inner, at)
        if not 0 <= offset + base <= OFFSET_MAX:
            _refuse(wrapper, f"contains a message at the impossible offset {offset + base}")
        key, value = _key_and_value(inner, at, at + size, wrapper)
        timestamp_ms = NO_TIMESTAMP
        if magic:
            timestamp_ms = _INT64.unpack_from(inner, at + TIMESTAMP_AT)[0] if fixed is None else fixed
        yield Record(offset + base, timestamp_ms, wrapper.timestamp_type, key, value, [])


def _inner(inner: memoryview, wrapper: LogEntry) -> Iterator[tuple[int, int]]:
    """Position and size of each inner message. A last message that is cut off is ignored, as in Kafka."""
    at, end = 0, len(inner)
    while end - at >= LOG_OVERHEAD:
        (length,) = _INT32.unpack_from(inner, at + 8)
        if length < SMALLEST_SIZE:
            _refuse(wrapper, f"contains a message with size {length}, less than the minimum")
        size = length + LOG_OVERHEAD
        if size > end - at:
            break
        magic = inner[at + MAGIC_AT]
        if magic > 1 or size < KEY_AT[magic] + 8:
            _refuse(wrapper, f"contains a message of format {magic} in {size} bytes, which is impossible")
        yield at, size
        at += size
    if not at:
        _refuse(wrapper, "holds no message")


def _inflated(wrapper: LogEntry, inflated_max: int) -> memoryview:
    _, value = _slices(wrapper.data, 0, wrapper.size, wrapper)
    if value is None:
        _refuse(wrapper, "has no value")
    if wrapper.codec > compression.LZ4:
        _refuse(wrapper, f"has codec {wrapper.codec}, which formats 0 and 1 do not have")
    data: Buffer = value
    if wrapper.codec == compression.LZ4 and wrapper.magic == 0:
        data = _with_right_lz4_header(value)
    try:
        return memoryview(compression.decompress(wrapper.codec, data, inflated_max)).toreadonly()
    except compression.DecompressionError as error:
        _refuse(wrapper, f"cannot be inflated: {error}")


def _key_and_value(data: memoryview, at: int, stop: int, entry: LogEntry) -> tuple[bytes | None, bytes | None]:
    key, value = _slices(data, at, stop, entry)
    return None if key is None else bytes(key), None if value is None else bytes(value)


def _slices(data: memoryview, at: int, stop: int, entry: LogEntry) -> tuple[memoryview | None, memoryview | None]:
    """Key and value of the message from `at` to `stop`. Bytes after the value are ignored, as in Kafka."""
    at += KEY_AT[data[at + MAGIC_AT]]
    slices: list[memoryview | None] = []
    for name in ("key", "value"):
        (length,) = _INT32.unpack_from(data, at) if at + 4 <= stop else (stop,)
        at += 4
        if length > stop - at:
            _refuse(entry, f"has a {name} that extends past the entry's end")
        slices.append(data[at : at + length] if length >= 0 else None)
        at += max(length, 0)
    return slices[0], slices[1]


def _refuse(entry: LogEntry, what: str) -> NoReturn:
    raise Damaged(entry.position, f"the entry at offset {entry.offset} {what}")


def _with_right_lz4_header(data: memoryview) -> Buffer:
    """The frame with the header checksum (one byte) that a decoder expects. The checksum of v0 itself is not
    checked."""
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        return data
    flags = data[4]
    stop = 6 + (8 if flags & _LZ4_CONTENT_SIZE else 0) + (4 if flags & _LZ4_DICTIONARY else 0)
    if stop >= len(data):
        return data
    right = _xxh32(bytes(data[4:stop])) >> 8 & 0xFF
    if data[stop] == right:
        return data
    repaired = bytearray(data)
    repaired[stop] = right
    return repaired


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0, for fewer than 16 bytes."""
    assert len(data) < 16
    mask = 0xFFFFFFFF
    value = 0x165667B1 + len(data)
    words = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:words]):
        value = value + word * 0xC2B2AE3D & mask
        value = (value << 17 | value >> 15) * 0x27D4EB2F & mask
    for byte in data[words:]:
        value = value + byte * 0x165667B1 & mask
        value = (value << 11 | value >> 21) * 0x9E3779B1 & mask
    value = (value ^ value >> 15) * 0x85EBCA77 & mask
    value = (value ^ value >> 13) * 0xC2B2AE3D & mask
    return value ^ value >> 16
