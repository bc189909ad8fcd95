"""Batches made by hand for the tests: a second, slow writer of the format, sharing nothing with the one under test."""

import struct
from collections.abc import Callable, Sequence

import hypothesis.strategies as st
from crc32c import crc32c

from moldau.records import compression

NOW = 1_795_000_000_000
Headers = Sequence[tuple[bytes, bytes | None]]


def varint(value: int) -> bytes:
    """A zig-zag number, as short as it can be."""
    raw = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    index: int = 0,
    *,
    timestamp: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Headers = (),
    header_block: bytes | None = None,
    length: int | None = None,
    after: bytes = b"",
) -> bytes:
    """One record; `timestamp` and `index` are the deltas. What a test wants wrong it hands in."""
    block = varint(len(headers)) + b"".join(sized(name) + sized(data) for name, data in headers)
    body = b"\0" + varint(timestamp) + varint(index) + sized(key) + sized(value)
    body += (block if header_block is None else header_block) + after
    return varint(len(body) if length is None else length) + body


def batch(
    *records: bytes,
    codec: int = 0,
    attributes: int = 0,
    base_offset: int = 0,
    length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    crc: int | None = None,
    last: int | None = None,
    base_timestamp: int = NOW,
    max_timestamp: int = NOW,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    count: int | None = None,
    change: Callable[[bytes], bytes] = lambda body: body,
) -> bytearray:
    """One batch with a right checksum unless `crc` is given; `change` is applied to the compressed records."""
    body = b"".join(records)
    body = change(bytes(compression.compress(codec, body)) if codec else body)
    count = len(records) if count is None else count
    head = struct.pack(
        ">hiqqqhii", attributes | codec, count - 1 if last is None else last, base_timestamp, max_timestamp,
        producer_id, producer_epoch, sequence, count,
    )  # fmt: skip
    covered = head + body
    length = 9 + len(covered) if length is None else length
    start = struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc32c(covered) if crc is None else crc)
    return bytearray(start + covered)


blobs = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=20), blobs), max_size=3)
timestamps = st.integers(-1, 2**41) | st.integers(-(2**62), 2**62 - 1)
rows = st.tuples(blobs, blobs, timestamps, st.just([]) | header_lists)
row_lists = st.lists(rows, min_size=1, max_size=30)
