"""Compacting one batch: deciding which records stay, and writing the batch that holds them. No files.

A record stays if it is the last of its key, in the offset map, or lies after the map's last offset; a tombstone (no
value) stays until its batch's delete horizon has passed, records of aborted transactions go, and so do records without
a key. Offsets never change: a batch keeps its base offset and last offset delta, its producer's id, epoch and sequence
and its leader epoch, whichever records are removed. A batch stays as a header alone where its last offset or sequence
is needed: for a producer's last batch, and at the end of a segment.

The delete horizon is the time from which tombstones, and markers whose transaction has no records left, may be removed.
The first cleaning that finds one writes the horizon into the batch (attribute bit 6) in place of the base timestamp,
and recomputes the records' deltas. A marker stays while the log has records of its transaction. Source: KIP-98,
KIP-534.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moldau.errors import KafkaError, MoldauError
from moldau.log.compaction.offset_map import OffsetMap
from moldau.log.transaction_index import AbortedTxn
from moldau.records import columns
from moldau.records.batch import (
    CODEC_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    read_marker,
    write_batch,
)
from moldau.records.sections import section_of

INT64_MAX: Final = (1 << 63) - 1
_section: Final = tuple.__new__
GROWTH_MAX: Final = 14
"""Bytes by which a record may grow when its timestamp delta changes."""


class Uncleanable(MoldauError):
    """The log holds bytes that are not valid batches: the cleaner must leave it as it is."""


class LastOfProducer(NamedTuple):
    """A producer's last batch, which must stay: the offset of its last batch of records, or -1 and the epoch of its
    last marker."""

    data_offset: int
    epoch: int


class CleanedTransactions:
    """The transactions that are open at the current position of a log read from front to back, and their outcomes."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, AbortedTxn]] = []
        self._aborting: dict[int, tuple[AbortedTxn, bool]] = {}
        self._committing: dict[int, None] = {}

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Add aborted transactions that end after the current position."""
        for one in aborted:
            heapq.heappush(self._coming, (one.first_offset, one))

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, aborted = heapq.heappop(self._coming)
            self._aborting.setdefault(aborted.producer_id, (aborted, False))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of records belongs to an aborted transaction."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header.last_offset)
        aborting = self._aborting.get(header.producer_id)
        if aborting is None:
            self._committing[header.producer_id] = None
            return False
        self._aborting[header.producer_id] = (aborting[0], True)
        return True

    def ends(self, header: BatchHeader, batch: Buffer) -> tuple[bool, AbortedTxn | None]:
        """Whether a control batch may be removed because no record of its transaction is left; if not and it aborted a
        transaction, also that transaction."""
        self._begin_up_to(header.last_offset)
        marker = read_marker(batch)
        if marker is None:
            return header.count == 0, None
        if marker.commits:
            known = header.producer_id in self._committing
            self._committing.pop(header.producer_id, None)
            return not known, None
        aborted, seen = self._aborting.pop(header.producer_id, (None, False))
        return not seen, aborted if seen else None


class CompactedBatch(NamedTuple):
    """The result for one batch."""

    batch: Buffer | None
    """None if the batch is removed."""
    aborted: AbortedTxn | None = None
    """An entry that the new transaction index needs."""


class Compactor:
    """Decides about one batch after another, starting with the log's first."""

    def __init__(
        self,
        offsets: OffsetMap,
        producers: Mapping[int, LastOfProducer],
        now_ms: int,
        delete_retention_ms: int,
    ):
        self.transactions = CleanedTransactions()
        self._offsets = offsets
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, INT64_MAX)

    def keep(self, header: BatchHeader, batch: memoryview, must_stay: bool) -> CompactedBatch:
        """Compact one whole batch; at least its header stays if it `must_stay`. Raises `Uncleanable`."""
        if not header.attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) and header.count:
            must_stay = must_stay or (header.producer_id >= 0 and self._is_last_of_producer(header))
            return CompactedBatch(self._filtered(header, batch, must_stay))
        aborted = None
        if header.is_control:
            is_over, aborted = self.transactions.ends(header, batch)
            gone = is_over and header.has_delete_horizon and header.base_timestamp <= self._now_ms
        else:
            is_over = gone = self.transactions.is_aborted(header)
        must_stay = must_stay or self._is_last_of_producer(header)
        if gone or not header.count:
            if not must_stay:
                return CompactedBatch(None, aborted)
            return CompactedBatch(batch if not header.count else empty(header), aborted)
        if header.is_control:
            if is_over and not header.has_delete_horizon:
                return CompactedBatch(self._all_with_horizon(header, batch), aborted)
            return CompactedBatch(batch, aborted)
        return CompactedBatch(self._filtered(header, batch, must_stay), aborted)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.data_offset >= 0:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _filtered(self, header: BatchHeader, batch: memoryview, must_stay: bool) -> Buffer | None:
        section = records_of(header, batch)
        chosen = bytearray(header.count)
        tombstones_stay = not header.has_delete_horizon or self._now_ms < header.base_timestamp
        kept, tombstones, size, largest, smallest = self._offsets.choose(section, tombstones_stay, chosen)
        if not kept:
            return empty(header) if must_stay else None
        shift = self._shift(header, smallest) if tombstones and not header.has_delete_horizon else None
        if kept == header.count and shift is None:
            return batch
        return _rewritten(header, section, chosen, (kept, size), largest, shift)

    def _shift(self, header: BatchHeader, smallest: int) -> int | None:
        """The milliseconds added to the timestamp deltas when the horizon replaces the base timestamp; None if a delta
        would exceed 64 bits, which leaves the batch without a horizon."""
        shift = header.base_timestamp - self._horizon_ms
        return shift if smallest + shift >= -INT64_MAX - 1 else None

    def _all_with_horizon(self, header: BatchHeader, batch: memoryview) -> Buffer:
        section = records_of(header, batch)
        largest = header.max_timestamp - header.base_timestamp
        shift = self._shift(header, min(largest, 0))
        if shift is None:
            return batch
        chosen = bytearray(b"\1" * header.count)
        return _rewritten(header, section, chosen, (header.count, section.stop - section.start), largest, shift)


def records_of(header: BatchHeader, batch: memoryview, start_offset: int = 0) -> columns.Section:
    """The records of one whole batch, inflated and measured; only those from `start_offset` on are selected. Raises
    `Uncleanable`."""
    base, last = header.base_offset, header.last_offset_delta
    try:
        if header.attributes & (CODEC_BITS | LOG_APPEND_TIME_BIT):
            section = section_of(batch, 0, header, start_offset)
        else:  # a short path for the common case: most batches are uncompressed and many are small
            low, base_timestamp = max(start_offset - base, 0), header.base_timestamp
            section = _section(
                columns.Section,
                (batch, HEADER_SIZE, len(batch), header.count, last, base, base_timestamp, None, low, last + 1),
            )
        columns.measure((section,))
    except KafkaError as error:
        raise Uncleanable(str(error)) from None
    return section


def _rewritten(
    header: BatchHeader,
    section: columns.Section,
    chosen: bytearray,
    kept: tuple[int, int],
    largest: int,
    shift: int | None,
) -> Buffer:
    """The batch with only the chosen records in it, `kept` of them (number and bytes); with a `shift` its base
    timestamp is the delete horizon."""
    count, size = kept
    out = bytearray(HEADER_SIZE + size + (GROWTH_MAX * count if shift else 0))
    del out[columns.copy_chosen(section, chosen, shift or 0, out, HEADER_SIZE) :]
    return write_batch(
        out,
        room=HEADER_SIZE,
        count=count,
        base_timestamp=header.base_timestamp - (shift or 0),
        max_timestamp=header.max_timestamp if header.log_append_time else header.base_timestamp + largest,
        codec=header.codec,
        attributes=header.attributes | (0 if shift is None else DELETE_HORIZON_BIT),
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        last_offset_delta=header.last_offset_delta,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


def empty(header: BatchHeader) -> Buffer:
    """The batch without its records."""
    return write_batch(
        bytearray(HEADER_SIZE),
        room=HEADER_SIZE,
        count=0,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        attributes=header.attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT),
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        last_offset_delta=header.last_offset_delta,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
