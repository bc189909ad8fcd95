"""Checks an offset or time index against its log. Both are read side by side, and the log only once.

The caller passes every batch in order (`batch`), then the end (`end`); the check yields a sentence for each error. An
entry of an offset index has the last offset of a batch and the position where the batch begins. An entry of a time
index has a timestamp larger than all before it, and an offset in the batch with that timestamp.
"""

import itertools
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from moldau.files.inspection import reading
from moldau.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from moldau.runtime import File

NO_TIMESTAMP: Final = -1
Numbered: TypeAlias = tuple[int, tuple[int, ...]]
"""Number and fields of an entry."""


class IndexPlace(NamedTuple):
    """The position, offsets and largest timestamp of a batch."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class _Entries:
    """Reads the entries of an index in order, up to the zeros of its preallocated room."""

    def __init__(self, file: File, layout: struct.Struct):
        self.size = file.size()
        self._file = file
        self._layout = layout
        self.number = -1
        self.zeros_at = -1
        self.zeros_count = False
        self._found = self._without_zeros_in_front(reading.index_entries(file, self.size, layout))
        self.now: tuple[int, ...] | None = None
        self.next()

    def next(self) -> None:
        self.number += 1
        at, self.now = next(self._found, (-1, None))
        if self.now is not None and not any(self.now) and not (self.number == 0 and self.zeros_count):
            self.zeros_at, self.now = at, None

    def _without_zeros_in_front(self, entries: Iterator[Numbered]) -> Iterator[Numbered]:
        """The entries. A first entry of zeros (time 0 at the base offset) counts if it is the only one or others
        follow."""
        first, second = next(entries, None), next(entries, None)
        if first is not None and not any(first[1]):
            self.zeros_count = second is None or any(second[1])
        return itertools.chain((each for each in (first, second) if each is not None), entries)

    def wrong_at_end(self, may_have_room: bool) -> Iterator[str]:
        rest = self.size % self._layout.size
        if rest:
            yield f"the last {rest} bytes are not a complete entry"
        if self.zeros_at >= 0:
            if not reading.only_zeros(self._file, self.zeros_at, self.size):
                yield f"entries follow zeros at position {self.zeros_at}"
            elif not may_have_room:
                yield f"the file was not trimmed: zeros follow from position {self.zeros_at} on"


class OffsetIndexCheck:
    def __init__(self, file: File, base_offset: int):
        self._entries = _Entries(file, OFFSET_ENTRY)
        self._base = base_offset
        self._last = (-1, -1)

    def batch(self, place: IndexPlace) -> Iterator[str]:
        entries = self._entries
        while entries.now is not None:
            relative, position = entries.now
            if position > place.position:
                return
            if relative <= self._last[0] or position <= self._last[1]:
                offset = self._base + relative
                yield f"entry {entries.number} is not above the one before: offset {offset} at position {position}"
            elif position < place.position:
                yield f"entry {entries.number} points at position {position}, where no batch begins"
            elif self._base + relative != place.last_offset:
                yield (
                    f"entry {entries.number} has last offset {self._base + relative} for the batch at position "
                    f"{position}, which ends with {place.last_offset}"
                )
            self._last = (relative, position)
            entries.next()

    def end(self, may_have_room: bool) -> Iterator[str]:
        entries = self._entries
        while entries.now is not None:
            yield f"entry {entries.number} points at position {entries.now[1]}, after the log's last batch"
            entries.next()
        yield from entries.wrong_at_end(may_have_room)


class TimeIndexCheck:
    def __init__(self, file: File, base_offset: int):
        self._entries = _Entries(file, TIME_ENTRY)
        self._base = base_offset
        self._last = (-(1 << 63), -1)
        self._largest = NO_TIMESTAMP

    def batch(self, place: IndexPlace) -> Iterator[str]:
        entries = self._entries
        while entries.now is not None:
            timestamp, relative = entries.now
            offset = self._base + relative
            if offset > place.last_offset:
                break
            if timestamp <= self._last[0] or relative < self._last[1]:
                yield f"entry {entries.number} is not above the one before: time {timestamp} at offset {offset}"
            elif offset < place.base_offset:
                yield f"entry {entries.number} names offset {offset}, which is in no batch"
            elif timestamp != place.max_timestamp:
                yield (
                    f"entry {entries.number} has time {timestamp} for offset {offset}, but its batch has "
                    f"{place.max_timestamp}"
                )
            elif timestamp < self._largest:
                yield f"entry {entries.number} has time {timestamp}, but an earlier batch has {self._largest}"
            self._last = (timestamp, relative)
            entries.next()
        self._largest = max(self._largest, place.max_timestamp)

    def end(self, may_have_room: bool) -> Iterator[str]:
        entries = self._entries
        while entries.now is not None:
            yield f"entry {entries.number} names offset {self._base + entries.now[1]}, after the log's last batch"
            entries.next()
        yield from entries.wrong_at_end(may_have_room)
        if not may_have_room and self._largest > max(self._last[0], NO_TIMESTAMP):
            yield f"the segment's largest time, {self._largest}, has no entry"
