# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""Writing the records of one batch, from rows and from Arrow's buffers, with offset deltas 0, 1, 2 ...

The format is drawn in `scanning`. Both go twice over their input, which must not change meanwhile: once to add up
sizes, once to write into a buffer of exactly that size. This module handles neither batch headers nor compression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

try:
    import cython
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy
except (ImportError, AttributeError):
    from moldau.records import untyped as cython


COMPILED: bool = cython.compiled

INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
SIZE_MAX = cython.declare(cython.longlong, 0x7FFFFFFF - 61)
TOO_FAR = "the timestamps of one batch lie more than 64 bits apart"
TOO_LARGE = "one batch cannot hold more than 2 GiB of records"


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
    """Write a zig-zag number; returns the position after it."""
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
    """Copy source[start:start + length] to out[at:]; returns the position after it."""
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
    """The fields before the key."""
    at = put_varint(out, at, length)
    out[at] = 0
    at = put_varint(out, at + 1, timestamp_delta)
    return put_varint(out, at, offset_delta)


def header_block(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """The headers of one record in wire format, their count first."""
    out: bytearray = bytearray(10)  # with a type: Cython infers another one from run to run, and wheels would differ
    scratch: bytearray = bytearray(10)
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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size_of(
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: cython.longlong,
    value: cython.longlong,
    headers: cython.longlong,
) -> cython.longlong:
    """Bytes of a record after its length, from the lengths of its key and value (-1 null) and its block of headers."""
    size: cython.longlong = 1 + size_of_varint(timestamp_delta) + size_of_varint(offset_delta) + headers
    size += size_of_varint(key) + (key if key > 0 else 0)
    return size + size_of_varint(value) + (value if value > 0 else 0)


def encode_rows(
    rows: Sequence[Any], base_timestamp: cython.longlong, room: cython.Py_ssize_t = 0
) -> tuple[bytearray, int]:
    """The records of rows (key, value, timestamp in ms, headers) after `room` bytes, and the largest timestamp.

    Keys and values are bytes or None. Raises `ValueError` for timestamps too far apart and for more than 2 GiB.
    """
    items: list = list(rows)
    blocks: dict = {}
    total: cython.longlong = 0
    at: cython.Py_ssize_t = room
    i: cython.Py_ssize_t
    size: cython.longlong
    timestamp: cython.longlong
    max_timestamp: cython.longlong = -1
    key: bytes
    value: bytes
    block: bytes
    for i, (key, value, timestamp, headers) in enumerate(items):
        if too_far(timestamp, base_timestamp):
            raise ValueError(TOO_FAR)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        size = 1
        if headers:
            block = header_block(headers)
            blocks[i] = block
            size = len(block)
        size = size_of(timestamp - base_timestamp, i, length_of(key), length_of(value), size)
        total += size + size_of_varint(size)
    if total > SIZE_MAX:
        raise ValueError(TOO_LARGE)
    total += room
    out = bytearray(total)
    if not total:
        return out, max_timestamp
    view: cython.uchar[::1] = out
    p: cython.p_uchar = cython.address(view[0]) if cython.compiled else out
    for i, (key, value, timestamp, _) in enumerate(items):
        block = blocks.get(i, NO_HEADERS) if blocks else NO_HEADERS
        size = size_of(timestamp - base_timestamp, i, length_of(key), length_of(value), len(block))
        if size + size_of_varint(size) > total - at:
            raise ValueError("the rows changed while they were encoded")
        at = put_prefix(p, at, size, timestamp - base_timestamp, i)
        at = put_varint(p, at, length_of(key))
        if key is not None:
            at = copy(p, at, key, 0, len(key))
        at = put_varint(p, at, length_of(value))
        if value is not None:
            at = copy(p, at, value, 0, len(value))
        at = copy(p, at, block, 0, len(block))
    return out, max_timestamp


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def length_of(value: bytes | None) -> cython.longlong:
    return -1 if value is None else len(value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def too_far(timestamp: cython.longlong, base: cython.longlong) -> cython.bint:
    """Whether timestamp - base does not fit into 64 bits."""
    return timestamp > INT64_MAX + base if base < 0 else timestamp < base - INT64_MAX - 1


class Source(NamedTuple):
    """A column of byte strings to encode: Arrow's buffers, int32 offsets, from row `first` on."""

    offsets: memoryview
    data: memoryview
    validity: memoryview | None
    first: int = 0


@cython.final
@cython.cclass
class Column:
    """A `Source`, or None where all is null, as the loops want it."""

    offsets: cython.const[cython.int][::1]
    data: cython.const[cython.uchar][::1]
    validity: cython.const[cython.uchar][::1]
    first: cython.Py_ssize_t
    missing: cython.bint
    nullable: cython.bint

    def __init__(self, source: Source | None, count: cython.Py_ssize_t):
        i: cython.Py_ssize_t
        self.missing = source is None
        if source is None:
            return
        self.offsets, self.data, self.first = source.offsets, source.data, source.first
        self.nullable = source.validity is not None
        self.validity = source.validity if self.nullable else b"\0"
        if self.first < 0 or len(self.offsets) < self.first + count + 1:
            raise ValueError("a column has fewer rows than the batch")
        if self.nullable and 8 * len(self.validity) < self.first + count:
            raise ValueError("a column has fewer validity bits than rows")
        if self.offsets[self.first] < 0 or self.offsets[self.first + count] > len(self.data):
            raise ValueError("a column's offsets go beyond its bytes")
        for i in range(self.first, self.first + count):
            if self.offsets[i] > self.offsets[i + 1]:
                raise ValueError("a column's offsets go back")

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def length(self, row: cython.Py_ssize_t) -> cython.longlong:
        if self.missing:
            return -1
        row += self.first
        if self.nullable and not self.validity[row >> 3] >> (row & 7) & 1:
            return -1
        return self.offsets[row + 1] - self.offsets[row]

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def put(self, out: cython.p_uchar, at: cython.Py_ssize_t, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Write the bytes of a row; returns the position after them."""
        length: cython.longlong = self.length(row)
        if length <= 0:
            return at
        start: cython.Py_ssize_t = self.offsets[self.first + row]
        if cython.compiled:
            return copy(out, at, cython.address(self.data[0]), start, length)
        else:
            return copy(out, at, self.data, start, length)


def encode_columns(
    count: cython.Py_ssize_t,
    keys: Source | None,
    values: Source | None,
    timestamps: cython.const[cython.longlong][::1],
    headers: Source | None = None,
    room: cython.Py_ssize_t = 0,
    into: bytearray | None = None,
) -> tuple[bytearray, int]:
    """The records of columns after `room` bytes, and the largest timestamp; the base timestamp is the first one. They
    are written over `into` if it is given, whatever its size, since fresh memory costs more than encoding.

    None is a column of nulls; `headers` holds a `header_block` a row. Raises `ValueError` for columns that do not fit
    together, timestamps too far apart and more than 2 GiB.
    """
    if count < 1 or len(timestamps) < count:
        raise ValueError("a batch needs a row, and each row a timestamp")
    key: Column = Column(keys, count)
    value: Column = Column(values, count)
    block: Column = Column(headers, count)
    base: cython.longlong = timestamps[0]
    max_timestamp: cython.longlong = -1
    total: cython.longlong = 0
    size: cython.longlong
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = room
    for i in range(count):
        if too_far(timestamps[i], base):
            raise ValueError(TOO_FAR)
        if timestamps[i] > max_timestamp:
            max_timestamp = timestamps[i]
        size = 1 if block.missing else block.length(i)
        if size < 1:
            raise ValueError("a block of headers is null or empty")
        size = size_of(timestamps[i] - base, i, key.length(i), value.length(i), size)
        total += size + size_of_varint(size)
    if total > SIZE_MAX:
        raise ValueError(TOO_LARGE)
    out: bytearray = bytearray() if into is None else into
    if cython.compiled:
        PyByteArray_Resize(out, room + total)
    else:
        out[:] = bytes(room + total)
    p: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(out)) if cython.compiled else out
    for i in range(count):
        size = size_of(timestamps[i] - base, i, key.length(i), value.length(i), 1 if block.missing else block.length(i))
        at = put_prefix(p, at, size, timestamps[i] - base, i)
        at = put_varint(p, at, key.length(i))
        at = key.put(p, at, i)
        at = put_varint(p, at, value.length(i))
        at = value.put(p, at, i)
        if block.missing:
            p[at] = 0
            at += 1
        else:
            at = block.put(p, at, i)
    return out, max_timestamp
