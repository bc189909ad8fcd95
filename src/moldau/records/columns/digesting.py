# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""The digest of records by window of event time, for the audit: counts, a sum of hashes, and delays.

The hash of a record is XXH64 of its value, whose seed is XXH64 of its key, whose seed is 42; a null key or value leaves
the seed as the hash. That is Spark's `xxhash64(key, value)`. Sums of hashes are modulo 2^64.

A window's digest is a row of unsigned 64-bit numbers: the count, the sum, the number of late records, the longest delay
in ms, a bucket of delays, and the number of delays in that bucket and in each one after it, as far as the row goes. A
record's delay is its arrival minus its event time, 0 if it is negative. A record is late if it arrives more than one
window after the end of its own.

Buckets are log-linear, as in HdrHistogram: delays below 64 ms have one each, and every doubling after that is divided
into 32, so that the longest delay of a bucket is less than 1/32 longer than the shortest. A row holds the range of
buckets that it needs.
"""

from __future__ import annotations

from moldau.records.columns.encoding import Source

try:
    import cython
except ImportError:
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled

STEPS = cython.declare(cython.longlong, 32)
LONGEST_MS = cython.declare(cython.longlong, (1 << 42) - 1)
"""Longer delays are in the bucket of this one."""
FIRST_BUCKET = 4
FIRST_COUNT = 5
NO_ARRIVAL = -1
FARTHEST_MS = cython.declare(cython.longlong, 1 << 60)
"""Event times beyond this are taken as this, so that no sum overflows."""

MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
P1 = cython.declare(cython.ulonglong, 0x9E3779B185EBCA87)
P2 = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
P3 = cython.declare(cython.ulonglong, 0x165667B19E3779F9)
P4 = cython.declare(cython.ulonglong, 0x85EBCA77C2B2AE63)
P5 = cython.declare(cython.ulonglong, 0x27D4EB2F165667C5)
SEED = cython.declare(cython.ulonglong, 42)

NO_ROWS = Source(memoryview(bytes(4)).cast("i"), memoryview(b"\0"), None)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def turned(x: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    return (x << bits | x >> (64 - bits)) & MASK


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def four(p: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.ulonglong:
    """The little-endian number in four bytes."""
    return (
        cython.cast(cython.ulonglong, p[at])
        | cython.cast(cython.ulonglong, p[at + 1]) << 8
        | cython.cast(cython.ulonglong, p[at + 2]) << 16
        | cython.cast(cython.ulonglong, p[at + 3]) << 24
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def eight(p: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.ulonglong:
    """The little-endian number in eight bytes."""
    return four(p, at) | four(p, at + 4) << 32


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mixed(lane: cython.ulonglong, word: cython.ulonglong) -> cython.ulonglong:
    return turned((lane + word * P2) & MASK, 31) * P1 & MASK


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def hashed(
    p: cython.p_const_uchar, start: cython.Py_ssize_t, length: cython.Py_ssize_t, seed: cython.ulonglong
) -> cython.ulonglong:
    """XXH64 of p[start:start + length]."""
    at: cython.Py_ssize_t = start
    end: cython.Py_ssize_t = start + length
    a: cython.ulonglong
    b: cython.ulonglong
    c: cython.ulonglong
    d: cython.ulonglong
    h: cython.ulonglong
    if length >= 32:
        a = (seed + P1 + P2) & MASK
        b = (seed + P2) & MASK
        c = seed
        d = (seed - P1) & MASK
        while at + 32 <= end:
            a = mixed(a, eight(p, at))
            b = mixed(b, eight(p, at + 8))
            c = mixed(c, eight(p, at + 16))
            d = mixed(d, eight(p, at + 24))
            at += 32
        h = (turned(a, 1) + turned(b, 7) + turned(c, 12) + turned(d, 18)) & MASK
        h = ((h ^ mixed(0, a)) * P1 + P4) & MASK
        h = ((h ^ mixed(0, b)) * P1 + P4) & MASK
        h = ((h ^ mixed(0, c)) * P1 + P4) & MASK
        h = ((h ^ mixed(0, d)) * P1 + P4) & MASK
    else:
        h = (seed + P5) & MASK
    h = (h + cython.cast(cython.ulonglong, length)) & MASK
    while at + 8 <= end:
        h = (turned(h ^ mixed(0, eight(p, at)), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= end:
        h = (turned(h ^ (four(p, at) * P1 & MASK), 23) * P2 + P3) & MASK
        at += 4
    while at < end:
        h = turned(h ^ (p[at] * P5 & MASK), 11) * P1 & MASK
        at += 1
    h = (h ^ (h >> 33)) * P2 & MASK
    h = (h ^ (h >> 29)) * P3 & MASK
    return h ^ (h >> 32)


def record_hash(key: bytes | None, value: bytes | None) -> int:
    """The hash of one record."""
    h: cython.ulonglong = SEED
    if key is not None:
        h = hashed(key, 0, len(key), h)
    if value is not None:
        h = hashed(value, 0, len(value), h)
    return h


@cython.final
@cython.cclass
class Strings:
    """A column of byte strings being read: `hash` goes on with a row's bytes."""

    offsets: cython.const[cython.int][::1]
    data: cython.const[cython.uchar][::1]
    validity: cython.const[cython.uchar][::1]
    nullable: cython.bint
    missing: cython.bint
    first: cython.Py_ssize_t
    size: cython.Py_ssize_t

    def __init__(self, source: Source | None, count: cython.Py_ssize_t):
        self.missing = source is None
        if source is None:
            source = NO_ROWS
        self.offsets = source.offsets
        self.data = source.data
        self.nullable = source.validity is not None
        self.validity = source.validity if source.validity is not None else b"\0"
        self.first = source.first
        self.size = len(source.data)
        if not self.missing and (self.first < 0 or len(self.offsets) < self.first + count + 1):
            raise ValueError("a column has fewer rows than it should")
        if self.nullable and 8 * len(self.validity) < self.first + count:
            raise ValueError("a column has fewer validity bits than rows")

    @cython.cfunc
    @cython.inline
    def hash(self, row: cython.Py_ssize_t, seed: cython.ulonglong) -> cython.ulonglong:
        """The hash of a row with this seed; the seed if it is null."""
        at: cython.Py_ssize_t = self.first + row
        if self.missing or (self.nullable and not self.validity[at >> 3] >> (at & 7) & 1):
            return seed
        start: cython.Py_ssize_t = self.offsets[at]
        length: cython.Py_ssize_t = self.offsets[at + 1] - start
        if start < 0 or length < 0 or start + length > self.size:
            raise ValueError("a column's offsets go beyond its bytes")
        return hashed(cython.address(self.data[0]) if cython.compiled else self.data, start, length, seed)


def hashes(keys: Source | None, values: Source | None, count: cython.Py_ssize_t) -> memoryview:
    """The hash of each of `count` records, as numbers of format Q. Raises `ValueError` for columns that have fewer."""
    key: Strings = Strings(keys, count)
    value: Strings = Strings(values, count)
    result = memoryview(bytearray(8 * count)).cast("Q")
    into: cython.ulonglong[::1] = result
    i: cython.Py_ssize_t
    for i in range(count):
        into[i] = value.hash(i, key.hash(i, SEED))
    return result


def delay_bucket(ms: int) -> int:
    """The bucket of a delay."""
    ms = min(ms, LONGEST_MS)
    shift = max(0, (ms // STEPS).bit_length() - 1)
    return shift * STEPS + (ms >> shift)


def longest_in(bucket: int) -> int:
    """The longest delay in a bucket, in ms."""
    shift = max(0, bucket // STEPS - 1)
    return ((bucket - shift * STEPS + 1) << shift) - 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def fitting(ms: cython.longlong, shift: cython.int) -> cython.int:
    """How far a delay is shifted in its bucket's number. `shift` is that of the last record: neighbours have about the
    same delay, so a step or none is enough."""
    while ms >> shift >= 2 * STEPS:
        shift += 1
    while shift > 0 and ms >> shift < STEPS:
        shift -= 1
    return shift


DELAY_BUCKETS = delay_bucket(LONGEST_MS) + 1


def widened(row: memoryview, bucket: int) -> memoryview:
    """A row with the numbers of `row` that also has this bucket."""
    held = len(row) - FIRST_COUNT
    first = row[FIRST_BUCKET] if held else bucket
    start = min(first, bucket // STEPS * STEPS)
    stop = max(first + held, bucket // STEPS * STEPS + STEPS)
    wide = memoryview(bytearray(8 * (FIRST_COUNT + stop - start))).cast("Q")
    wide[:FIRST_BUCKET] = row[:FIRST_BUCKET]
    wide[FIRST_BUCKET] = start
    at = FIRST_COUNT + first - start
    wide[at : at + held] = row[FIRST_COUNT:]
    return wide


def digest(
    keys: Source | None,
    values: Source | None,
    timestamps: object,
    ticks_per_ms: cython.longlong,
    window_ms: cython.longlong,
    arrival_ms: cython.longlong,
    rows: dict[int, object],
) -> None:
    """Add the records of these columns to the digests in `rows`: by the start of their window in ms, a row as a
    memoryview of format Q, which is created if missing and replaced by a wider one for a bucket that it lacks.

    `timestamps` are int64 in ticks since 1970; `keys` or `values` of None are all null. All records arrived at
    `arrival_ms`; with `NO_ARRIVAL` none has a delay. Raises `ValueError` for columns that do not fit each other.
    """
    times: cython.const[cython.longlong][::1] = timestamps
    count: cython.Py_ssize_t = len(times)
    if ticks_per_ms < 1 or not 1 <= window_ms <= FARTHEST_MS:
        raise ValueError("a window or a tick is too short or too long")
    key: Strings = Strings(keys, count)
    value: Strings = Strings(values, count)
    row: cython.ulonglong[::1] = memoryview(bytearray(8 * FIRST_COUNT)).cast("Q")
    i: cython.Py_ssize_t
    tick: cython.longlong
    ms: cython.longlong
    start: cython.longlong
    low: cython.longlong = 0
    high: cython.longlong = 0
    delay: cython.longlong
    shift: cython.int = 0
    bucket: cython.Py_ssize_t
    place: cython.Py_ssize_t
    first_bucket: cython.Py_ssize_t = FIRST_BUCKET
    first_count: cython.Py_ssize_t = FIRST_COUNT
    for i in range(count):
        tick = times[i]
        ms = tick // ticks_per_ms if tick >= 0 else -1 - (-1 - tick) // ticks_per_ms
        ms = FARTHEST_MS if ms > FARTHEST_MS else -FARTHEST_MS if ms < -FARTHEST_MS else ms
        if not low <= ms < high:
            start = ms // window_ms if ms >= 0 else -1 - (-1 - ms) // window_ms
            low = start * window_ms
            high = low + window_ms
            if low not in rows:
                rows[low] = memoryview(bytearray(8 * FIRST_COUNT)).cast("Q")
            row = rows[low]
        row[0] += 1
        row[1] = (row[1] + value.hash(i, key.hash(i, SEED))) & MASK
        if arrival_ms != NO_ARRIVAL:
            delay = arrival_ms - ms if arrival_ms > ms else 0
            if arrival_ms >= high + window_ms:
                row[2] += 1
            row[3] = delay if cython.cast(cython.ulonglong, delay) > row[3] else row[3]
            delay = LONGEST_MS if delay > LONGEST_MS else delay
            shift = fitting(delay, shift)
            bucket = shift * STEPS + (delay >> shift)
            place = bucket - row[first_bucket]
            if not 0 <= place < len(row) - first_count:
                row = rows[low] = widened(rows[low], bucket)
                place = bucket - row[first_bucket]
            row[first_count + place] += 1
