# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""Reading records that `scanning.measure` has passed: `rows` makes an object of each, `decode` fills Arrow's buffers.

The format is drawn in `scanning`. Nothing is checked a second time, so the caller must never pass bytes that were not
measured.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

from moldau.records.columns.layouts import Binary, Columns
from moldau.records.columns.scanning import Section, measure

try:
    import cython
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.cpython.ref import Py_INCREF
    from cython.cimports.cpython.tuple import PyTuple_SET_ITEM
    from cython.cimports.libc.string import memcpy
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

if cython.compiled:
    from cython.cimports.moldau.records.columns.python_api import PyType_GenericAlloc

COMPILED: bool = cython.compiled

INT32_MAX = 0x7FFFFFFF
CREATE_TIME, LOG_APPEND_TIME = 0, 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def number(p: cython.p_const_uchar, at: cython.Py_ssize_t) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """The zig-zag number at `at`, and the position after it."""
    byte: cython.ulonglong = p[at]
    raw: cython.ulonglong = byte & 0x7F
    shift: cython.int = 7
    at += 1
    while byte > 0x7F:
        byte = p[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    return cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1), at


@cython.cfunc
@cython.inline
def bytes_of(p: cython.p_const_uchar, at: cython.Py_ssize_t, length: cython.Py_ssize_t) -> bytes:
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, p) + at, length)
    else:
        return bytes(p[at : at + length])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def skipped(p: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after the byte string whose length is at p[at]."""
    length: cython.longlong
    length, at = number(p, at)
    return at + length if length > 0 else at


def rows(section: Section, kind: type[tuple[Any, ...]] = tuple, place: object = None) -> list[Any]:
    """The wanted records as tuples of that class: (offset, timestamp, its type, key, value, headers); `place` follows
    unless it is None. The class has no fields of its own, and its `__new__` and `__init__` are not called.

    Raises `KafkaError` (CORRUPT_MESSAGE) for bytes that are not records. No garbage is collected meanwhile: most of a
    record's cost would be collections that its tuple and list of headers begin, and none of them is garbage yet.
    """
    measure((section,))
    collecting = gc.isenabled()
    gc.disable()
    try:
        return cut(section, kind, place)
    finally:
        if collecting:
            gc.enable()


@cython.cfunc
def cut(section: Section, kind: type, place: object) -> list:
    """The records of `rows`."""
    data: cython.const[cython.uchar][::1] = section.records
    at: cython.Py_ssize_t = section.start
    count: cython.longlong = section.count
    base_timestamp: cython.longlong = section.base_timestamp
    base_offset: cython.longlong = section.base_offset
    low: cython.longlong = section.low
    high: cython.longlong = section.high
    length: cython.longlong
    timestamp: cython.longlong
    previous: cython.longlong = 0
    offset: cython.longlong
    stop: cython.Py_ssize_t
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    is_fixed: cython.bint = section.append_timestamp is not None
    stamp = section.append_timestamp if is_fixed else base_timestamp
    stamp_type = LOG_APPEND_TIME if is_fixed else CREATE_TIME
    plain: cython.bint = kind is tuple
    out: list = []
    for _ in range(count):
        length, at = number(p, at)
        stop = at + length
        timestamp, at = number(p, at + 1)
        offset, at = number(p, at)
        if low <= offset < high:
            length, at = number(p, at)
            key = None
            if length >= 0:
                key = bytes_of(p, at, length)
                at += length
            length, at = number(p, at)
            value = None
            if length >= 0:
                value = bytes_of(p, at, length)
                at += length
            headers = [] if stop - at == 1 else headers_of(p, at)
            if timestamp != previous and not is_fixed:
                stamp = base_timestamp + timestamp
                previous = timestamp
            if plain and place is None:
                out.append((base_offset + offset, stamp, stamp_type, key, value, headers))
            else:
                out.append(record(kind, base_offset + offset, stamp, stamp_type, key, value, headers, place))
        at = stop
    return out


@cython.cfunc
@cython.inline
def record(
    kind: type, offset: object, stamp: object, stamp_type: object, key: object, value: object, headers: list,
    place: object,
) -> object:  # fmt: skip
    """A tuple of that class."""
    if not cython.compiled:
        fields = (offset, stamp, stamp_type, key, value, headers)
        return tuple.__new__(kind, fields if place is None else (*fields, place))
    made = PyType_GenericAlloc(kind, 6 if place is None else 7)
    put(made, 0, offset)
    put(made, 1, stamp)
    put(made, 2, stamp_type)
    put(made, 3, key)
    put(made, 4, value)
    put(made, 5, headers)
    if place is not None:
        put(made, 6, place)
    return made


@cython.cfunc
@cython.inline
def put(made: object, index: cython.Py_ssize_t, field: object) -> cython.void:
    Py_INCREF(field)
    PyTuple_SET_ITEM(made, index, field)


def refused(
    section: Section, keyed: cython.bint, earliest: cython.longlong, latest: cython.longlong, limit: cython.Py_ssize_t
) -> tuple[int, int, list[tuple[int, int | None]]]:
    """Find records that break a topic's rules: no key where `keyed`, or a timestamp that is neither -1 nor in
    [earliest, latest].

    Returns the number of keyless and of mistimed records, and the first `limit` of both: (index, timestamp; None for a
    missing key).
    """
    measure((section,))
    data: cython.const[cython.uchar][::1] = section.records
    at: cython.Py_ssize_t = section.start
    base_timestamp: cython.longlong = section.base_timestamp
    fixed: cython.longlong = section.append_timestamp or 0
    is_fixed: cython.bint = section.append_timestamp is not None
    count: cython.longlong = section.count
    keyless: cython.longlong = 0
    mistimed: cython.longlong = 0
    length: cython.longlong
    timestamp: cython.longlong
    stop: cython.Py_ssize_t
    i: cython.longlong
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    out: list = []
    for i in range(count):
        length, at = number(p, at)
        stop = at + length
        timestamp, at = number(p, at + 1)
        timestamp = fixed if is_fixed else base_timestamp + timestamp
        length, at = number(p, at)
        length, at = number(p, at)
        if keyed and length < 0:
            keyless += 1
            if len(out) < limit:
                out.append((i, None))
        elif timestamp != -1 and not earliest <= timestamp <= latest:
            mistimed += 1
            if len(out) < limit:
                out.append((i, timestamp))
        at = stop
    return keyless, mistimed, out


@cython.cfunc
def headers_of(p: cython.p_const_uchar, at: cython.Py_ssize_t) -> list:
    """The headers of one record; invalid UTF-8 in a header's key is replaced, as Kafka's clients do."""
    count: cython.longlong
    length: cython.longlong
    count, at = number(p, at)
    out: list = []
    for _ in range(count):
        length, at = number(p, at)
        key = bytes_of(p, at, length).decode("utf-8", "replace")
        at += length
        length, at = number(p, at)
        value = None
        if length >= 0:
            value = bytes_of(p, at, length)
            at += length
        out.append((key, value))
    return out


def decode(
    sections: Sequence[Section],
    allocate: Callable[[int], Any] = bytearray,
    ticks_per_ms: int = 1,
    keys: bool = True,
    values: bool = True,
    headers: bool = True,
) -> Columns:
    """The wanted records of whole batches as columns; `allocate` returns a writable buffer of the given number of
    bytes. Keys, values and headers that are not wanted are skipped.

    Timestamps are in ticks since 1970; those that do not fit become the largest or smallest that does. Raises
    `KafkaError` (CORRUPT_MESSAGE) for bytes that are not records, `OverflowError` for a column of more than 2 GiB.
    """
    count, null_keys, key_bytes, null_values, value_bytes, *of_headers = measure(sections)
    totals = (
        count,
        *((null_keys, key_bytes) if keys else (0, 0)),
        *((null_values, value_bytes) if values else (0, 0)),
        *(of_headers if headers else (0,) * len(of_headers)),
    )
    if max(totals) > INT32_MAX:
        raise OverflowError("more than 2 GiB of records at once")
    filler = Filler(totals, allocate, ticks_per_ms, keys, values)
    for section in sections:
        filler.add(section)
    return filler.columns()


@cython.final
@cython.cclass
class BinaryBuilder:
    """A column of byte strings being filled: `put` adds one."""

    offsets: cython.int[::1]
    data: cython.uchar[::1]
    validity: cython.uchar[::1]
    nulls: cython.Py_ssize_t
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    binary: object

    def __init__(self, rows: int, size: int, nulls: int, allocate: Callable[[int], Any]):
        self.binary = Binary(allocate(4 * rows + 4), allocate(size or 1), bytearray(rows // 8 + 1), nulls)
        self.offsets = memoryview(self.binary.offsets).cast("B").cast("i")
        self.data = memoryview(self.binary.data).cast("B")
        self.validity = self.binary.validity
        self.nulls = nulls
        self.row = 0
        self.end = 0
        self.offsets[0] = 0

    def finished(self) -> Binary:
        return self.binary if self.nulls else self.binary._replace(validity=None)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def put(self, p: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Add the byte string whose length is at p[at]; returns the position after it."""
        length: cython.longlong
        length, at = number(p, at)
        if length > 0:
            if cython.compiled:
                memcpy(cython.address(self.data[self.end]), p + at, length)
            else:
                self.data[self.end : self.end + length] = p[at : at + length]
            self.end += length
            at += length
        if self.nulls and length >= 0:
            self.validity[self.row >> 3] |= 1 << (self.row & 7)
        self.row += 1
        self.offsets[self.row] = self.end
        return at


@cython.final
@cython.cclass
class Filler:
    """The columns of records being filled, batch by batch, in buffers of exactly the size they need."""

    keys: BinaryBuilder
    values: BinaryBuilder
    offsets: cython.longlong[::1]
    timestamps: cython.longlong[::1]
    timestamp_types: cython.int[::1]
    row: cython.Py_ssize_t
    ticks_per_ms: cython.longlong
    timestamp_max: cython.longlong
    has_keys: cython.bint
    has_values: cython.bint
    has_headers: cython.bint
    list_offsets: cython.int[::1]
    list_validity: cython.uchar[::1]
    headers: cython.longlong
    header_keys: BinaryBuilder
    header_values: BinaryBuilder
    buffers: object
    lists: object

    def __init__(
        self, totals: tuple[int, ...], allocate: Callable[[int], Any], ticks_per_ms: int, keys: bool, values: bool
    ):
        count, null_keys, key_bytes, null_values, value_bytes, rows_with_headers, headers = totals[:7]
        header_key_bytes, null_header_values, header_value_bytes = totals[7:]
        self.has_keys = keys
        self.has_values = values
        if keys:
            self.keys = BinaryBuilder(count, key_bytes, null_keys, allocate)
        if values:
            self.values = BinaryBuilder(count, value_bytes, null_values, allocate)
        self.buffers = (allocate(8 * count or 8), allocate(8 * count or 8), allocate(4 * count or 4))
        self.offsets = memoryview(self.buffers[0]).cast("B").cast("q")
        self.timestamps = memoryview(self.buffers[1]).cast("B").cast("q")
        self.timestamp_types = memoryview(self.buffers[2]).cast("B").cast("i")
        self.row = 0
        self.ticks_per_ms = ticks_per_ms
        self.timestamp_max = 0x7FFFFFFFFFFFFFFF // ticks_per_ms
        self.has_headers = headers > 0
        self.headers = 0
        if headers:
            nulls = count - rows_with_headers
            self.lists = Binary(allocate(4 * count + 4), b"", bytearray(count // 8 + 1) if nulls else None, nulls)
            self.list_offsets = memoryview(self.lists.offsets).cast("B").cast("i")
            self.list_offsets[0] = 0
            self.list_validity = self.lists.validity or bytearray(count // 8 + 1)
            self.header_keys = BinaryBuilder(headers, header_key_bytes, 0, allocate)
            self.header_values = BinaryBuilder(headers, header_value_bytes, null_header_values, allocate)

    def add(self, section: Section) -> None:
        """The wanted records of one measured batch."""
        data: cython.const[cython.uchar][::1]
        at: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        count: cython.longlong
        _last: cython.longlong
        base_offset: cython.longlong
        base_timestamp: cython.longlong
        low: cython.longlong
        high: cython.longlong
        delta: cython.longlong
        timestamp: cython.longlong
        length: cython.longlong
        data, at, stop, count, _last, base_offset, base_timestamp, append_timestamp, low, high = section
        p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
        kind: cython.int = CREATE_TIME if append_timestamp is None else LOG_APPEND_TIME
        fixed: cython.longlong = append_timestamp or 0
        for _ in range(count):
            length, at = number(p, at)
            stop = at + length
            timestamp, at = number(p, at + 1)
            delta, at = number(p, at)
            if low <= delta < high:
                if self.has_keys:
                    at = self.keys.put(p, at)
                elif self.has_values or self.has_headers:
                    at = skipped(p, at)
                if self.has_values:
                    at = self.values.put(p, at)
                elif self.has_headers:
                    at = skipped(p, at)
                self.offsets[self.row] = base_offset + delta
                self.timestamps[self.row] = self.ticks(fixed if kind else base_timestamp + timestamp)
                self.timestamp_types[self.row] = kind
                if self.has_headers:
                    self.add_headers(p, at)
                self.row += 1
            at = stop

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def ticks(self, timestamp: cython.longlong) -> cython.longlong:
        if timestamp > self.timestamp_max:
            timestamp = self.timestamp_max
        elif timestamp < -self.timestamp_max:
            timestamp = -self.timestamp_max
        return timestamp * self.ticks_per_ms

    @cython.cfunc
    @cython.exceptval(check=False)
    def add_headers(self, p: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.void:
        """The headers of the row being added, whose count is at p[at]."""
        count: cython.longlong
        count, at = number(p, at)
        for _ in range(count):
            at = self.header_keys.put(p, at)
            at = self.header_values.put(p, at)
        if count:
            self.list_validity[self.row >> 3] |= 1 << (self.row & 7)
            self.headers += count
        self.list_offsets[self.row + 1] = self.headers

    def columns(self) -> Columns:
        offsets, timestamps, kinds = self.buffers
        keys = self.keys.finished() if self.has_keys else None
        values = self.values.finished() if self.has_values else None
        if not self.has_headers:
            return Columns(self.row, keys, values, offsets, timestamps, kinds, None, 0, None, None)
        header_keys, header_values = self.header_keys.finished(), self.header_values.finished()
        return Columns(
            self.row, keys, values, offsets, timestamps, kinds, self.lists, self.headers, header_keys, header_values
        )
