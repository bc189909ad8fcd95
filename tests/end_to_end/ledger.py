"""What was sent to a partition and what was acknowledged, and what is wrong with what a reader finds there.

Record number N has a key, a value and a time that N says, so that nothing but numbers is remembered. One sender sends
them in order; it may never learn whether a number arrived, and goes on with the next one then. No file, no socket and
no clock is known here.
"""

import zlib
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from moldau.records.batch import Row
from moldau.records.rows import Record

NUMBER = "n"
UNKNOWN = -1
PADDING_MAX = 1000


class Found(NamedTuple):
    """A record as it was read."""

    offset: int
    number: int
    key: bytes | None
    value: bytes | None


def found(record: Record) -> Found:
    headers = dict(record.headers)
    return Found(record.offset, int(headers.get(NUMBER) or UNKNOWN), record.key, record.value)


class Ledger:
    """One partition. `keys`: how many there are. `compacted`: older records of a key may be gone; `deletes`: so may
    what is below the log's start."""

    def __init__(self, topic: str, keys: int, *, compacted: bool = True, deletes: bool = False):
        self.topic = topic
        self.compacted = compacted
        self.sent = 0
        self.end = 0
        self.start = 0
        self.known_to = 0
        self._keys = keys
        self._deletes = deletes
        self._known_numbers = 0
        self._offsets = array("q")
        self._last_offset = -1
        self._latest: dict[bytes, int] = {}
        self._unknown: dict[int, None] = {}

    def key(self, number: int) -> bytes:
        return b"key-%d" % (zlib.crc32(b"%d" % number) % self._keys)

    def value(self, number: int) -> bytes | None:
        """In a compacted topic one in eight is a tombstone."""
        chance = zlib.crc32(b"value %d" % number)
        if self.compacted and chance % 8 == 0:
            return None
        return b"%d:" % number + b"." * (chance % PADDING_MAX)

    def row(self, number: int, timestamp_ms: int) -> Row:
        return Row(self.key(number), self.value(number), timestamp_ms, [(NUMBER, b"%d" % number)])

    def send(self, count: int) -> range:
        """The numbers of the next records; from now on each may be in the log."""
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        self._offsets.extend([UNKNOWN] * count)
        self._unknown.update(dict.fromkeys(numbers))
        return numbers

    def acknowledged(self, number: int, offset: int) -> None:
        """The broker said, or showed, where a record is. Raises `AssertionError` if an offset is given out again."""
        assert self._unknown.pop(number, 0) is None, f"{self.topic}: number {number} was acknowledged twice"
        assert offset > self._last_offset, (
            f"{self.topic}: offset {offset} for number {number} after {self._last_offset} had been given out"
        )
        self._last_offset = offset
        self._offsets[number] = offset
        self._latest[self.key(number)] = number

    def confirmed(self, number: int, offset: int) -> None:
        """As `acknowledged`, of a record that was sent until an answer came, and may have been found meanwhile."""
        if number in self._unknown:
            self.acknowledged(number, offset)
        else:
            stood = self._offsets[number]
            assert stood == offset, f"{self.topic}: number {number} is at {stood}, acknowledged again at {offset}"

    @property
    def acknowledged_count(self) -> int:
        return self.sent - len(self._unknown)

    def problems(self, records: Iterable[Found], start: int, end: int) -> list[str]:
        """What is wrong with the records that were read from `known_to` (without compaction) or the log's start on, up
        to its end; none is the aim. What is found counts as acknowledged from now on."""
        found: list[Found] = list(records)
        wrong = self._wrong_in_themselves(found) + self._wrong_ends(start, end)
        if not wrong:
            wrong = self._missing(found, start) if self.compacted else self._gaps(found, end)
        if not wrong:
            self.start, self.end = start, end
            if not self.compacted and found:
                self.known_to, self._known_numbers = end, found[-1].number + 1
            for record in found:
                if self._offsets[record.number] == UNKNOWN and record.offset > self._last_offset:
                    self.acknowledged(record.number, record.offset)
        return [f"{self.topic}: {sentence}" for sentence in wrong]

    def _wrong_in_themselves(self, found: list[Found]) -> list[str]:
        wrong = []
        last_offset = last_number = -1
        for offset, number, key, value in found:
            if not 0 <= number < self.sent:
                wrong.append(f"number {number} at offset {offset} was never sent")
                continue
            if (key, value) != (self.key(number), self.value(number)):
                wrong.append(f"number {number} at offset {offset} is not what was sent")
            if self._offsets[number] not in (UNKNOWN, offset):
                wrong.append(f"number {number} is at offset {offset}, acknowledged at {self._offsets[number]}")
            if offset <= last_offset:
                wrong.append(f"offset {offset} follows {last_offset}")
            if number <= last_number:
                wrong.append(f"number {number} at offset {offset} follows {last_number}")
            last_offset, last_number = offset, number
        return wrong

    def _wrong_ends(self, start: int, end: int) -> list[str]:
        wrong = []
        if start < self.start:
            wrong.append(f"the log starts at {start}, it had started at {self.start}")
        if start > 0 and not self._deletes:
            wrong.append(f"the log starts at {start}, and nobody deleted records")
        if end < max(self.end, self._last_offset + 1):
            wrong.append(f"the log ends at {end}, it had reached {max(self.end, self._last_offset + 1)}")
        return wrong

    def _gaps(self, found: list[Found], end: int) -> list[str]:
        """Without compaction every offset has its record, and every number its offset, up to the last one."""
        offsets = [record.offset for record in found]
        if offsets != list(range(self.known_to, end)):
            return [f"of the offsets from {self.known_to} to {end} {len(offsets)} are there"]
        present = {record.number for record in found}
        later = range(self._known_numbers, self.sent)
        lost = [number for number in later if self._offsets[number] >= self.known_to and number not in present]
        return [f"number {number}, acknowledged at {self._offsets[number]}, is lost" for number in lost]

    def _missing(self, found: list[Found], start: int) -> list[str]:
        """Each key's last acknowledged record is there, or a newer one, or the key is gone by a tombstone."""
        newest = {record.key: record.number for record in found}
        erased = {self.key(number): number for number in self._unknown if self.value(number) is None}
        wrong = []
        for key, number in self._latest.items():
            if self._offsets[number] < start:
                continue
            there = newest.get(key, UNKNOWN)
            gone = self.value(number) is None or erased.get(key, UNKNOWN) > number
            if there == UNKNOWN and not gone:
                wrong.append(f"{key!r}: number {number}, acknowledged at {self._offsets[number]}, is lost")
            elif UNKNOWN < there < number:
                wrong.append(f"{key!r}: number {there} is the last one there, {number} was acknowledged")
        return wrong
