# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: ignore-errors
"""Batches that are filled record by record: each record is encoded into its batch at once.

`OpenBatch` is one such batch and `OpenBatches` the way of a topic's records into theirs. Both are base classes of what
a producer keeps. Compiled, a record joins its batch within one call that no other thread can interrupt, so `put` needs
no lock; interpreted, its caller holds one. Nothing here waits, reserves memory or opens a batch: where that is needed,
`put` does nothing and says so.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
except (ImportError, AttributeError):
    from moldau.records import untyped as cython

if cython.compiled:
    from cython.cimports.moldau.records.columns.encoding import (
        copy,
        put_prefix,
        put_varint,
        size_of,
        size_of_varint,
        too_far,
    )
    from cython.cimports.moldau.records.columns.hashing import hashed
else:
    from moldau.records.columns.encoding import copy, put_prefix, put_varint, size_of, size_of_varint, too_far
    from moldau.records.columns.hashing import hashed

COMPILED: bool = cython.compiled

RECORD_SIZE_MAX = 31
"""What a record takes in a batch beside its key, value and headers, at most."""
CALLBACK_BYTES = 16
"""What a batch keeps beside that for a record with a callback: two references."""
NO_HEADERS = b"\x00"
TIMESTAMP_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
CALLBACK = cython.declare(cython.Py_ssize_t, CALLBACK_BYTES)


@cython.cclass
class OpenBatch:
    """The records of one batch, behind `room` bytes for its header. It takes records until it is full or sealed.

    `filled` counts the bytes of header, records and what is kept for callbacks; `capacity` is the most it may be.
    `callbacks` has the callback of each record or None, up to the last record with one; `timestamps` their times.
    """

    records = cython.declare(bytearray, visibility="public")
    callbacks = cython.declare(list, visibility="public")
    timestamps = cython.declare(list, visibility="public")
    count = cython.declare(cython.Py_ssize_t, visibility="public")
    capacity = cython.declare(cython.Py_ssize_t, visibility="public")
    filled = cython.declare(cython.Py_ssize_t, visibility="public")
    sealed = cython.declare(cython.bint, visibility="public")
    base_timestamp = cython.declare(cython.longlong, visibility="public")
    max_timestamp = cython.declare(cython.longlong, visibility="public")
    end = cython.declare(cython.Py_ssize_t, visibility="public")

    def __init__(self, room: cython.Py_ssize_t = 0, capacity: cython.Py_ssize_t = 0):
        self.records = bytearray()
        self.callbacks, self.timestamps = [], []
        self.count = 0
        self.capacity = 0
        self.filled = self.end = room
        self.base_timestamp = self.max_timestamp = -1
        self.sealed = False
        self.grow(capacity)

    def grow(self, capacity: cython.Py_ssize_t) -> None:
        """Take records up to this many bytes."""
        self.capacity = capacity
        if cython.compiled:
            PyByteArray_Resize(self.records, capacity)
        else:
            records, self.records = self.records, bytearray(capacity)
            self.records[: len(records)] = records

    def seal(self) -> None:
        """Take no more records."""
        self.sealed = True

    def taken(self) -> bytearray:
        """The room and the records, of which the batch keeps none."""
        records: bytearray = self.records
        self.sealed = True
        self.records = bytearray()
        del records[self.end :]
        return records

    def put(
        self, key: bytes | None, value: bytes | None, timestamp: cython.longlong, headers: bytes, callback: object
    ) -> int:
        """Add a record, with its headers in wire format. Returns its index; -1 if the batch is sealed, has no room for
        it, or its other timestamps are too far away."""
        return self.fill(key, value, timestamp, timestamp, headers, callback)

    @cython.cfunc
    @cython.exceptval(-2)
    def fill(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: cython.longlong,
        stamp: object,
        headers: bytes,
        callback: object,
    ) -> cython.Py_ssize_t:
        if self.sealed:
            return -1
        count: cython.Py_ssize_t = self.count
        base: cython.longlong = self.base_timestamp if count else timestamp
        if too_far(timestamp, base):
            return -1
        key_length: cython.longlong = -1 if key is None else len(key)
        value_length: cython.longlong = -1 if value is None else len(value)
        size: cython.longlong = size_of(timestamp - base, count, key_length, value_length, len(headers))
        kept: cython.Py_ssize_t = 0 if callback is None else CALLBACK
        whole: cython.Py_ssize_t = size + size_of_varint(size)
        if self.filled + whole + kept > self.capacity:
            return -1
        at: cython.Py_ssize_t = self.end
        out: cython.p_uchar = (
            cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self.records)) if cython.compiled else self.records
        )
        at = put_prefix(out, at, size, timestamp - base, count)
        at = put_varint(out, at, key_length)
        if key is not None:
            at = copy(out, at, key, 0, key_length)
        at = put_varint(out, at, value_length)
        if value is not None:
            at = copy(out, at, value, 0, value_length)
        self.end = copy(out, at, headers, 0, len(headers))
        self.filled += whole + kept
        self.base_timestamp = base
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if callback is not None:
            for _ in range(len(self.callbacks), count):
                self.callbacks.append(None)
                self.timestamps.append(stamp)
            self.callbacks.append(callback)
            self.timestamps.append(stamp)
        self.count = count + 1
        return count


@cython.cclass
class StickyPartition:
    """The partition for records without a key, and the bytes that it is still to get."""

    chosen = cython.declare(cython.Py_ssize_t, visibility="public")
    left = cython.declare(cython.longlong, visibility="public")


@cython.cclass
class RecordPlace:
    """The batch of a record, its index there and its timestamp."""

    _batch = cython.declare(object, visibility="public")
    _index = cython.declare(cython.Py_ssize_t, visibility="public")
    _timestamp_ms = cython.declare(object, visibility="public")

    def __init__(self, batch: object, index: cython.Py_ssize_t, timestamp_ms: object = -1):
        self._batch, self._index, self._timestamp_ms = batch, index, timestamp_ms


@cython.cclass
class OpenBatches:
    """The open batch of each partition of a topic, None where it has none; `make` makes a result of a `RecordPlace`'s
    arguments. With `plain`, values and keys need no serializer, and partitions come from keys or are `sticky`."""

    open = cython.declare(list, visibility="public")
    sticky = cython.declare(StickyPartition, visibility="public")
    plain = cython.declare(cython.bint, visibility="public")
    _hashes: cython.bint
    _now_ms: object
    _make: object
    _stamp: object
    _time: cython.longlong

    def __init__(self, count: int, sticky: StickyPartition, now_ms: object, make: object, plain: bool, hashes: bool):
        self.open = [None] * count
        self.sticky = sticky
        self.plain, self._hashes = plain, hashes
        self._now_ms, self._make = now_ms, make
        self._stamp, self._time = None, -1

    def put(
        self, value: object, key: object, partition: object, timestamp_ms: object, headers: object, callback: object
    ) -> Any:
        """Add a record to its open batch, and return its result; None, and nothing is done, if that takes more: a
        batch with room, other types, headers, a check that fails."""
        number: cython.Py_ssize_t
        index: cython.Py_ssize_t
        time: cython.longlong
        size: cython.Py_ssize_t
        sticky: StickyPartition = self.sticky
        if not self.plain or headers:
            return None
        if type(value) is not bytes and value is not None:
            if type(value) is not str:
                return None
            value = value.encode()
        if type(key) is not bytes and key is not None:
            if type(key) is not str:
                return None
            key = key.encode()
        if timestamp_ms is None:
            stamp = self._now_ms()
        elif type(timestamp_ms) is int and -1 <= timestamp_ms <= TIMESTAMP_MAX:
            stamp = timestamp_ms
        else:
            return None
        time = stamp
        if time == self._time:
            stamp = self._stamp
        else:
            self._time, self._stamp = time, stamp
        size = 0
        if partition is not None:
            if type(partition) is not int or not 0 <= partition < len(self.open):
                return None
            number = partition
        elif key is not None and self._hashes:
            number = (hashed(key, 0, len(key)) & 0x7FFFFFFF) % cython.cast(cython.ulonglong, len(self.open))
        else:
            if sticky.left <= 0 or sticky.chosen >= len(self.open):
                return None
            number = sticky.chosen
            size = RECORD_SIZE_MAX + (0 if value is None else len(value))
        batch: OpenBatch = self.open[number]
        if batch is None:
            return None
        made: RecordPlace = self._make(batch, 0, stamp)
        index = batch.fill(key, value, time, stamp, NO_HEADERS, callback)
        if index < 0:
            return None
        sticky.left -= size
        made._index = index
        return made


def acknowledge(
    callbacks: list,
    timestamps: list,
    base_offset: cython.longlong,
    append_time: cython.longlong,
    place: object,
    make: object,
    raised: object,
) -> None:
    """Call each callback of an `OpenBatch` with None and `make((*place, offset, timestamp))`, and `raised` where one
    raises. Offsets are -1 without a base offset, timestamps the time of the append if there is one."""
    i: cython.Py_ssize_t
    topic, partition = place
    for i in range(len(callbacks)):
        callback = callbacks[i]
        if callback is None:
            continue
        offset = base_offset + i if base_offset >= 0 else -1
        try:
            callback(None, make((topic, partition, offset, append_time if append_time >= 0 else timestamps[i])))
        except Exception:
            raised()
