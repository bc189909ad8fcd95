"""Checks a segment's transaction index against its log, and tracks the transactions that are open at the segment's end.

Each entry must name an abort marker of its producer in this segment. Each abort marker of a producer with transactional
records in the log must have an entry; otherwise read_committed readers would be served aborted records. Compaction may
remove a marker with or without its entry, so an entry without its marker is not an error.
"""

from collections.abc import Iterator
from typing import Final

from moldau.files.inspection import control, reading
from moldau.files.legacy import LogEntry
from moldau.log.transaction_index import ENTRY, VERSION, AbortedTxn
from moldau.records.batch import BatchHeader
from moldau.runtime import File

ENTRIES_MAX: Final = 1 << 20
"""The largest number of entries that is read from one index."""


class OpenTransactions:
    """Open transactions: producer id -> first offset of its transactional records without a marker after them."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}


class TransactionIndexCheck:
    """The check of one index. `file` is None without an index, which is the same as an empty one."""

    def __init__(self, file: File | None, base_offset: int, next_base: int | None, open_transactions: OpenTransactions):
        self._open = open_transactions.first_offsets
        self._base, self._next_base = base_offset, next_base
        self._size = file.size() if file is not None else 0
        self._aborted: dict[int, AbortedTxn] = {}
        self._wrong = list(self._read(file)) if file is not None else []

    def _read(self, file: File) -> Iterator[str]:
        last, stable = self._base - 1, -1
        for number, (_, fields) in enumerate(reading.index_entries(file, self._size, ENTRY)):
            if number == ENTRIES_MAX:
                yield f"the index has more than {ENTRIES_MAX:,} entries"
                return
            version, aborted = fields[0], AbortedTxn(*fields[1:])
            if version != VERSION:
                yield f"entry {number} has the unknown version {version}; the only version is {VERSION}"
            elif aborted.producer_id < 0 or not 0 <= aborted.first_offset <= aborted.last_offset:
                yield f"entry {number} is impossible: {_shown(aborted)}"
            elif not self._base <= aborted.last_offset or (
                self._next_base is not None and aborted.last_offset >= self._next_base
            ):
                yield f"entry {number} belongs to another segment: {_shown(aborted)}"
            elif aborted.last_offset <= last or aborted.last_stable_offset < stable:
                yield f"entry {number} is not above the one before: {_shown(aborted)}"
            else:
                self._aborted[aborted.last_offset] = aborted
                last, stable = aborted.last_offset, aborted.last_stable_offset

    def batch(self, header: BatchHeader, entry: LogEntry) -> Iterator[str]:
        """Check the next batch of the segment; its checksum is right."""
        producer_id = header.producer_id
        if header.is_transactional and not header.is_control and header.count:
            self._open.setdefault(producer_id, header.base_offset)
        if not header.is_transactional and not self._aborted:
            return
        aborts = header.is_transactional and header.is_control and _aborts(entry)
        indexed = self._aborted.pop(header.last_offset, None)
        if indexed is not None and (not aborts or indexed.producer_id != producer_id) and header.count:
            yield f"the log has no abort of producer {indexed.producer_id} at offset {header.last_offset}"
        if header.is_transactional and header.is_control:
            first = self._open.pop(producer_id, None)
            if aborts and first is not None and (indexed is None or indexed.first_offset > first):
                what = f"the transaction of producer {producer_id} from offset {first} on"
                yield f"{what}, aborted at {header.last_offset}, has no entry"

    def end(self, log_end: int) -> Iterator[str]:
        yield from self._wrong
        for aborted in self._aborted.values():
            if aborted.last_offset >= log_end:
                yield f"an entry has an abort at offset {aborted.last_offset}, but the log ends at {log_end}"
        if self._size % ENTRY.size:
            yield f"the last {self._size % ENTRY.size} bytes are not a complete entry"


def _shown(aborted: AbortedTxn) -> str:
    first, last, stable = aborted.first_offset, aborted.last_offset, aborted.last_stable_offset
    return f"producer {aborted.producer_id}, offsets {first} to {last}, stable {stable}"


def _aborts(entry: LogEntry) -> bool:
    return any(control.marker(record.key) == control.ABORT for record in reading.records(entry))
