# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
# ruff: noqa: F821  (a C variable is declared without a value)
"""Examines every record of a batch in place, without creating objects: `scan` on append, `measure` before reading;
`first_timed` finds a record by its time.

    record = length varint | attributes 1 | timestamp delta varlong | offset delta varint
             | key length varint (-1 null), key | value length varint (-1 null), value
             | header count varint | headers: key length varint, key | value length varint (-1 null), value

`walk` and `first_timed` read bytes that have not been verified: they read nothing outside [at, end), and records that
`walk` passed are valid. Varints are zig-zag, at most 5 bytes (varlongs 10). This module does not handle compression.
Interpreted, the same lines work on memoryviews where compiled ones have pointers; types mean nothing to mypy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from moldau.errors import ErrorCode, KafkaError

try:
    import cython
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled

FLAWS = (
    "it is sound",
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
"""The flaws that `scan` can find, by number."""

if not cython.compiled:  # `plain_batches` shares it, so the compiled one is declared in scanning.pxd
    Totals = cython.struct(
        bad=cython.longlong,
        max_timestamp=cython.longlong,
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
"""The sums of `walk`: index of the bad record, timestamps of all records; from `rows` on only of those asked for."""

INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
RELEASE_GIL_FROM = cython.declare(cython.Py_ssize_t, 65536)
"""Bytes from which a walk lets other threads run."""


class Section(NamedTuple):
    """The uncompressed records of one batch in records[start:stop], and which of its offsets are wanted."""

    records: Any
    start: int
    stop: int
    count: int
    last_offset_delta: int
    base_offset: int
    base_timestamp: int
    append_timestamp: int | None
    """The timestamp of every record under log append time, else None."""
    low: int
    high: int
    """Offset deltas wanted: low <= delta < high."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varint(
    p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zig-zag number of at most 32 bits and the position after it, -1 if there is none before `end`."""
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
    """A zig-zag number of at most 64 bits and the position after it, -1 if there is none before `end`."""
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
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sized(
    p: cython.p_const_uchar, at: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """The length of a byte string, -1 for null, and the position after it, -1 if it is not all before `stop`."""
    length: cython.longlong
    length, at = varint(p, at, stop)
    if at < 0 or length < -1 or length > stop - at:
        return 0, -1
    return length, (at + length if length > 0 else at)


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
    totals: cython.pointer[Totals],
) -> cython.int:
    """Check `count` records in p[at:end] and add them up in `totals`; returns the flaw of record totals.bad, or 0.

    Offset deltas rise up to `last_offset_delta`: with a count of one more they can only be 0, 1, 2 ...
    """
    i: cython.longlong
    stop: cython.Py_ssize_t
    length: cython.longlong
    timestamp: cython.longlong
    delta: cython.longlong
    previous: cython.longlong = -1
    values: cython.longlong
    headers: cython.longlong
    flaw: cython.int
    for i in range(count):
        totals.bad = i
        length, at = varint(p, at, end)
        if at < 0 or length < 1 or length > end - at:
            return 1 if at < 0 else 2
        stop = at + length
        timestamp, at = varlong(p, at + 1, stop)
        if at < 0:
            return 3
        if (timestamp > 0) == (base_timestamp > 0) and past_int64(base_timestamp, timestamp):
            return 4
        delta, at = varint(p, at, stop)
        if at < 0 or delta <= previous or delta > last_offset_delta - (count - 1 - i):
            return 5
        previous = delta
        length, at = sized(p, at, stop)
        if at < 0:
            return 6
        values, at = sized(p, at, stop)
        if at < 0:
            return 7
        headers, at = varint(p, at, stop)
        if at < 0 or headers < 0 or headers > stop - at:
            return 8
        if headers > 0:
            flaw = walk_headers(p, at, stop, headers, low <= delta < high, totals)
        else:
            flaw = 0 if at == stop else 11
        if flaw != 0:
            return flaw
        at = stop
        note_timestamp(base_timestamp + timestamp, totals)
        if low <= delta < high:
            note_row(length, values, totals)
    totals.bad = count
    return 0 if at == end else 12


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def past_int64(a: cython.longlong, b: cython.longlong) -> cython.bint:
    """Whether a + b, of one sign, does not fit into 64 bits."""
    return b > INT64_MAX - a if a > 0 else b < -1 - INT64_MAX - a


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def note_timestamp(timestamp: cython.longlong, totals: cython.pointer[Totals]) -> cython.void:
    if timestamp > totals.max_timestamp:
        totals.max_timestamp = timestamp
    if timestamp < totals.min_timestamp:
        totals.min_timestamp = timestamp


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def note_row(key: cython.longlong, value: cython.longlong, totals: cython.pointer[Totals]) -> cython.void:
    totals.rows += 1
    if key < 0:
        totals.null_keys += 1
    else:
        totals.key_bytes += key
    if value < 0:
        totals.null_values += 1
    else:
        totals.value_bytes += value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def walk_headers(
    p: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
    wanted: cython.bint,
    totals: cython.pointer[Totals],
) -> cython.int:
    """The headers of one record, which must end at `stop`."""
    key: cython.longlong
    value: cython.longlong
    for _ in range(count):
        key, at = sized(p, at, stop)
        if at < 0 or key < 0:
            return 9
        value, at = sized(p, at, stop)
        if at < 0:
            return 10
        if wanted:
            totals.header_key_bytes += key
            if value < 0:
                totals.null_header_values += 1
            else:
                totals.header_value_bytes += value
    if wanted:
        totals.headers += count
        totals.rows_with_headers += 1
    return 0 if at == stop else 11


def scan(
    data: object,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
    base_timestamp: cython.longlong,
) -> tuple[int, int, int, int, int]:
    """Check that data[start:stop] is exactly `count` records with offset deltas 0, 1, 2 ...

    Returns (flaw, index of the bad record, largest timestamp or -1, smallest timestamp, number of null keys);
    `FLAWS[flaw]` says what is wrong, 0 is sound. The broker calls this for every batch: a bare buffer costs half of
    what a typed memoryview does.
    """
    flaw: cython.int
    totals: Totals = Totals(0, -1, INT64_MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    if not 0 <= start <= stop <= len(data):
        raise ValueError("a section outside its buffer")
    buffer: Py_buffer
    p: cython.p_const_uchar
    if cython.compiled:
        PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
        p = cython.cast(cython.p_const_uchar, buffer.buf)
    else:
        p = data
    if stop - start < RELEASE_GIL_FROM:
        flaw = walk(p, start, stop, count, count - 1, base_timestamp, 0, count, cython.address(totals))
    else:
        with cython.nogil:
            flaw = walk(p, start, stop, count, count - 1, base_timestamp, 0, count, cython.address(totals))
    if cython.compiled:
        PyBuffer_Release(cython.address(buffer))
    return flaw, totals.bad, totals.max_timestamp, totals.min_timestamp, totals.null_keys


def bad_record(index: int, base_offset: int, flaw: int) -> KafkaError:
    where = f"record {index} of the batch at offset {base_offset}"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where} is bad: {FLAWS[flaw]}")


def measure(sections: Sequence[Section]) -> tuple[int, ...]:
    """Check the records of whole batches and add up those that are wanted.

    Returns the numbers of rows, null keys, bytes of keys, null values, bytes of values, rows with headers, headers,
    bytes of their keys, null ones among their values, bytes of these. Raises `KafkaError` (CORRUPT_MESSAGE) for bytes
    that are not records.
    """
    totals: Totals = Totals(0, -1, INT64_MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    data: cython.const[cython.uchar][::1]
    p: cython.p_const_uchar
    flaw: cython.int
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    count: cython.longlong
    last: cython.longlong
    base_timestamp: cython.longlong
    low: cython.longlong
    high: cython.longlong
    for section in sections:
        data, start, stop, count, last, base_offset, base_timestamp, _, low, high = section
        if not 0 <= start <= stop <= len(data):
            raise ValueError("a section outside its buffer")
        p = cython.address(data[0]) if cython.compiled else data
        with cython.nogil:
            flaw = walk(p, start, stop, count, last, base_timestamp, low, high, cython.address(totals))
        if flaw != 0:
            raise bad_record(totals.bad, base_offset, flaw)
    return (
        totals.rows,
        totals.null_keys,
        totals.key_bytes,
        totals.null_values,
        totals.value_bytes,
        totals.rows_with_headers,
        totals.headers,
        totals.header_key_bytes,
        totals.null_header_values,
        totals.header_value_bytes,
    )


def first_timed(section: Section, earliest: cython.longlong, latest: cython.longlong) -> tuple[int, int] | None:
    """(timestamp, offset) of the first wanted record of a batch with a timestamp in [earliest, latest]; None if none
    has one. The records before it are checked only as far as the search needs; those after it are not checked.

    Raises `KafkaError` (CORRUPT_MESSAGE) for bytes that are not records.
    """
    data: cython.const[cython.uchar][::1] = section.records
    at: cython.Py_ssize_t = section.start
    end: cython.Py_ssize_t = section.stop
    stop: cython.Py_ssize_t
    count: cython.longlong = section.count
    base_timestamp: cython.longlong = section.base_timestamp
    low: cython.longlong = section.low
    high: cython.longlong = section.high
    length: cython.longlong
    timestamp: cython.longlong = 0
    delta: cython.longlong = -1
    i: cython.longlong = 0
    flaw: cython.int = 0
    fixed = section.append_timestamp
    if not 0 <= at <= end <= len(data):
        raise ValueError("a section outside its buffer")
    if fixed is not None:
        if not earliest <= fixed <= latest:
            return None
        earliest, latest = -1 - INT64_MAX, INT64_MAX
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    with cython.nogil:
        while i < count:
            length, at = varint(p, at, end)
            if at < 0 or length < 1 or length > end - at:
                flaw = 1 if at < 0 else 2
                break
            stop = at + length
            timestamp, at = varlong(p, at + 1, stop)
            if at < 0:
                flaw = 3
                break
            if (timestamp > 0) == (base_timestamp > 0) and past_int64(base_timestamp, timestamp):
                flaw = 4
                break
            delta, at = varint(p, at, stop)
            if at < 0:
                flaw = 5
                break
            timestamp += base_timestamp
            if low <= delta < high and earliest <= timestamp <= latest:
                break
            at, delta = stop, -1
            i += 1
    if flaw != 0:
        raise bad_record(i, section.base_offset, flaw)
    return None if delta < 0 else (timestamp if fixed is None else fixed, section.base_offset + delta)
