"""Record batches made and read by hand, independent of the broker's own code: right ones, and every kind of wrong one.

`batch` makes one of message format v2; each keyword that is given replaces what would be right. `read_batches` makes
plain data of what a Fetch brings, so that it is compared field by field, records included.
"""

import gzip
import struct
import time
from collections.abc import Sequence
from typing import Any

import cramjam
import crc32c

NOW = int(time.time() * 1000)
T0 = NOW - 86_400_000
"""The time of the first record of every batch: far enough from now to be told from times that a broker put in."""

HEADER = struct.Struct(">qiibIhiqqqhii")
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LZ4_FRAME = bytes.fromhex("04224d18604082")
"""The head of a frame of independent blocks, the only kind that Kafka reads."""
XERIAL = b"\x82SNAPPY\0"
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 8, 16, 32

Row = tuple[bytes | None, bytes | None]


def varint(value: int) -> bytes:
    """Zig-zag, as in records."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    row: Row,
    offset_delta: int,
    timestamp_delta: int = 0,
    headers: Sequence[tuple[str, bytes | None]] = (),
    length: int | None = None,
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _sized(row[0]) + _sized(row[1])
    body += varint(len(headers)) + b"".join(_sized(key.encode()) + _sized(value) for key, value in headers)
    return varint(len(body) if length is None else length) + body


def compress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == LZ4:
        block = bytes(cramjam.lz4.compress_block(data, store_size=False))
        return LZ4_FRAME + struct.pack("<I", len(block)) + block + bytes(4)
    return bytes(cramjam.zstd.compress(data)) if codec == ZSTD else data


def _snappy_blocks(data: bytes) -> list[bytes]:
    """One raw block, or, framed as Java does, several behind their sizes."""
    if not data.startswith(XERIAL):
        return [data]
    blocks, at = [], len(XERIAL) + 8
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        blocks.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return blocks


def decompress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.decompress(data)
    if codec == SNAPPY:
        return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in _snappy_blocks(data))
    if codec == LZ4:
        return bytes(cramjam.lz4.decompress(data))
    return bytes(cramjam.zstd.decompress(data)) if codec == ZSTD else data


def batch(*rows: Row | bytes, codec: int = 0, body: bytes | None = None, **wrong: Any) -> bytes:
    """A batch of (key, value) rows, or values alone, one millisecond apart."""
    pairs: list[Row] = [(None, row) if isinstance(row, bytes) else row for row in rows]
    if body is None:
        body = b"".join(record(row, i, i) for i, row in enumerate(pairs))
    body = compress(codec, body)
    last = max(len(pairs) - 1, 0)
    attributes = wrong.get("attributes", 0) | codec
    timestamp = wrong.get("timestamp", T0)
    rest = struct.pack(
        ">hiqqqhii",
        attributes,
        wrong.get("last_offset_delta", last),
        timestamp,
        wrong.get("max_timestamp", timestamp + last),
        wrong.get("producer_id", -1),
        wrong.get("producer_epoch", -1),
        wrong.get("base_sequence", -1),
        wrong.get("count", len(pairs)),
    )
    crc = wrong.get("crc", crc32c.crc32c(rest + body))
    length = wrong.get("length", 9 + len(rest) + len(body))
    front = (wrong.get("base_offset", 0), length, wrong.get("leader_epoch", -1), wrong.get("magic", 2), crc)
    return struct.pack(">qiibI", *front) + rest + body


class Cursor:
    """Reads varints and sized fields of a record."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)
            shift += 7

    def sized(self) -> bytes | None:
        size = self.varint()
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at]


def read_batches(data: bytes | None) -> list[dict[str, Any]] | None:
    """The batches of a record set, each with its header's fields and its records; a cut-off tail is named."""
    if data is None:
        return None
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(data):
        if len(data) - at < 61 or len(data) - at - 12 < struct.unpack_from(">i", data, at + 8)[0]:
            found.append({"cut_off_bytes": len(data) - at})
            break
        (base, length, epoch, magic, crc, attributes, delta, first, last, pid, pepoch, sequence, count) = (
            HEADER.unpack_from(data, at)
        )
        found.append(
            {
                "base_offset": base,
                "batch_length": length,
                "leader_epoch": epoch,
                "magic": magic,
                "crc_holds": crc == crc32c.crc32c(data[at + 21 : at + 12 + length]),
                "attributes": attributes,
                "last_offset_delta": delta,
                "base_timestamp": first,
                "max_timestamp": last,
                "producer_id": pid,
                "producer_epoch": pepoch,
                "base_sequence": sequence,
                "records": _records(decompress(attributes & 7, data[at + 61 : at + 12 + length]), count, first),
            }
        )
        at += 12 + length
    return found


def _records(data: bytes, count: int, base_timestamp: int) -> list[dict[str, Any]]:
    cursor = Cursor(data)
    found = []
    for _ in range(count):
        cursor.varint()
        cursor.at += 1
        one: dict[str, Any] = {"timestamp": base_timestamp + cursor.varint(), "offset_delta": cursor.varint()}
        one |= {"key": cursor.sized(), "value": cursor.sized()}
        one["headers"] = [[cursor.sized(), cursor.sized()] for _ in range(cursor.varint())]
        found.append(one)
    return found
