# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""Compaction's work per record: `note_keys` remembers the last offset of each key, `choose` marks the records that
stay, `copy_chosen` writes those.

    an entry of the table, three 64-bit numbers of the machine's order:
        hash of the key, first half | hash of the key, second half | offset of its last record + 1, 0 where it is free

The hash is SipHash-2-4 with 128 bits under a secret random key: a producer cannot construct two record keys with one
hash. Entries of colliding slots follow each other, and none is ever taken out. Sections have passed `scanning.measure`:
nothing is checked a second time. The records' format is drawn in `scanning`.
Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF".
"""

from __future__ import annotations

from moldau.records.columns.scanning import Section

try:
    import cython
    from cython.cimports.libc.string import memcpy
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled

MASK = 0xFFFFFFFFFFFFFFFF
A = cython.declare(cython.ulonglong, 0x736F6D6570736575)
B = cython.declare(cython.ulonglong, 0x646F72616E646F6D)
C = cython.declare(cython.ulonglong, 0x6C7967656E657261)
D = cython.declare(cython.ulonglong, 0x7465646279746573)

Sip = cython.struct(a=cython.ulonglong, b=cython.ulonglong, c=cython.ulonglong, d=cython.ulonglong)
"""The state of the hash; at the end `a` and `b` are its two halves."""

Kept = cython.struct(
    rows=cython.longlong,
    tombstones=cython.longlong,
    size=cython.longlong,
    largest=cython.longlong,
    smallest=cython.longlong,
)
"""The sums that `choose` collects about the records that stay; timestamps are deltas."""


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
@cython.nogil
@cython.exceptval(check=False)
def rotated(x: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    if cython.compiled:
        return x << bits | x >> (64 - bits)
    else:
        return (x << bits | x >> (64 - bits)) & MASK


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def added(x: cython.ulonglong, y: cython.ulonglong) -> cython.ulonglong:
    if cython.compiled:
        return x + y
    else:
        return (x + y) & MASK


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def little_endian(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
    """The number of `size` bytes at p[at], at most 8."""
    i: cython.Py_ssize_t
    raw: cython.ulonglong = 0
    for i in range(size):
        raw |= cython.cast(cython.ulonglong, p[at + i]) << (8 * i)
    return raw


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def stir(v: cython.pointer[Sip], rounds: cython.int) -> cython.void:
    for _ in range(rounds):
        v.a = added(v.a, v.b)
        v.b = rotated(v.b, 13) ^ v.a
        v.a = rotated(v.a, 32)
        v.c = added(v.c, v.d)
        v.d = rotated(v.d, 16) ^ v.c
        v.a = added(v.a, v.d)
        v.d = rotated(v.d, 21) ^ v.a
        v.c = added(v.c, v.b)
        v.b = rotated(v.b, 17) ^ v.c
        v.c = rotated(v.c, 32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def hash_key(
    p: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    length: cython.longlong,
    secret_a: cython.ulonglong,
    secret_b: cython.ulonglong,
    v: cython.pointer[Sip],
) -> cython.void:
    """SipHash-2-4 with 128 bits of p[at:at+length], left in v.a and v.b."""
    word: cython.ulonglong
    end: cython.Py_ssize_t = at + length - length % 8
    v.a = secret_a ^ A
    v.b = secret_b ^ B ^ 0xEE
    v.c = secret_a ^ C
    v.d = secret_b ^ D
    while at < end:
        word = little_endian(p, at, 8)
        v.d ^= word
        stir(v, 2)
        v.a ^= word
        at += 8
    word = cython.cast(cython.ulonglong, length & 0xFF) << 56 | little_endian(p, at, length % 8)
    v.d ^= word
    stir(v, 2)
    v.a ^= word
    v.c ^= 0xEE
    stir(v, 4)
    word = v.a ^ v.b ^ v.c ^ v.d
    v.b ^= 0xDD
    stir(v, 4)
    v.b = v.a ^ v.b ^ v.c ^ v.d
    v.a = word


def keyed_hash(data: cython.const[cython.uchar][::1], secret: tuple[int, int]) -> tuple[int, int]:
    """The hash of some bytes, for comparison with published test vectors."""
    v: Sip = Sip(0, 0, 0, 0)
    length: cython.Py_ssize_t = len(data)
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    hash_key(p, 0, length, secret[0], secret[1], cython.address(v))
    return v.a, v.b


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def slot_of(
    t: cython.p_const_ulonglong, slots: cython.ulonglong, a: cython.ulonglong, b: cython.ulonglong
) -> cython.ulonglong:
    """The table slot of that hash's entry, or the free slot where it would be."""
    at: cython.ulonglong = 3 * (a % slots)
    while t[at + 2] != 0 and (t[at] != a or t[at + 1] != b):
        at += 3
        if at == 3 * slots:
            at = 0
    return at


def note_keys(
    section: Section,
    table: cython.ulonglong[::1],
    entries: cython.longlong,
    entries_max: cython.longlong,
    secret: tuple[int, int],
) -> tuple[int, int]:
    """Note the offset of every wanted record that has a key; a later record's offset replaces an earlier one of the
    same key.

    Returns the number of entries now, and the offset of the first record for whose key there was no room, -1 if there
    was room for all. The table must have a free slot beyond `entries_max`.
    """
    data: cython.const[cython.uchar][::1] = section.records
    at: cython.Py_ssize_t = section.start
    count: cython.longlong = section.count
    base_offset: cython.longlong = section.base_offset
    low: cython.longlong = section.low
    high: cython.longlong = section.high
    secret_a: cython.ulonglong = secret[0]
    secret_b: cython.ulonglong = secret[1]
    slots: cython.ulonglong = len(table) // 3
    length: cython.longlong
    delta: cython.longlong
    stop: cython.Py_ssize_t
    slot: cython.ulonglong
    refused: cython.longlong = -1
    v: Sip = Sip(0, 0, 0, 0)
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    t: cython.p_ulonglong = cython.address(table[0]) if cython.compiled else table
    with cython.nogil:
        for _ in range(count):
            length, at = number(p, at)
            stop = at + length
            length, at = number(p, at + 1)
            delta, at = number(p, at)
            length, at = number(p, at)
            if length >= 0 and low <= delta < high:
                hash_key(p, at, length, secret_a, secret_b, cython.address(v))
                slot = slot_of(t, slots, v.a, v.b)
                if t[slot + 2] == 0:
                    if entries >= entries_max:
                        refused = base_offset + delta
                        break
                    entries += 1
                    t[slot] = v.a
                    t[slot + 1] = v.b
                t[slot + 2] = base_offset + delta + 1
            at = stop
    return entries, refused


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_latest(
    p: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    length: cython.longlong,
    offset: cython.longlong,
    t: cython.p_const_ulonglong,
    slots: cython.ulonglong,
    secret_a: cython.ulonglong,
    secret_b: cython.ulonglong,
) -> cython.bint:
    """Whether the table has no record with the key p[at:at+length] after that offset."""
    v: Sip = Sip(0, 0, 0, 0)
    hash_key(p, at, length, secret_a, secret_b, cython.address(v))
    return t[slot_of(t, slots, v.a, v.b) + 2] <= cython.cast(cython.ulonglong, offset + 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def note_kept(kept: cython.pointer[Kept], size: cython.longlong, timestamp: cython.longlong) -> cython.void:
    if timestamp > kept.largest or kept.rows == 0:
        kept.largest = timestamp
    if timestamp < kept.smallest or kept.rows == 0:
        kept.smallest = timestamp
    kept.rows += 1
    kept.size += size


def choose(
    section: Section,
    table: cython.ulonglong[::1],
    latest: cython.longlong,
    secret: tuple[int, int],
    keep_tombstones: cython.bint,
    chosen: cython.uchar[::1],
) -> tuple[int, int, int, int, int]:
    """Mark the records that stay, in `chosen`: those after offset `latest`, and of the others those whose key has no
    later record in the table.

    Returns how many stay, how many of those have no value, their bytes, and the largest and the smallest timestamp
    delta of those that stay.
    """
    data: cython.const[cython.uchar][::1] = section.records
    at: cython.Py_ssize_t = section.start
    count: cython.longlong = section.count
    base_offset: cython.longlong = section.base_offset
    secret_a: cython.ulonglong = secret[0]
    secret_b: cython.ulonglong = secret[1]
    slots: cython.ulonglong = len(table) // 3
    i: cython.longlong
    length: cython.longlong
    key: cython.longlong
    timestamp: cython.longlong
    delta: cython.longlong
    begin: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    behind: cython.bint
    stays: cython.bint
    kept: Kept = Kept(0, 0, 0, 0, 0)
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    t: cython.p_const_ulonglong = cython.address(table[0]) if cython.compiled else table
    if len(chosen) < count:
        raise ValueError("no room for a mark of every record")
    with cython.nogil:
        for i in range(count):
            begin = at
            length, at = number(p, at)
            stop = at + length
            timestamp, at = number(p, at + 1)
            delta, at = number(p, at)
            key, at = number(p, at)
            behind = base_offset + delta > latest
            stays = behind or (key >= 0 and is_latest(p, at, key, base_offset + delta, t, slots, secret_a, secret_b))
            length, at = number(p, at + key if key > 0 else at)
            if stays and length < 0:
                stays = behind or keep_tombstones
                kept.tombstones += stays
            chosen[i] = stays
            if stays:
                note_kept(cython.address(kept), stop - begin, timestamp)
            at = stop
    return kept.rows, kept.tombstones, kept.size, kept.largest, kept.smallest


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_number(o: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a zig-zag number; the position after it."""
    raw: cython.ulonglong
    if cython.compiled:
        raw = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        raw = (value << 1 ^ value >> 63) & MASK
    while raw > 0x7F:
        o[at] = raw & 0x7F | 0x80
        raw >>= 7
        at += 1
    o[at] = raw
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def number_size(value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong
    size: cython.Py_ssize_t = 1
    if cython.compiled:
        raw = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        raw = (value << 1 ^ value >> 63) & MASK
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put(
    o: cython.p_uchar, to: cython.Py_ssize_t, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Copy p[at:end]; the position after it."""
    if cython.compiled:
        memcpy(o + to, p + at, end - at)
    else:
        o[to : to + end - at] = p[at:end]
    return to + end - at


def copy_chosen(
    section: Section,
    chosen: cython.const[cython.uchar][::1],
    shift: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
) -> int:
    """Write the chosen records to out[to:], with `shift` added to every timestamp delta; the position after them.

    Offset deltas stay. Without a shift the records are copied as they are; with one each may grow by 14 bytes, for
    which there must be room.
    """
    data: cython.const[cython.uchar][::1] = section.records
    at: cython.Py_ssize_t = section.start
    count: cython.longlong = section.count
    i: cython.longlong
    length: cython.longlong
    timestamp: cython.longlong
    begin: cython.Py_ssize_t
    body: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    p: cython.p_const_uchar = cython.address(data[0]) if cython.compiled else data
    o: cython.p_uchar = cython.address(out[0]) if cython.compiled else out
    with cython.nogil:
        for i in range(count):
            begin = at
            length, at = number(p, at)
            stop = at + length
            if chosen[i]:
                if shift == 0:
                    to = put(o, to, p, begin, stop)
                else:
                    body = at
                    timestamp, at = number(p, at + 1)
                    timestamp += shift
                    to = put_number(o, to, 1 + number_size(timestamp) + stop - at)
                    o[to] = p[body]
                    to = put_number(o, to + 1, timestamp)
                    to = put(o, to, p, at, stop)
            at = stop
    return to
