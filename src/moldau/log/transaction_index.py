"""Which transactions were aborted: one index beside each segment that holds a marker of one, for readers of committed
records only.

    .txnindex    0  2  version 0
                 2  8  producer_id
                10  8  first_offset          of the transaction's first record, in this segment or an earlier one
                18  8  last_offset           of its marker, in this segment
                26  8  last_stable_offset    once the marker stood: below it nothing was undecided        34 bytes each

An entry is written when its marker is. There is no file before the first entry. Entries rise by last offset, and never
fall by last stable offset: a reader begins at the first entry whose marker is at or behind its offset, and is done with
one whose last stable offset is at or behind its end, in whatever segment that is. Bytes behind the last whole entry are
no entry. Nothing here knows what a producer is. Source: KIP-98.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from moldau.log.checkpoints import replace_file
from moldau.log.files import LazyFile, OpenFiles
from moldau.log.indexes import CorruptIndex
from moldau.runtime import Disk

ENTRY: Final = struct.Struct(">hqqqq")
VERSION: Final = 0
CHUNK_ENTRIES: Final = 1000
assert ENTRY.size == 34


class AbortedTxn(NamedTuple):
    """A transaction that was aborted in one partition; offsets include both ends."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The index of one segment. `entries` is known from the file's size alone; `check` looks into it."""

    __slots__ = ("_base_offset", "_dirty", "entries", "file")

    def __init__(self, path: Path, base_offset: int, files: OpenFiles, size: int = 0):
        """`size`: the bytes of the file, 0 if there is none."""
        self.file = LazyFile(path, files)
        self.entries = size // ENTRY.size
        self._base_offset = base_offset
        self._dirty = False

    def append(self, aborted: AbortedTxn) -> None:
        """Add one behind all others; the file is made with the first."""
        file = self.file.get() if self.entries else self.file.create()
        file.write(ENTRY.pack(VERSION, *aborted), self.entries * ENTRY.size)
        self.entries += 1
        self._dirty = True

    def prepare(self) -> None:
        """Open the file, so that the next `append` needs no descriptor."""
        if self.entries:
            self.file.get()
        else:
            self.file.create()

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self._since(0)

    def _since(self, number: int) -> Iterator[AbortedTxn]:
        return (AbortedTxn(*fields[1:]) for fields in self._read(number))

    def _read(self, number: int) -> Iterator[tuple[int, int, int, int, int]]:
        """The fields of all entries from that one on, a chunk at a time."""
        while number < self.entries:
            count = min(CHUNK_ENTRIES, self.entries - number)
            chunk = self.file.get().read(count * ENTRY.size, number * ENTRY.size)
            yield from ENTRY.iter_unpack(chunk[: len(chunk) // ENTRY.size * ENTRY.size])
            number += count

    def _last_offset(self, number: int) -> int:
        return int(ENTRY.unpack(self.file.get().read(ENTRY.size, number * ENTRY.size))[3])

    def from_offset(self, offset: int) -> Iterator[AbortedTxn]:
        """Those whose marker is at or behind an offset, in order."""
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) >> 1
            if self._last_offset(middle) < offset:
                low = middle + 1
            else:
                high = middle
        return self._since(low)

    def check(self) -> None:
        """Look at every entry. Raises `CorruptIndex` unless they can be those of this segment."""
        before = self._base_offset - 1
        for version, _, first, last, stable in self._read(0):
            if version != VERSION:
                raise CorruptIndex(f"{self.file.path} is of version {version}, which is not supported")
            if not before < last or not 0 <= first <= last or not 0 <= stable <= last + 1:
                raise CorruptIndex(f"{self.file.path} has an impossible entry for offsets {first} to {last}")
            before = last

    def truncate(self, offset: int) -> None:
        """Forget those whose marker is at or behind an offset."""
        kept = self.entries - sum(1 for _ in self.from_offset(offset))
        if kept < self.entries:
            self._cut(kept)

    def clear(self) -> None:
        """Remove all entries, before the index is rebuilt."""
        if self.entries:
            self._cut(0)

    def replace(self, disk: Disk, entries: Iterable[AbortedTxn]) -> None:
        """Replace all entries, atomically and flushed: a half-written file could not be distinguished from a whole
        one."""
        data = b"".join(ENTRY.pack(VERSION, *aborted) for aborted in entries)
        self.file.let_go()
        replace_file(disk, self.file.path, data)
        self.entries = len(data) // ENTRY.size

    def _cut(self, entries: int) -> None:
        self.file.get().truncate(entries * ENTRY.size)
        self.entries = entries
        self._dirty = True

    def flush(self) -> None:
        if self._dirty:
            self._dirty = False
            try:
                self.file.get().flush()
            except OSError:
                self._dirty = True
                raise
