# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""Writing the records of one batch, from rows and from Arrow's buffers, with offset deltas 0, 1, 2 ...

The format is drawn in `scanning`. Each of the two goes twice over its input: once to add up sizes, once to write into a
buffer of exactly that size. Nothing here knows of headers of batches or of compression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    import cython
    from cython.cimports.libc.string import memcpy
except (ImportError, AttributeError):
    from moldau.records import untyped as cython


COMPILED: bool = cython.compiled


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size_of_varint(value: cython.longlong) -> cython.Py_ssize_t:
    """Bytes of a zig-zag number."""
    raw: cython.ulonglong = cython.cast(cython.ulonglong, (value << 1) ^ (value >> 63))
    size: cython.Py_ssize_t = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_varint(out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a zig-zag number; returns the position behind it."""
    raw: cython.ulonglong = cython.cast(cython.ulonglong, (value << 1) ^ (value >> 63))
    while raw > 0x7F:
        out[at] = cython.cast(cython.uchar, (raw & 0x7F) | 0x80)
        raw >>= 7
        at += 1
    out[at] = cython.cast(cython.uchar, raw)
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def copy(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    source: cython.p_const_uchar,
    start: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy source[start:start + length] to out[at:]; returns the position behind it."""
    if cython.compiled:
        memcpy(out + at, source + start, length)
    else:
        out[at : at + length] = source[start : start + length]
    return at + length


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_prefix(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    length: cython.longlong,
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
) -> cython.Py_ssize_t:
    """What comes before the key."""
    at = put_varint(out, at, length)
    out[at] = 0
    at = put_varint(out, at + 1, timestamp_delta)
    return put_varint(out, at, offset_delta)


def header_block(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """The headers of one record as they stand in it, their count first."""
    out = bytearray(10)
    scratch = bytearray(10)
    view: cython.uchar[::1] = scratch
    p: cython.p_uchar = cython.address(view[0]) if cython.compiled else scratch
    del out[put_varint(p, 0, len(headers)) :]
    out[:] = scratch[: len(out)]
    for key, value in headers:
        name = key.encode()
        out += scratch[: put_varint(p, 0, len(name))]
        out += name
        out += scratch[: put_varint(p, 0, -1 if value is None else len(value))]
        if value is not None:
            out += value
    return bytes(out)


NO_HEADERS = b"\x00"


def encode_rows(rows: Sequence[Any], base_timestamp: cython.longlong) -> tuple[bytearray, int]:
    """Encode rows (key, value, timestamp in ms, headers), bytes or None each; returns the records and the largest timestamp."""
    items: list = rows if isinstance(rows, list) else list(rows)
    count: cython.Py_ssize_t = len(items)
    sizes: list = []
    blocks: dict = {}
    total: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t
    length: cython.Py_ssize_t
    timestamp: cython.longlong
    max_timestamp: cython.longlong = -1
    key: bytes
    value: bytes
    block: bytes
    out: bytearray
    for i in range(count):
        key, value, timestamp, headers = items[i]
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        size = 2 + size_of_varint(timestamp - base_timestamp) + size_of_varint(i)
        length = -1 if key is None else len(key)
        size += size_of_varint(length) + (length if length > 0 else 0)
        length = -1 if value is None else len(value)
        size += size_of_varint(length) + (length if length > 0 else 0)
        if headers:
            block = header_block(headers)
            blocks[i] = block
            size += len(block) - 1
        sizes.append(size)
        total += size + size_of_varint(size)
    out = bytearray(total)
    view: cython.uchar[::1] = out
    p: cython.p_uchar = cython.address(view[0]) if cython.compiled else out
    for i in range(count):
        key, value, timestamp, headers = items[i]
        at = put_prefix(p, at, sizes[i], timestamp - base_timestamp, i)
        if key is None:
            at = put_varint(p, at, -1)
        else:
            at = put_varint(p, at, len(key))
            at = copy(p, at, key, 0, len(key))
        if value is None:
            at = put_varint(p, at, -1)
        else:
            at = put_varint(p, at, len(value))
            at = copy(p, at, value, 0, len(value))
        block = blocks.get(i, NO_HEADERS) if blocks else NO_HEADERS
        at = copy(p, at, block, 0, len(block))
    return out, max_timestamp
