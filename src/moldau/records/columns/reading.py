# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Reading the records of one batch: `scan` checks them where they lie, `decode` lays them out as Arrow's buffers.

    record = length varint | attributes 1 | timestamp delta varlong | offset delta varint
             | key length varint (-1 null), key | value length varint (-1 null), value
             | header count varint | headers: key length varint, key | value length varint (-1 null), value

`walk` alone looks at bytes nobody has vouched for: it reads nothing outside [at, end), and what it passed is sound. `fill`
follows it over the same bytes, so it needs no checks of its own. Varints are zig-zag, at most 5 bytes (varlongs 10).
Nothing here knows of headers of batches, of compression or of Python objects per record. Interpreted, the same lines work
on memoryviews and lists where the compiled code has pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

try:
    from cython.cimports.libc.string import memcpy

    import cython
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled

FLAWS = (
    "the record is sound",
    "its length is no varint",
    "its length goes beyond the batch",
    "its timestamp delta is no varint",
    "its timestamp does not fit into 64 bits",
    "its offset delta is not the next one",
    "its key goes beyond it",
    "its value goes beyond it",
    "its number of headers is impossible",
    "a header's key goes beyond it",
    "a header's value goes beyond it",
    "its fields end before or after it does",
    "bytes follow the last record",
)
"""What `scan` found, by number."""

Found = cython.struct(
    bad=cython.longlong,
    max_timestamp=cython.longlong,
    at_max=cython.longlong,
    min_timestamp=cython.longlong,
    rows=cython.longlong,
    null_keys=cython.longlong,
    key_bytes=cython.longlong,
    null_values=cython.longlong,
    value_bytes=cython.longlong,
    rows_with_headers=cython.longlong,
    headers=cython.longlong,
    header_key_bytes=cython.longlong,
    null_header_values=cython.longlong,
    header_value_bytes=cython.longlong,
)
"""What `walk` adds up: index of the bad record, timestamps of all records; from `rows` on only of those asked for."""

INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
RELEASE_GIL_FROM = cython.declare(cython.Py_ssize_t, 65536)
"""Bytes from which a walk lets other threads run."""


class Section(NamedTuple):
    """The uncompressed records of one batch in `records[start:stop]`, and which of its offsets are wanted."""

    records: Any
    start: int
    stop: int
    count: int
    last_offset_delta: int
    base_offset: int
    base_timestamp: int
    append_timestamp: int | None
    """The timestamp of every record under log append time."""
    low: int
    """Offset deltas wanted: low <= delta < high."""
    high: int


class Columns(NamedTuple):
    """Records as Arrow lays them out: int32 offsets, bytes, validity bits (None: no null)."""

    rows: int
    key_offsets: Any
    keys: Any
    key_validity: Any
    null_keys: int
    value_offsets: Any
    values: Any
    value_validity: Any
    null_values: int
    offsets: Any
    timestamps: Any
    timestamp_types: Any
    headers: HeaderColumns | None


class HeaderColumns(NamedTuple):
    """The headers of all rows: the lists' offsets and validity (a row without headers is null), then one row a header."""

    rows: int
    list_offsets: Any
    list_validity: Any
    null_lists: int
    key_offsets: Any
    keys: Any
    value_offsets: Any
    values: Any
    value_validity: Any
    null_values: int


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varint(
    p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zig-zag number of at most 32 bits and the position behind it, -1 if there is none before `end`."""
    byte: cython.ulonglong
    raw: cython.ulonglong
    shift: cython.int = 0
    if at < end and p[at] < 0x80:
        raw = p[at]
        return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1), at + 1
    raw = 0
    while at < end and shift < 35:
        byte = p[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> 32 != 0:
                break
            return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1), at
        shift += 7
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varlong(
    p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zig-zag number of at most 64 bits and the position behind it, -1 if there is none before `end`."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    while at < end and shift < 70:
        byte = p[at]
        at += 1
        if shift == 63 and byte > 1:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1), at
        shift += 7
    return 0, -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def walk(
    p: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    last_offset_delta: cython.longlong,
    base_timestamp: cython.longlong,
    low: cython.longlong,
    high: cython.longlong,
    found: cython.pointer[Found],
) -> cython.int:
    """Check `count` records in p[at:end] and add them up in `found`; returns the flaw of record found.bad, or 0.

    Offset deltas rise up to `last_offset_delta`: with a count of one more, they are 0, 1, 2 ... by necessity.
    """
    i: cython.longlong
    stop: cython.Py_ssize_t
    length: cython.longlong
    delta: cython.longlong
    previous: cython.longlong = -1
    timestamp: cython.longlong
    key_length: cython.longlong
    value_length: cython.longlong
    headers: cython.longlong
    flaw: cython.int
    for i in range(count):
        found.bad = i
        length, at = varint(p, at, end)
        if at < 0:
            return 1
        if length < 1 or length > end - at:
            return 2
        stop = at + length
        delta, at = varlong(p, at + 1, stop)
        if at < 0:
            return 3
        if (delta > 0 and base_timestamp > INT64_MAX - delta) or (delta < 0 and base_timestamp < -1 - INT64_MAX - delta):
            return 4
        timestamp = base_timestamp + delta
        delta, at = varint(p, at, stop)
        if at < 0 or delta <= previous or delta > last_offset_delta - (count - 1 - i):
            return 5
        previous = delta
        key_length, at = varint(p, at, stop)
        if at < 0 or key_length < -1 or key_length > stop - at:
            return 6
        if key_length > 0:
            at += key_length
        value_length, at = varint(p, at, stop)
        if at < 0 or value_length < -1 or value_length > stop - at:
            return 7
        if value_length > 0:
            at += value_length
        headers, at = varint(p, at, stop)
        if at < 0 or headers < 0 or headers > stop - at:
            return 8
        if headers > 0:
            flaw = walk_headers(p, at, stop, headers, low <= delta < high, found)
            if flaw != 0:
                return flaw
        elif at != stop:
            return 11
        at = stop
        if timestamp > found.max_timestamp:
            found.max_timestamp = timestamp
            found.at_max = i
        if timestamp < found.min_timestamp:
            found.min_timestamp = timestamp
        if low <= delta < high:
            found.rows += 1
            if key_length < 0:
                found.null_keys += 1
            else:
                found.key_bytes += key_length
            if value_length < 0:
                found.null_values += 1
            else:
                found.value_bytes += value_length
    found.bad = count
    if at != end:
        return 12
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def walk_headers(
    p: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
    wanted: cython.bint,
    found: cython.pointer[Found],
) -> cython.int:
    """The headers of one record, which must end at `stop`."""
    j: cython.longlong
    key_length: cython.longlong
    value_length: cython.longlong
    for j in range(count):
        key_length, at = varint(p, at, stop)
        if at < 0 or key_length < 0 or key_length > stop - at:
            return 9
        at += key_length
        value_length, at = varint(p, at, stop)
        if at < 0 or value_length < -1 or value_length > stop - at:
            return 10
        if value_length > 0:
            at += value_length
        if wanted:
            found.header_key_bytes += key_length
            if value_length < 0:
                found.null_header_values += 1
            else:
                found.header_value_bytes += value_length
    if wanted:
        found.headers += count
        found.rows_with_headers += 1
    return 0 if at == stop else 11


def scan(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
) -> tuple[int, int, int, int, int, int]:
    """Check that data[start:stop] is exactly `count` records with offset deltas 0, 1, 2 ...

    Returns (flaw, index of the bad record, largest timestamp or -1, index of the first record that has it, smallest
    timestamp, number of null keys); `FLAWS[flaw]` says what is wrong, 0 is sound.
    """
    flaw: cython.int
    found: Found = Found(0, -1, 0, INT64_MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    if start < 0 or stop > len(data) or start > stop:
        raise ValueError("a section outside its buffer")
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    if stop - start < RELEASE_GIL_FROM:
        flaw = walk(p, start, stop, count, count - 1, base_timestamp, 0, count, cython.address(found))
    else:
        with cython.nogil:
            flaw = walk(p, start, stop, count, count - 1, base_timestamp, 0, count, cython.address(found))
    return flaw, found.bad, found.max_timestamp, found.at_max, found.min_timestamp, found.null_keys


def rows(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
    last_offset_delta: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
) -> tuple[int, int, list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]]:
    """The records one by one: (flaw, index of the bad record, rows (offset, timestamp, key, value, headers))."""
    found: Found = Found(0, -1, 0, INT64_MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    if start < 0 or stop > len(data) or start > stop:
        raise ValueError("a section outside its buffer")
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    flaw: cython.int
    flaw = walk(p, start, stop, count, last_offset_delta, base_timestamp, 0, 0, cython.address(found))
    out: list = []
    if flaw != 0:
        return flaw, found.bad, out
    at: cython.Py_ssize_t = start
    i: cython.longlong
    j: cython.longlong
    timestamp: cython.longlong
    offset: cython.longlong
    length: cython.longlong
    headers: cython.longlong
    for i in range(count):
        length, at = varint(p, at, stop)
        timestamp, at = varlong(p, at + 1, stop)
        offset, at = varint(p, at, stop)
        length, at = varint(p, at, stop)
        key = None
        if length >= 0:
            key = bytes(p[at : at + length])
            at += length
        length, at = varint(p, at, stop)
        value = None
        if length >= 0:
            value = bytes(p[at : at + length])
            at += length
        headers, at = varint(p, at, stop)
        pairs: list = []
        for j in range(headers):
            length, at = varint(p, at, stop)
            name = bytes(p[at : at + length]).decode("utf-8", "replace")
            at += length
            length, at = varint(p, at, stop)
            if length < 0:
                pairs.append((name, None))
            else:
                pairs.append((name, bytes(p[at : at + length])))
                at += length
        out.append((base_offset + offset, base_timestamp + timestamp, key, value, pairs))
    return 0, count, out
