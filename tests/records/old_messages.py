"""Messages of the formats v0 and v1 made by hand from their description, sharing nothing with the code under test.

LZ4 frames and snappy's framing are written here byte for byte; only snappy's blocks come from a library.
"""

import gzip
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import cramjam

from tests.records import making

GZIP, SNAPPY, LZ4 = 1, 2, 3
LOG_APPEND_TIME = 8
LZ4_START = bytes.fromhex("04224d18 6040")
LZ4_RIGHT, LZ4_WRONG = b"\x82", b"\x1a"
"""The header's checksum as LZ4 wants it, and as Kafka wrote it before 0.10 (KAFKA-3160)."""


CONTENTS = [(b"k1", b"v1"), (None, b"v2"), (b"k3", None), (None, None), (b"", b"")]
STAMPS = [1_000, 1_002, 999, 0, -1]


class Row(NamedTuple):
    """What a reader should see."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(
    offset: int,
    key: bytes | None = None,
    value: bytes | None = None,
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp: int = 0,
    crc: int | None = None,
    size: int | None = None,
    after: bytes = b"",
) -> bytes:
    """One message; what a test wants wrong it hands in."""
    body = bytes([magic, attributes]) + (struct.pack(">q", timestamp) if magic else b"") + sized(key) + sized(value)
    body += after
    body = struct.pack(">I", zlib.crc32(body) if crc is None else crc) + body
    return struct.pack(">qi", offset, len(body) if size is None else size) + body


def wrapper(
    offset: int,
    *inner: bytes,
    codec: int = GZIP,
    magic: int = 0,
    timestamp: int = 0,
    attributes: int = 0,
    key: bytes | None = None,
    packed: bytes | None = None,
) -> bytes:
    """The messages in one; `packed` is its value where a test makes that itself."""
    value = pack(codec, b"".join(inner), magic) if packed is None else packed
    return message(offset, key, value, magic=magic, attributes=attributes | codec, timestamp=timestamp)


def pack(codec: int, data: bytes, magic: int) -> bytes:
    """As the brokers and clients of the time did it."""
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    return xerial(data) if codec == SNAPPY else lz4_frame(data, LZ4_RIGHT if magic else LZ4_WRONG)


def xerial(data: bytes, block: int = 32 * 1024) -> bytes:
    packed = [bare_snappy(data[at : at + block]) for at in range(0, len(data), block)]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(one)) + one for one in packed)


def bare_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def lz4_frame(data: bytes, checksum: bytes) -> bytes:
    """A frame of blocks that are stored as they are."""
    out = LZ4_START + checksum
    for at in range(0, len(data), 65536):
        block = data[at : at + 65536]
        out += struct.pack("<I", len(block) | 1 << 31) + block
    return out + bytes(4)


def set_v0(
    offsets: Sequence[int], contents: Sequence[tuple[bytes | None, bytes | None]], codec: int
) -> tuple[bytes, list[Row]]:
    """A v0 wrapper, or one message after the other without a codec; and what is in it."""
    rows = [Row(offset, -1, -1, *content) for offset, content in zip(offsets, contents, strict=True)]
    inner = [message(row.offset, row.key, row.value) for row in rows]
    return (wrapper(offsets[-1], *inner, codec=codec) if codec else b"".join(inner)), rows


def set_v1(
    offsets: Sequence[int],
    contents: Sequence[tuple[bytes | None, bytes | None]],
    codec: int,
    timestamps: Sequence[int],
    *,
    append_time: int | None = None,
    absolute: bool = False,
    first: int = 0,
) -> tuple[bytes, list[Row]]:
    """The same in v1. `first`: the relative offset of the first inner message (not 0 once the one before is gone);
    `append_time`: of a wrapper, the inner messages keep what their producer gave them."""
    kind, bit = (0, 0) if append_time is None else (1, LOG_APPEND_TIME)
    stamps = [stamp if append_time is None else append_time for stamp in timestamps]
    rows = [Row(o, t, kind, *content) for o, t, content in zip(offsets, stamps, contents, strict=True)]
    if not codec:
        plain = [message(r.offset, r.key, r.value, magic=1, attributes=bit, timestamp=r.timestamp_ms) for r in rows]
        return b"".join(plain), rows
    base = 0 if absolute else offsets[0] - first
    inner = [
        message(row.offset - base, row.key, row.value, magic=1, timestamp=stamp)
        for row, stamp in zip(rows, timestamps, strict=True)
    ]
    return wrapper(offsets[-1], *inner, codec=codec, magic=1, attributes=bit, timestamp=max(stamps)), rows


def mixed() -> tuple[bytes, list[Row]]:
    """Every format and codec one after the other, as upgrades leave a segment."""
    parts = [
        set_v0([0, 1], CONTENTS[:2], 0),
        set_v0([2, 5], CONTENTS[1:3], SNAPPY),
        set_v1([6, 7], CONTENTS[:2], 0, STAMPS[:2]),
        set_v1([8, 10], CONTENTS[:2], GZIP, STAMPS[:2]),
    ]
    batch = making.batch(making.record(0, timestamp=-3), making.record(1), base_offset=11, codec=0)
    data, rows = b"".join(part for part, _ in parts), [row for _, part in parts for row in part]
    batch_rows = [Row(11, making.NOW - 3, 0, b"k", b"v"), Row(12, making.NOW, 0, b"k", b"v")]
    last, last_rows = set_v1([13], CONTENTS[:1], 0, [4], append_time=5)
    return data + bytes(batch) + last, rows + batch_rows + last_rows


def resealed(data: bytearray) -> None:
    """Give each message the checksum of its bytes, so that what was changed is looked at."""
    at = 0
    while at + 17 <= len(data):
        (size,) = struct.unpack_from(">i", data, at + 8)
        stop = at + 12 + size
        if size < 14 or stop > len(data):
            return
        if data[at + 16] < 2:
            struct.pack_into(">I", data, at + 12, zlib.crc32(data[at + 16 : stop]))
        at = stop
