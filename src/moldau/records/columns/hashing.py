# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""The hash by which Kafka's clients choose a key's partition, for one key and for a column of keys.

The hash is MurmurHash2 with the seed of Kafka's Java client, so that all clients put a key into the same partition.
"""

from __future__ import annotations

from moldau.records.columns.encoding import Source

try:
    import cython
except ImportError:
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled

SEED = cython.declare(cython.ulonglong, 0x9747B28C)
MIX = cython.declare(cython.ulonglong, 0x5BD1E995)
MASK = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def hashed(p: cython.p_const_uchar, start: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.ulonglong:
    """MurmurHash2 of p[start:start + length], of 32 bits."""
    at: cython.Py_ssize_t = start
    whole: cython.Py_ssize_t = start + (length & ~3)
    end: cython.Py_ssize_t = start + length
    k: cython.ulonglong
    h: cython.ulonglong = SEED ^ length
    while at < whole:
        k = p[at] | p[at + 1] << 8 | p[at + 2] << 16 | cython.cast(cython.ulonglong, p[at + 3]) << 24
        k = k * MIX & MASK
        h = (h * MIX & MASK) ^ ((k ^ (k >> 24)) * MIX & MASK)
        at += 4
    if whole < end:
        if end - whole == 3:
            h ^= p[whole + 2] << 16
        if end - whole >= 2:
            h ^= p[whole + 1] << 8
        h = (h ^ p[whole]) * MIX & MASK
    h = (h ^ (h >> 13)) * MIX & MASK
    return h ^ (h >> 15)


NO_KEYS = Source(memoryview(bytes(4)).cast("i"), memoryview(b"\0"), None)


def murmur2(key: bytes) -> int:
    """MurmurHash2 of the key, as an unsigned 32-bit number."""
    return hashed(key, 0, len(key))


def positive_hash(key: bytes) -> int:
    """The hash without its sign bit: modulo the number of partitions, it is the key's partition."""
    return hashed(key, 0, len(key)) & 0x7FFFFFFF


def by_partition(
    keys: Source | None,
    count: cython.Py_ssize_t,
    partitions: cython.Py_ssize_t,
    without_key: cython.Py_ssize_t,
    given: object = None,
) -> tuple[bytearray, list[int]]:
    """The rows of a column of keys in the order of their partitions, as int32 numbers; rows of one partition keep their
    order. Also returns the number of rows of each partition.

    `given` are int32 partitions of the rows; where it is None or negative, a key is hashed, and null keys go to
    `without_key`. Raises `ValueError` for a column whose offsets do not fit its bytes or a partition that is too large.
    """
    if keys is None:
        keys = NO_KEYS
        missing: cython.bint = True
    else:
        missing = False
    offsets: cython.const[cython.int][::1] = keys.offsets
    data: cython.const[cython.uchar][::1] = keys.data
    nullable: cython.bint = keys.validity is not None
    validity: cython.const[cython.uchar][::1] = keys.validity if nullable else b"\0"
    wishes: cython.const[cython.int][::1] = NO_KEYS.offsets if given is None else given
    wishing: cython.bint = given is not None
    first: cython.Py_ssize_t = keys.first
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    length: cython.Py_ssize_t
    if count < 0 or first < 0 or not 0 <= without_key < partitions or (wishing and len(wishes) < count):
        raise ValueError("a column has fewer rows than it should")
    if not missing and len(offsets) < first + count + 1:
        raise ValueError("a column has fewer rows than it should")
    if nullable and 8 * len(validity) < first + count:
        raise ValueError("a column has fewer validity bits than rows")
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    raw_targets, raw_order, raw_next = bytearray(4 * count), bytearray(4 * count), bytearray(8 * partitions)
    targets: cython.int[::1] = memoryview(raw_targets).cast("i")
    order: cython.int[::1] = memoryview(raw_order).cast("i")
    nexts: cython.longlong[::1] = memoryview(raw_next).cast("q")
    for i in range(count):
        row = first + i
        if wishing and wishes[i] >= 0:
            if wishes[i] >= partitions:
                raise ValueError("a column names a partition that is too large")
            targets[i] = wishes[i]
        elif missing or (nullable and not validity[row >> 3] >> (row & 7) & 1):
            targets[i] = without_key
        else:
            start = offsets[row]
            length = offsets[row + 1] - start
            if start < 0 or length < 0 or start + length > len(data):
                raise ValueError("a column's offsets go beyond its bytes")
            targets[i] = (hashed(p, start, length) & 0x7FFFFFFF) % cython.cast(cython.ulonglong, partitions)
        nexts[targets[i]] += 1
    counts = list(nexts)
    sort(targets, order, nexts)
    return raw_order, counts


@cython.cfunc
def sort(targets: cython.int[::1], order: cython.int[::1], nexts: cython.longlong[::1]) -> None:
    """Sort the numbers of rows by their targets into `order`, given the number of rows of each target in `nexts`."""
    start: cython.longlong = 0
    length: cython.longlong
    i: cython.Py_ssize_t
    for i in range(len(nexts)):
        length = nexts[i]
        nexts[i] = start
        start += length
    for i in range(len(targets)):
        order[nexts[targets[i]]] = i
        nexts[targets[i]] += 1
