# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
# ruff: noqa: F821  (a C variable is declared without a value)
"""Reads the header and scans the records of the batches that nearly all producers send, in one step: `plain`.

The header is drawn in `batch`. Nothing is read outside the buffer, whatever lengths the batch claims.
"""

from __future__ import annotations

try:
    import cython
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

if cython.compiled:
    from cython.cimports.moldau.records.columns.scanning import Totals, walk
else:
    from moldau.records.columns.scanning import Totals, walk

COMPILED: bool = cython.compiled

INT64_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def big_endian(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.int) -> cython.longlong:
    """The signed number of `size` bytes at p[at]."""
    i: cython.int
    raw: cython.ulonglong = 0
    for i in range(size):
        raw = raw << 8 | p[at + i]
    if cython.compiled:
        return cython.cast(cython.longlong, raw << (64 - 8 * size)) >> (64 - 8 * size)
    else:
        return raw - (raw >> (8 * size - 1) << 8 * size)


def plain(data: object) -> tuple[tuple[int, ...], int, int, int] | None:
    """Read the header and scan the records of a plain batch in one step; None for every other batch, invalid or just
    unusual.

    Plain is a batch of format 2 that fills the buffer, with base offset 0, a count that fits its offsets, no codec,
    create time, not control, a sequence if it has a producer id, and sound records. Returns its header's thirteen
    fields (drawn in `batch`) and largest timestamp, smallest timestamp, number of null keys. The checksum is the
    caller's.
    """
    totals: Totals = Totals(0, -1, INT64_MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    size: cython.Py_ssize_t = len(data)
    if size < 61:
        return None
    buffer: Py_buffer
    p: cython.p_const_uchar
    if cython.compiled:
        PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
        p = cython.cast(cython.p_const_uchar, buffer.buf)
    else:
        p = data
    length: cython.longlong = big_endian(p, 8, 4)
    attributes: cython.longlong = big_endian(p, 21, 2)
    last: cython.longlong = big_endian(p, 23, 4)
    base_timestamp: cython.longlong = big_endian(p, 27, 8)
    max_timestamp: cython.longlong = big_endian(p, 35, 8)
    producer_id: cython.longlong = big_endian(p, 43, 8)
    sequence: cython.longlong = big_endian(p, 53, 4)
    count: cython.longlong = big_endian(p, 57, 4)
    crc: cython.longlong = big_endian(p, 17, 4) & 0xFFFFFFFF
    epoch: cython.longlong = big_endian(p, 12, 4)
    producer_epoch: cython.longlong = big_endian(p, 51, 2)
    flaw: cython.int = -1
    if (
        length + 12 == size
        and p[16] == 2
        and big_endian(p, 0, 8) == 0
        and attributes & 0x2F == 0
        and count == last + 1
        and count > 0
        and (sequence >= 0 or producer_id < 0)
    ):
        flaw = walk(p, 61, size, count, last, base_timestamp, 0, count, cython.address(totals))
    if cython.compiled:
        PyBuffer_Release(cython.address(buffer))
    if flaw != 0:
        return None
    header = (
        0, length, epoch, 2, crc, attributes, last, base_timestamp, max_timestamp,
        producer_id, producer_epoch, sequence, count,
    )  # fmt: skip
    return header, totals.max_timestamp, totals.min_timestamp, totals.null_keys
