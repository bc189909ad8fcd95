"""Whether a segment's transaction index agrees with its log, and what of transactions is open behind it.

An entry names the marker that aborted a transaction: in this segment, of that producer. And an abort marker of a
producer whose transactional records are in the log has an entry, or readers of committed records would be served what
was aborted. Compaction may take the marker away, with its entry or without, so an entry whose marker is gone is sane.
"""

from collections.abc import Iterator
from typing import Final

from moldau.files.inspection import control, reading
from moldau.files.legacy import LogEntry
from moldau.log.transaction_index import ENTRY, VERSION, AbortedTxn
from moldau.records.batch import BatchHeader
from moldau.runtime import File

ENTRIES_MAX: Final = 1 << 20
"""Of one index: a larger one is none, and is not read to its end."""


class OpenTransactions:
    """Producers with transactional records and no marker behind them: producer id -> first offset that was seen."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}


class TransactionIndexCheck:
    """`file` is None where there is no index, which is as good as an empty one."""

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
                yield f"it has more than {ENTRIES_MAX:,} entries"
                return
            version, aborted = fields[0], AbortedTxn(*fields[1:])
            if version != VERSION:
                yield f"entry {number} is of version {version}, and there is only {VERSION}"
            elif aborted.producer_id < 0 or not 0 <= aborted.first_offset <= aborted.last_offset:
                yield f"entry {number} is impossible: {_shown(aborted)}"
            elif not self._base <= aborted.last_offset or (
                self._next_base is not None and aborted.last_offset >= self._next_base
            ):
                yield f"entry {number} is of another segment: {_shown(aborted)}"
            elif aborted.last_offset <= last or aborted.last_stable_offset < stable:
                yield f"entry {number} does not rise: {_shown(aborted)}"
            else:
                self._aborted[aborted.last_offset] = aborted
                last, stable = aborted.last_offset, aborted.last_stable_offset

    def batch(self, header: BatchHeader, entry: LogEntry) -> Iterator[str]:
        """A batch of the segment whose checksum holds."""
        producer_id = header.producer_id
        if header.is_transactional and not header.is_control and header.count:
            self._open.setdefault(producer_id, header.base_offset)
        if not header.is_transactional and not self._aborted:
            return
        aborts = header.is_transactional and header.is_control and _aborts(entry)
        indexed = self._aborted.pop(header.last_offset, None)
        if indexed is not None and (not aborts or indexed.producer_id != producer_id) and header.count:
            yield f"no transaction of producer {indexed.producer_id} is aborted at offset {header.last_offset}"
        if header.is_transactional and header.is_control:
            first = self._open.pop(producer_id, None)
            if aborts and first is not None and (indexed is None or indexed.first_offset > first):
                what = f"the transaction of producer {producer_id} from offset {first} on"
                yield f"{what}, aborted at {header.last_offset}, is not in it"

    def end(self, log_end: int) -> Iterator[str]:
        yield from self._wrong
        for aborted in self._aborted.values():
            if aborted.last_offset >= log_end:
                yield f"it knows of an end at offset {aborted.last_offset}, and the log ends at {log_end}"
        if self._size % ENTRY.size:
            yield f"{self._size % ENTRY.size} bytes at its end are no whole entry"


def _shown(aborted: AbortedTxn) -> str:
    first, last, stable = aborted.first_offset, aborted.last_offset, aborted.last_stable_offset
    return f"producer {aborted.producer_id}, offsets {first} to {last}, stable {stable}"


def _aborts(entry: LogEntry) -> bool:
    return any(control.marker(record.key) == control.ABORT for record in reading.records(entry))
