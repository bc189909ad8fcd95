"""The last offset of each key in a stretch of a log, in a buffer of fixed size, from which compaction decides.

A key is known by a hash of 128 bits, and an entry takes 24 bytes, as Kafka's does (`log.cleaner.dedupe.buffer.size` is
counted in these). The map fills up to its load factor; then the stretch ends, and the next cleaning continues from
there. This module never reads keys: the compiled `columns` do. A map serves one cleaning.
"""

from typing import Final

from moldau.errors import StorageError
from moldau.records import columns
from moldau.records.columns import Section

ENTRY_BYTES: Final = 24
SLOTS_MIN: Final = 8
LOAD_FACTOR_MIN: Final = 0.01


class OffsetMap:
    """`latest_offset` is the last offset that was read; the map decides nothing about records after it."""

    __slots__ = ("_secret", "_table", "entries", "entries_max", "latest_offset")

    def __init__(self, bytes_max: int, load_factor: float, records_max: int, secret: int):
        """`records_max`: at most this many keys are noted, so a small log needs no large buffer. `secret`: 128
        unpredictable bits, the hash's key."""
        load_factor = min(max(load_factor, LOAD_FACTOR_MIN), 1.0)
        slots_max = max(bytes_max // ENTRY_BYTES, SLOTS_MIN)
        slots = min(slots_max, max(int(records_max / load_factor) + 2, SLOTS_MIN))
        self.entries = 0
        self.entries_max = max(min(int(slots * load_factor), slots - 1), 1)
        self.latest_offset = -1
        self._secret = (secret & columns.HASH_MASK, secret >> 64 & columns.HASH_MASK)
        try:
            self._table = memoryview(bytearray(slots * ENTRY_BYTES)).cast("Q")
        except MemoryError:
            need = slots * ENTRY_BYTES
            raise StorageError(f"compaction needs {need} bytes at once: lower log.cleaner.dedupe.buffer.size") from None

    def __len__(self) -> int:
        return self.entries

    def note(self, section: Section, last_offset: int) -> bool:
        """Add the keys of a batch that ends with `last_offset`. False if not all of them fit: the map is then full, and
        ends before the first that did not."""
        self.entries, refused = columns.note_keys(section, self._table, self.entries, self.entries_max, self._secret)
        self.latest_offset = last_offset if refused < 0 else refused - 1
        return refused < 0

    def pass_over(self, last_offset: int) -> None:
        """Move `latest_offset` up to `last_offset` without adding a key."""
        self.latest_offset = max(self.latest_offset, last_offset)

    def choose(self, section: Section, keep_tombstones: bool, chosen: bytearray) -> tuple[int, int, int, int, int]:
        """Mark in `chosen` which records stay; see `columns.choose`."""
        return columns.choose(section, self._table, self.latest_offset, self._secret, keep_tombstones, chosen)
