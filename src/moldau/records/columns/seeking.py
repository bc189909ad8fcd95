# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
# ruff: noqa: F821  (a C variable is declared without a value)
"""Skips batches by their headers alone: `seek` finds the first one that can hold a time. Skips records by their
lengths alone: `largest` finds how large they are.

The header is drawn in `batch`. Nothing is read outside the bytes given, whatever lengths they claim.
"""

from __future__ import annotations

try:
    import cython
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled

HEADER_SIZE = cython.declare(cython.Py_ssize_t, 61)
LOG_OVERHEAD = cython.declare(cython.Py_ssize_t, 12)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def signed(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.int) -> cython.longlong:
    """The big-endian number of `size` bytes at p[at]."""
    i: cython.int
    value: cython.longlong = p[at]
    if value > 127:
        value -= 256
    for i in range(1, size):
        value = value * 256 + p[at + i]
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def passed(
    p: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    earliest: cython.longlong,
    latest: cython.longlong,
    start_offset: cython.longlong,
) -> tuple[cython.bint, cython.Py_ssize_t]:
    """(True, position of the batch found) or (False, position after the last batch with a whole header; -1 if the bytes
    are not a batch)."""
    length: cython.longlong
    max_timestamp: cython.longlong
    while end - at >= HEADER_SIZE:
        length = signed(p, at + 8, 4)
        if length < HEADER_SIZE - LOG_OVERHEAD or p[at + 16] != 2:
            return False, -1
        max_timestamp = signed(p, at + 35, 8)
        if (
            earliest <= max_timestamp <= latest
            and signed(p, at + 57, 4) > 0
            and signed(p, at, 8) + signed(p, at + 23, 4) >= start_offset
        ):
            return True, at
        at += length + LOG_OVERHEAD
    return False, at


def seek(
    data: object, earliest: cython.longlong, latest: cython.longlong, start_offset: cython.longlong
) -> tuple[bool, int]:
    """The first of the batches in `data` with records, a largest timestamp in [earliest, latest] and a last offset at
    or after `start_offset`.

    Returns (True, its position), or (False, the position of the next batch, which may lie after the data; -1 if the
    bytes there are not a batch).
    """
    buffer: Py_buffer
    p: cython.p_const_uchar
    end: cython.Py_ssize_t = len(data)
    is_found: cython.bint
    at: cython.Py_ssize_t
    if cython.compiled:
        PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
        p = cython.cast(cython.p_const_uchar, buffer.buf)
    else:
        p = data
    with cython.nogil:
        is_found, at = passed(p, 0, end, earliest, latest, start_offset)
    if cython.compiled:
        PyBuffer_Release(cython.address(buffer))
    return bool(is_found), at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def longest(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """The largest length among the records in p[at:end]."""
    raw: cython.longlong
    shift: cython.int
    length_max: cython.longlong = 0
    while at < end:
        raw = 0
        shift = 0
        while at < end and p[at] > 127 and shift < 28:
            raw |= cython.cast(cython.longlong, p[at] & 127) << shift
            shift += 7
            at += 1
        if at >= end:
            break
        raw |= cython.cast(cython.longlong, p[at]) << shift
        at += 1 + (raw >> 1)  # zigzag: the length of a sound record is not negative
        if raw >> 1 > length_max:
            length_max = raw >> 1
    return length_max


def largest(data: object, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> int:
    """The size in bytes of the largest record in data[start:stop], without its length field; 0 if there is none. The
    records are sound, as `scan` has found."""
    buffer: Py_buffer
    p: cython.p_const_uchar
    size: cython.longlong
    if not 0 <= start <= stop <= len(data):
        raise ValueError("a section outside its buffer")
    if cython.compiled:
        PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
        p = cython.cast(cython.p_const_uchar, buffer.buf)
    else:
        p = data
    with cython.nogil:
        size = longest(p, start, stop)
    if cython.compiled:
        PyBuffer_Release(cython.address(buffer))
    return size
