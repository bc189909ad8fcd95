"""A segment: a file of batches, the indexes into it, and a base offset that names all of them.

    00000000000000000000.log         whole record batches, one after the other (records/batch.py draws them)
    00000000000000000000.index       where batches are (indexes.py)
    00000000000000000000.timeindex   when they were written (indexes.py)
    00000000000000000000.txnindex    which transactions were aborted here, if any were (transaction_index.py)

Every offset in it is at or above the base offset and below the next segment's base. `size` counts whole batches; a file
that is longer holds a torn tail that recovery cuts off. Appending is not checked here: the log decides what comes in
and when to roll. Offsets in the indexes are relative to the base and fit 31 bits. Indexes are opened when they are
first needed, and built anew if they cannot be right. Opening a segment touches nothing but the size of its file.
Replies take its parts from `slicing`, which also notes where their readers go on.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from moldau.config import TopicConfig
from moldau.log.file_names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, file_name
from moldau.log.files import LazyFile, OpenFiles
from moldau.log.indexes import OFFSET_ENTRY, TIME_ENTRY, CorruptIndex, Index, IndexEntry
from moldau.log.transaction_index import TransactionIndex
from moldau.log.walking import SCAN_BYTES, LocatedBatch, Walk, first_batch
from moldau.names import Offset
from moldau.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, read_header
from moldau.runtime import Buffer, out_of_descriptors

RELATIVE_MAX: Final = 2**31 - 1
INTERVAL_BYTES_MAX: Final = 64 << 10
"""Entries of the offset index are at most this and one batch apart, even if `index.interval.bytes` is larger: this
bounds every walk over headers on the loop."""
NO_TIMESTAMP: Final = -1

logger = logging.getLogger(__name__)


class Segment:
    """One segment. `max_timestamp` and what belongs to it are known once `look` has looked. `stops`, `ahead` and
    `cannot_send` are kept by `slicing`."""

    __slots__ = (
        "_doubted", "_doubted_end", "_files", "_first_timestamp", "_flushed_size", "_has_room", "_loaded", "_right",
        "_since_entry", "aborted", "ahead", "base_offset", "cannot_send", "config", "created_ms", "deleted", "folder",
        "jitter_ms", "log", "max_timestamp", "max_timestamp_offset", "offsets", "size", "stops", "times",
    )  # fmt: skip

    def __init__(self, folder: Path, base_offset: int, config: TopicConfig, files: OpenFiles, size: int):
        self.folder = folder
        self.base_offset = base_offset
        self.config = config
        self.size = size
        self.log = LazyFile(folder / file_name(base_offset, LOG_SUFFIX), files)
        index_bytes = config.segment_index_bytes
        self.offsets = Index(LazyFile(folder / file_name(base_offset, INDEX_SUFFIX), files), OFFSET_ENTRY, index_bytes)
        self.times = Index(LazyFile(folder / file_name(base_offset, TIME_INDEX_SUFFIX), files), TIME_ENTRY, index_bytes)
        self.aborted = TransactionIndex(folder / file_name(base_offset, TRANSACTION_INDEX_SUFFIX), base_offset, files)
        self.created_ms = 0
        self.jitter_ms = 0
        self.deleted = False
        self.stops: dict[int, int] = {}
        """Where readers at the tail stopped: offset -> position."""
        self.ahead: dict[int, LocatedBatch] | None = None
        """The batches that readers go on with, by base offset; most segments have no such readers."""
        self.cannot_send: Callable[[OSError], None] | None = None
        """Called if a slice of the file cannot be sent."""
        self._flushed_size = -1
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = -1
        self._files = files
        self._since_entry = 0
        self._first_timestamp: int | None = None
        self._loaded = False
        self._doubted = self._doubted_end = False
        self._right: tuple[IndexEntry | None, IndexEntry | None] = (None, None)
        self._has_room = False

    @classmethod
    def create(
        cls, folder: Path, base_offset: int, config: TopicConfig, files: OpenFiles, now_ms: int, jitter_ms: int
    ) -> "Segment":
        """An empty segment with new files; with `preallocate` the log file has its full size from the start."""
        segment = cls(folder, base_offset, config, files, 0)
        segment.created_ms = now_ms
        segment.jitter_ms = jitter_ms
        is_new = not files.disk.exists(segment.log.path)
        try:
            file = segment.log.create()
            file.truncate(0)
            if config.preallocate:
                file.truncate(config.segment_bytes)
                segment._has_room = True
            segment.offsets.create()
            segment.times.create()
        except OSError as error:
            # The log goes on without this segment: recovery would cut it off at the base offset of a file left behind.
            if is_new and out_of_descriptors(error):
                segment.remove()
            raise
        segment._loaded = True
        return segment

    def look(self) -> None:
        """Make the indexes ready, and know the largest timestamp: once, before anything needs them."""
        if self._loaded:
            return
        try:
            self.offsets.load(0, max(self.size - 1, 0))
            self.times.load(0, RELATIVE_MAX)
        except (CorruptIndex, FileNotFoundError):
            self.rebuild_indexes()
            return
        # The time index reaches at least as far as the offset index (`_add_entries`); only batches behind that may have
        # larger timestamps.
        last = self.times.last
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last.key, self.base_offset + last.value
        position = self.offsets.last.value if self.offsets.last else 0
        self._since_entry = 0
        for batch in self.walk(position):
            header = batch.header
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
            self._since_entry += header.batch_length + LOG_OVERHEAD
        # `load` has compared the ends of the files alone: entries in between are checked when they are used.
        self._doubted = self._doubted_end = self._loaded = True

    def has_time(self, entry: IndexEntry) -> bool:
        """Whether an entry of the time index is right: one that was found in the file may have been damaged there."""
        if not self._doubted:
            return True
        batch = self.find(self.base_offset + entry.value)
        return batch is not None and batch.header.max_timestamp == entry.key

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the batches, trim and flush them: recovery may never read this segment again."""
        try:
            self.begin_rebuild()
            for batch in self.walk(0):
                self.index(batch.header, batch.position)
            self.close()
            self.offsets.flush()
            self.times.flush()
        except OSError:
            # Half an index must not pass for a whole one: `look` finds that, and begins again.
            self._loaded = False
            raise

    def begin_rebuild(self) -> None:
        """Empty both indexes; `index` is then called for every batch of the file, in order."""
        self._doubted = self._doubted_end = False
        self._right = (None, None)
        self.offsets.create()
        self.times.create()
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, -1
        self._since_entry = 0
        self._loaded = True

    def index(self, header: BatchHeader, position: int) -> None:
        """Note a batch that is in the file at `position`."""
        size = header.batch_length + LOG_OVERHEAD
        last_offset, max_timestamp = header.last_offset, header.max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self._since_entry > INTERVAL_BYTES_MAX or self._since_entry > self.config.index_interval_bytes:
            self.offsets.append(last_offset - self.base_offset, position)
            self._note_time()
            self._since_entry = 0
        self._since_entry += size

    def _note_time(self) -> None:
        # Timestamps need not rise, but the keys of an index must: only a new largest one gets an entry.
        last = self.times.last
        if self.max_timestamp > (last.key if last is not None else NO_TIMESTAMP):
            self.times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write one batch, whose offsets are in it, at the end."""
        if not self._loaded:
            self.look()
        position, size = self.size, len(batch)
        (self.log.file or self.log.get()).write(batch, position)
        # Not before the write: a batch that could not be written is not part of the segment.
        self.size = position + size
        if position == 0:
            self._first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self._since_entry > INTERVAL_BYTES_MAX or self._since_entry > self.config.index_interval_bytes:
            self._add_entries(last_offset, position)
        self._since_entry += size

    def _add_entries(self, last_offset: int, position: int) -> None:
        """Note the batch at a position, which was just written, in both indexes."""
        try:
            # Times first, so that no entry of the offset index goes without the times before it (see `look`).
            self._note_time()
            self.offsets.append(last_offset - self.base_offset, position)
            self._since_entry = 0
        except OSError as error:
            # The batch is in the log, and must not be refused: a later one gets the entry.
            if not out_of_descriptors(error):
                raise

    def append_run(self, data: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Write batches that follow each other at the end, with one write. `headers`: of the batches in `data`."""
        position = self.size
        self.log.get().write(data, position)
        self.size = position + len(data)
        if position == 0:
            self._first_timestamp = headers[0].max_timestamp
        for header in headers:
            size, last_offset = header.size, header.last_offset
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, last_offset
            if self._since_entry > min(INTERVAL_BYTES_MAX, self.config.index_interval_bytes):
                self._add_entries(last_offset, position)
            self._since_entry += size
            position += size

    def fitting(self, headers: Sequence[BatchHeader], now_ms: int) -> int:
        """How many of these batches, which follow each other, fit in before the next one needs a new segment."""
        size, age_max_ms = 0, self.config.segment_ms - self.jitter_ms
        for count, header in enumerate(headers):
            last_offset, max_timestamp = header.last_offset, header.max_timestamp
            if self.is_full(size + header.size, last_offset, max_timestamp, now_ms):
                return count
            if count and (
                # Each batch may take an entry of each index.
                self.offsets.entries + count >= self.offsets.entries_max
                or self.times.entries + count >= self.times.entries_max - 1
                # `is_full` does not know the first time of a segment that is still empty.
                or (not self.size and max_timestamp - headers[0].max_timestamp > age_max_ms)
            ):
                return count
            size += header.size
        return len(headers)

    def is_full(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether the next batch belongs into a new segment: by size, offset, index or time."""
        if self.size > self.config.segment_bytes - size or last_offset - self.base_offset > RELATIVE_MAX:
            return True
        if not self._loaded:
            self.look()
        # `close` adds a last entry to the time index, which needs room.
        if self.offsets.entries >= self.offsets.entries_max or self.times.entries >= self.times.entries_max - 1:
            return True
        # A new segment would be as empty: no batch is too old for it.
        if not self.size:
            return False
        first = self._first_timestamp
        if first is None:
            first = self._first_timestamp = self.header_at(0).max_timestamp
        # By the records' time, as retention deletes by that (KIP-33); by the clock where they have none.
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return waited_ms > self.config.segment_ms - self.jitter_ms

    def header_at(self, position: int) -> BatchHeader:
        return read_header(self.log.get().read(HEADER_SIZE, position))

    def walk(self, position: int, end: int | None = None) -> Walk:
        """The batches from `position` on, by their headers alone."""
        return Walk(self.log, position, self.size if end is None else end)

    def find(self, offset: int) -> LocatedBatch | None:
        """The batch that holds `offset`, or the first one behind it; None if all batches end before `offset`. Raises
        `OSError`."""
        # The batch was found ahead, when the slice before it was sent.
        if self.ahead and (ahead := self.ahead.pop(offset, None)) is not None:
            return ahead
        if not self._loaded:
            self.look()
        # A reader at the tail stopped at this offset, and something was appended since then.
        stop = self.stops.get(offset)
        if stop is not None and stop < self.size:
            header = self.header_at(stop)
            if header.base_offset == offset:
                return LocatedBatch(stop, header)
        # The batch lies behind the last index entry at or below the offset. A damaged index is rebuilt, and read again.
        entry, behind = self.offsets.around(offset - self.base_offset)
        position = entry.value if entry is not None else 0
        if self._doubted and not self.is_right(entry):
            return self.find(offset)
        # Batches larger than a scan have an entry each: the next entry is that of the batch itself, or of the next one.
        if behind is not None and behind.value - position > SCAN_BYTES:
            if self._doubted and not self.is_right(behind):
                return self.find(offset)
            header = self.header_at(behind.value)
            if header.base_offset <= offset:
                return LocatedBatch(behind.value, header)
        return first_batch(self.log.file or self.log.get(), position, self.size, offset)

    def walk_start(self, offset: int) -> int:
        """Where the last batch with an index entry begins that does not end behind `offset`; the file's start if there
        is none. The batch of `offset` is at most one batch and `INTERVAL_BYTES_MAX` away."""
        entry = self.offsets.floor(offset - self.base_offset)
        if self._doubted and not self.is_right(entry):
            entry = self.offsets.floor(offset - self.base_offset)
        return entry.value if entry is not None else 0

    def walk_back(self, entries: int) -> int:
        """The position in the index entry that is this many from the end; the file's start if there are fewer."""
        self.look()
        number = self.offsets.entries - entries
        if number <= 0:
            return 0
        entry = self.offsets.entry(number)
        return entry.value if self.is_right(entry) else self.walk_back(entries)

    def is_right(self, entry: IndexEntry | None) -> bool:
        """Whether an entry of the offset index matches the batch at its position; if not, the index is rebuilt. The
        last two entries that matched are remembered. Raises `OSError`."""
        if entry is None or not self._doubted or entry in self._right:
            return True
        if 0 <= entry.value <= self.size - HEADER_SIZE:
            header = self.header_at(entry.value)
            # At most, since Kafka may note batches that were appended together once: where the first one begins, and
            # the offset that the last one ends at.
            within = header.base_offset - self.base_offset
            if header.magic == MAGIC and 0 <= within <= within + header.last_offset_delta <= entry.key:
                self._right = (self._right[-1], entry)
                return True
        logger.warning("%s does not match its log; it is rebuilt", self.offsets.file.path)
        self.rebuild_indexes()
        return False

    def next_offset(self) -> Offset:
        """The offset behind the last batch, found from the last index entry on."""
        self.look()
        end = self.base_offset
        for batch in self.walk(self.offsets.last.value if self.offsets.last else 0):
            end = batch.header.next_offset
        return Offset(end)

    def largest_timestamp(self) -> int:
        """The largest record timestamp; when the file was written if its records have none."""
        self.look()
        # Retention deletes by this timestamp, so the entry that it comes from is checked first.
        if self._doubted_end:
            self._doubted_end = False
            if self.times.last is not None and not self.has_time(self.times.last):
                self.rebuild_indexes()
        return self.max_timestamp if self.max_timestamp >= 0 else self._files.disk.modified_ms(self.log.path)

    def close(self) -> None:
        """No more appends: give back what was only made room for, complete and trim the indexes."""
        if self._has_room:
            self.log.get().truncate(self.size)
            self._has_room = False
        # Nothing was appended to a segment that was not looked at: its indexes are as they were closed.
        if self._loaded:
            if self.max_timestamp >= 0:
                self._note_time()
            self.offsets.trim()
            self.times.trim()

    @property
    def flushed(self) -> bool:
        """Whether a power loss would change none of its files."""
        return self._flushed_size == self.size

    def assume_flushed(self) -> None:
        """It was: below the recovery point, before a clean stop, or with its whole file system."""
        self._flushed_size = self.size

    def flush(self, active: bool) -> None:
        """fsync. The active segment's offset and time index may wait: a wrong one is detected and rebuilt. A wrong
        transaction index could not be detected, so it is flushed."""
        size = self.size
        self.log.get().flush()
        self.aborted.flush()
        if not active:
            self.offsets.flush()
            self.times.flush()
            self._flushed_size = size

    def let_go(self) -> None:
        for lazy in (self.log, self.offsets.file, self.times.file, self.aborted.file):
            lazy.let_go()

    def remove(self) -> None:
        """Remove all its files, at once: nothing is in them that counts. Raises `OSError`."""
        self.let_go()
        for lazy in (self.log, self.offsets.file, self.times.file, self.aborted.file):
            self._files.disk.remove(lazy.path)

    def cut(self, position: int, end_offset: int) -> "Segment":
        """Remove the batches from a position on, which are those at or behind `end_offset`, also from the indexes, and
        flush that. Returns the segment that takes this one's place: readers that still hold this one see that it is
        gone. Raises `OSError`."""
        self.look()
        self.offsets.cut(position)
        self.times.cut(end_offset - self.base_offset)
        self.aborted.truncate(end_offset)
        file = self.log.get()
        file.truncate(position)
        file.flush()
        self.aborted.flush()
        # Its readers may be sending what was cut off: to them this segment is gone, and that is not damage.
        self.deleted = True
        self.let_go()
        left = Segment(self.folder, self.base_offset, self.config, self._files, position)
        left.aborted.entries = self.aborted.entries
        left.created_ms, left.jitter_ms = self.created_ms, self.jitter_ms
        return left

    def truncate(self, position: int) -> None:
        """Cut the file at a batch's start, in recovery: the caller rebuilds the indexes."""
        self.log.get().truncate(position)
        self.size = position
        self._flushed_size = -1
        self.stops.clear()
        self.ahead = None
        if position == 0:
            self._first_timestamp = None
