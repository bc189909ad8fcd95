"""A sparse index of one segment: entries in rising order of their key, and a search for the last one at or below a key.

    .index       0  4  last offset of a batch, relative to the segment's base
                 4  4  position of that batch's first byte                          8 bytes an entry
    .timeindex   0  8  largest timestamp so far, ms
                 8  4  last offset of the batch that has it, relative              12 bytes an entry

Integers are big-endian and signed. While its segment is active the file has its full size, sparse and zero behind the
entries; a closed one is exactly its entries. The first entry reaches the file at once, as readers take zeros for the
end, then a page at a time, and all of them with `save`: after a crash the index of every segment that was not flushed
is built anew, so a lagging file is no harm. A page of 512 entries covers about 2 MB of log, so that a reader going
forward finds the next position in the page it read last.

This module knows nothing of batches. `append` is called by one thread; `save` and `flush` may be called by another.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from moldau.log.files import LazyFile
from moldau.runtime import Buffer

OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")
assert OFFSET_ENTRY.size == 8 and TIME_ENTRY.size == 12

PAGE_ENTRIES: Final = 512
UNKNOWN: Final = -1
Keys: TypeAlias = "array[int]"


class IndexEntry(NamedTuple):
    key: int
    value: int


_new: Final = tuple.__new__


class PackedKeys(Sequence[int]):
    """The keys of a page as they are in the file: for one search, in which few of them are looked at."""

    def __init__(self, page: Buffer, entry: struct.Struct):
        self._page = page
        self._entry = entry

    def __len__(self) -> int:
        return len(self._page) // self._entry.size

    def __getitem__(self, number: Any) -> Any:
        return self._entry.unpack_from(self._page, number * self._entry.size)[0]


class CorruptIndex(Exception):
    """The file cannot be an index of its segment: it must be rebuilt."""


class Index:
    """One index file. `entries` is -1 until the file was looked at; everything that needs it looks first."""

    __slots__ = ("_entry", "_file", "_grown", "_page", "_tail", "entries", "entries_max", "last")

    def __init__(self, file: LazyFile, entry: struct.Struct, bytes_max: int):
        self._file = file
        self._entry = entry
        self.entries_max = bytes_max // entry.size
        self.entries = UNKNOWN
        self.last: IndexEntry | None = None
        self._tail: tuple[int, bytearray, Keys] = (0, bytearray(), array("q"))
        self._page: tuple[int, Buffer, Keys | None] = (-1, b"", None)
        self._grown = False

    @property
    def file(self) -> LazyFile:
        return self._file

    def create(self) -> None:
        """Create or empty the file, at its full size and with no entry."""
        file = self._file.create()
        file.truncate(0)
        file.truncate(self.entries_max * self._entry.size)
        self._start_over()
        self._grown = True

    def _start_over(self) -> None:
        self.entries = 0
        self.last = None
        self._tail = (0, bytearray(), array("q"))
        self._page = (-1, b"", None)

    def load(self, key_min: int, value_max: int) -> None:
        """Look at the file of a closed segment. Raises `CorruptIndex` unless its ends fit each other and the
        segment."""
        file = self._file.get()
        entries, rest = divmod(file.size(), self._entry.size)
        if rest:
            raise CorruptIndex(f"{self._file.path} does not hold a whole number of entries")
        self._open_at(entries)
        if self.last is not None:
            first = IndexEntry(*self._entry.unpack(file.read(self._entry.size, 0)))
            if first.key < key_min or (entries > 1 and self.last.key <= first.key) or self.last.value < first.value:
                raise CorruptIndex(f"{self._file.path} does not rise")
            if first.value < 0 or self.last.value > value_max:
                raise CorruptIndex(f"{self._file.path} points behind its segment")

    def _open_at(self, entries: int) -> None:
        """Continue behind the first `entries` entries of the file."""
        start = entries // PAGE_ENTRIES * PAGE_ENTRIES
        size = self._entry.size
        tail = bytearray(self._file.get().read((entries - start) * size, start * size))
        self.entries = entries
        self._tail = (start, tail, array("q", (fields[0] for fields in self._entry.iter_unpack(tail))))
        self._page = (-1, b"", None)
        self.last = self.entry(entries - 1) if entries else None

    def entry(self, number: int) -> IndexEntry:
        start, tail, _ = self._tail
        size = self._entry.size
        if number >= start:
            return IndexEntry(*self._entry.unpack_from(tail, (number - start) * size))
        return IndexEntry(*self._entry.unpack(self._file.get().read(size, number * size)))

    def append(self, key: int, value: int) -> None:
        """Add an entry behind all others. The caller sees to the order. Raises `OSError`; the entry was not added
        then."""
        if not self._grown:
            self._file.get().truncate(self.entries_max * self._entry.size)
            self._grown = True
        start, tail, keys = self._tail
        entry = self._entry.pack(key, value)
        is_full = self.entries + 1 - start == PAGE_ENTRIES
        if is_full or not self.entries:
            self._file.get().write(tail + entry, start * self._entry.size)
        tail += entry
        keys.append(key)
        self.entries += 1
        self.last = IndexEntry(key, value)
        if is_full:
            self._page = (start, tail, keys)
            self._tail = (self.entries, bytearray(), array("q"))

    def floor(self, key: int) -> IndexEntry | None:
        """The last entry whose key is at or below `key`."""
        return self.around(key)[0]

    def around(self, key: int) -> tuple[IndexEntry | None, IndexEntry | None]:
        """The last entry whose key is at or below `key`, and the one behind it, if that is at hand."""
        unpack, size = self._entry.unpack_from, self._entry.size
        page: Buffer
        keys: Sequence[int]
        start, page, keys = self._tail
        if not keys or keys[0] > key:
            if start == 0:
                return None, _new(IndexEntry, unpack(page, 0)) if keys else None
            page, keys = self._page_for(key, start // PAGE_ENTRIES)
        low = bisect_right(keys, key)
        below = _new(IndexEntry, unpack(page, (low - 1) * size)) if low else None
        return below, _new(IndexEntry, unpack(page, low * size)) if low < len(keys) else None

    def near(self, value: int) -> IndexEntry | None:
        """The last entry whose value is at or below `value`, if it is in the page that was searched last or is not yet
        full: nothing is read for it."""
        unpack, size = self._entry.unpack_from, self._entry.size
        for _, page, _ in (self._tail, self._page):
            count = len(page) // size
            if count and unpack(page, 0)[1] <= value:
                low = bisect_right(range(count), value, key=lambda number: int(unpack(page, number * size)[1]))
                if low < count or page is self._tail[1]:
                    return IndexEntry(*unpack(page, (low - 1) * size))
        return None

    def first_from(self, value: int) -> IndexEntry | None:
        """The first entry whose value is at or above `value`; values rise with the keys."""
        low = bisect_left(range(self.entries), value, key=lambda number: self.entry(number).value)
        return self.entry(low) if low < self.entries else None

    def ceiling(self, key: int) -> IndexEntry | None:
        """The first entry whose key is at or above `key`."""
        low = bisect_left(range(self.entries), key, key=lambda number: self.entry(number).key)
        return self.entry(low) if low < self.entries else None

    def _page_for(self, key: int, pages: int) -> tuple[Buffer, Sequence[int]]:
        """The whole page that holds the last entry at or below `key`, and its keys; the first one if there is none.

        Where one asks for the same page again, its keys are kept ready to be searched.
        """
        number, page, keys = self._page
        if keys is not None and keys[0] <= key <= keys[-1]:
            return page, keys
        unpack, size = self._entry.unpack_from, self._entry.size
        if page and unpack(page, 0)[0] <= key <= unpack(page, (PAGE_ENTRIES - 1) * size)[0]:
            keys = array("q", (fields[0] for fields in self._entry.iter_unpack(page)))
            self._page = (number, page, keys)
            return page, keys
        file, page_bytes = self._file.get(), PAGE_ENTRIES * size
        low, high = 0, pages
        while low < high:
            middle = (low + high) >> 1
            if unpack(file.read(size, middle * page_bytes))[0] <= key:
                low = middle + 1
            else:
                high = middle
        number = max(low - 1, 0)
        page = file.read(page_bytes, number * page_bytes)
        self._page = (number * PAGE_ENTRIES, page, None)
        return page, PackedKeys(page, self._entry)

    def save(self) -> None:
        """Write what has not reached the file yet."""
        start, tail, _ = self._tail
        if tail:
            self._file.get().write(bytes(tail), start * self._entry.size)

    def cut(self, value: int) -> None:
        """Remove the entries whose value is at or above `value`, also from the file, which then has no room for
        more."""
        self.save()
        kept = bisect_left(range(self.entries), value, key=lambda number: self.entry(number).value)
        self._file.get().truncate(kept * self._entry.size)
        self._open_at(kept)
        self._grown = False

    def trim(self) -> None:
        """Cut the file to its entries, as closed segments have it."""
        if self.entries >= 0 and self._grown:
            self.save()
            self._file.get().truncate(self.entries * self._entry.size)
            self._grown = False

    def flush(self) -> None:
        if self.entries >= 0:
            self.save()
        self._file.get().flush()
