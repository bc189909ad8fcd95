"""The producers of a partition: each one's epoch, its last five batches, its open transaction. Pure.

It tells a new batch from a duplicate and from one that is out of order, and knows from which offset on something is
undecided; the log asks before it appends and reports after. Sequences count records, from 0 to 2**31 - 1 and then from
0 again. A producer nobody knows may begin anywhere: that is why lost state would be silent, and why it is rebuilt from
the log before anybody is served.

Rules, in this order, for a batch of a client:
    a known producer, the same epoch, the sequences of one of its last five batches    a duplicate, its offsets again
    an epoch below the known one                                                       INVALID_PRODUCER_EPOCH
    a larger epoch             the first sequence is 0, or                             OUT_OF_ORDER_SEQUENCE_NUMBER
    the same epoch             the first sequence is the last one + 1, or              OUT_OF_ORDER_SEQUENCE_NUMBER
    a transaction is open      the batch is part of it, or                             INVALID_TXN_STATE
A batch without sequences was written by a coordinator, and only its epoch counts. A transaction begins with a batch
that has the transactional bit and ends with a marker:
    a marker's epoch below the known one, or the same one while a transaction of
    version 2 (whose markers raise the epoch) is open                                  INVALID_PRODUCER_EPOCH
    a coordinator older than the one that wrote the last marker                        TRANSACTION_COORDINATOR_FENCED
An offset is unstable from the first record of a transaction on until its marker is below the high watermark.
Source: KIP-98, KIP-360, KIP-890, KIP-1228; what Kafka 4.3 answers.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from moldau.errors import ErrorCode
from moldau.log.producers.producer_state import (
    BATCHES_KEPT,
    NO_ENTRY,
    NO_TRANSACTION,
    SEQUENCE_MASK,
    BatchMetadata,
    ProducerStateEntry,
)
from moldau.log.producers.snapshot_entries import SnapshotEntries
from moldau.log.transaction_index import AbortedTxn
from moldau.names import Offset, VerificationGuard
from moldau.records.batch import CONTROL_BIT, HANDOVER, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader, Marker

NO_EPOCH: Final = -1
RAISES_EPOCH: Final = 2
"""The first transaction version whose markers raise the producer's epoch (KIP-890)."""


class Producers:
    """All producers of one partition, up to (not including) `end_offset`. `unsettled`: some offset may be unstable;
    `guards`: by producer id, those of transactions that are about to begin. `entries`: all producers as a snapshot
    holds them."""

    __slots__ = ("_ended", "_known", "_open", "end_offset", "entries", "guards", "unsettled")

    def __init__(self, known: Mapping[int, ProducerStateEntry] | None = None):
        self._known: dict[int, ProducerStateEntry] = dict(known or {})
        self.entries = SnapshotEntries(self._known)
        begun = (producer.transaction_start for producer in self._known.values())
        self._open = dict.fromkeys(sorted(first for first in begun if first != NO_TRANSACTION))
        """First offsets of open transactions, rising."""
        self._ended: dict[int, int] = {}
        """First offset -> the marker's, of those that ended lately."""
        self.unsettled = bool(self._open)
        self.guards: dict[int, VerificationGuard] = {}
        self.end_offset = Offset(0)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[tuple[int, ProducerStateEntry]]:
        """Those that are known now, and still are when their turn comes: others may have a turn in between. One tuple
        exists at a time: 300,000 at once would start full collections of garbage."""
        for producer_id in list(self._known):
            producer = self._known.get(producer_id)
            if producer is not None:
                yield producer_id, producer

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        return self._known.get(producer_id)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first record of the oldest transaction that is open, or whose end may not be committed yet."""
        firsts = [*self._ended, next(iter(self._open))] if self._open else self._ended
        return min(firsts) if firsts else None

    def settle(self, high_watermark: int) -> None:
        """Transactions whose markers are below the high watermark are as stable as they ever will be."""
        if self._ended:
            self._ended = {first: last for first, last in self._ended.items() if last >= high_watermark}
        self.unsettled = bool(self._open or self._ended)

    def last_stable_offset(self, high_watermark: Offset, log_start: Offset) -> Offset:
        """Up to where everything is committed and decided."""
        self.settle(high_watermark)
        unstable = self.first_unstable_offset
        return high_watermark if unstable is None else min(max(Offset(unstable), log_start), high_watermark)

    def keep_unstable(self, earlier: "Producers", end: int) -> None:
        """These were rebuilt at the offset `end` to take the place of `earlier` ones. Transactions with a marker below
        it are as stable as they were."""
        self._ended.update((first, marker) for first, marker in earlier._ended.items() if marker < end)
        self.unsettled = bool(self._open or self._ended)

    def check(self, header: BatchHeader) -> BatchMetadata | ErrorCode | None:
        """Check a client's batch: returns the batch that it duplicates, an error, or None if it may be appended."""
        producer = self._known.get(header.producer_id)
        if producer is None:
            return None
        first, epoch, batches = header.base_sequence, header.producer_epoch, producer.batches
        if epoch == producer.epoch:
            expected = (batches[-1].last_sequence + 1) & SEQUENCE_MASK if batches else 0
            if first == expected:
                if producer.transaction_start < 0 or header.attributes & TRANSACTIONAL_BIT:
                    return None
                return ErrorCode.INVALID_TXN_STATE
            if first < 0:
                return self._check_epoch_only(header, producer)
            delta = header.last_offset_delta
            last = (first + delta) & SEQUENCE_MASK
            for batch in batches:
                if batch.last_sequence == last and batch.offset_delta == delta:
                    return batch
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if first > 0 and producer.epoch != NO_EPOCH:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return self._check_epoch_only(header, producer)

    def _check_epoch_only(self, header: BatchHeader, producer: ProducerStateEntry) -> ErrorCode | None:
        """A batch whose epoch is right and whose sequence is, or has none: it may not be beside an open transaction."""
        if producer.transaction_start < 0 or header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
            return None
        return ErrorCode.INVALID_TXN_STATE

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> ErrorCode | None:
        """What is wrong with a marker that a coordinator wants to write; None if it is welcome. One that comes again
        after its transaction ended is."""
        producer = self._known.get(producer_id)
        if producer is None:
            return None
        late = transaction_version >= RAISES_EPOCH and producer.transaction_start != NO_TRANSACTION
        if epoch < producer.epoch or (late and epoch == producer.epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED if coordinator_epoch < producer.coordinator_epoch else None

    def _begin_epoch(self, header: BatchHeader, producer: ProducerStateEntry | None) -> ProducerStateEntry:
        """A producer of a batch that is in the log comes to be known, or enters another epoch."""
        if producer is None:
            producer = self._known[header.producer_id] = ProducerStateEntry(header.producer_epoch)
        producer.epoch = header.producer_epoch
        producer.batches.clear()
        return producer

    def appended(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Note a batch that is in the log: a client's, or one read back from it. Of a control batch, its `ended` is
        noted instead."""
        if header.attributes & CONTROL_BIT:
            return
        producer = self._known.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._begin_epoch(header, producer)
        delta, first = header.last_offset_delta, header.base_sequence
        last_sequence = (first + delta) & SEQUENCE_MASK if first >= 0 else NO_SEQUENCE
        producer.add(tuple.__new__(BatchMetadata, (last_sequence, base_offset + delta, delta, timestamp)))
        if header.attributes & TRANSACTIONAL_BIT and producer.transaction_start == NO_TRANSACTION:
            producer.transaction_start = base_offset
            self._open[base_offset] = None
            self.unsettled = True
            self.guards.pop(header.producer_id, None)
        if not producer.changed:
            self.entries.note(header.producer_id, producer)

    def aborted_by(self, producer_id: int, marker: Marker, offset: int) -> AbortedTxn | None:
        """The entry of the transaction index for a marker at `offset`; None if it aborts nothing."""
        producer = self._known.get(producer_id)
        if marker.commits or producer is None or producer.transaction_start == NO_TRANSACTION:
            return None
        first = producer.transaction_start
        stable = next((other for other in self._open if other != first), offset + 1)
        return AbortedTxn(producer_id, first, offset, stable)

    def ended(
        self, header: BatchHeader, marker: Marker, offset: int, timestamp: int, transaction_version: int = 0
    ) -> AbortedTxn | None:
        """Note a marker that is in the log at `offset`; returns what `aborted_by` does. The guard of the producer's
        next transaction stays: from version 2 on, that one has the marker's epoch, and the ended one an older epoch."""
        aborted = self.aborted_by(header.producer_id, marker, offset)
        producer = self._known.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._begin_epoch(header, producer)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        guard = self.guards.get(header.producer_id)
        if guard is not None and (transaction_version < RAISES_EPOCH or guard.epoch < header.producer_epoch):
            del self.guards[header.producer_id]
        first = producer.transaction_start
        if first != NO_TRANSACTION:
            producer.transaction_start = NO_TRANSACTION
            self._open.pop(first, None)
            self._ended[first] = offset
        self.entries.note(header.producer_id, producer)
        return aborted

    def hand_over(self) -> None:
        """Forget all producers but those with an open transaction: they were those of a mirror's source. Producers of
        this cluster may have the same ids."""
        kept = {producer_id: one for producer_id, one in self._known.items() if one.transaction_start >= 0}
        for producer in kept.values():
            producer.entry, producer.changed = NO_ENTRY, False
        self._known.clear()
        self._known.update(kept)
        self.entries = SnapshotEntries(self._known)

    def replay(self, header: BatchHeader, marker: Marker | None = None) -> AbortedTxn | None:
        """Note a batch read back from the log, in order of offsets. `marker`: that of a control batch."""
        aborted = None
        if marker is HANDOVER:
            self.hand_over()
        elif marker is not None:
            aborted = self.ended(header, marker, header.base_offset, header.max_timestamp)
        elif header.producer_id >= 0:
            self.appended(header, header.base_offset, header.max_timestamp)
        self.end_offset = Offset(header.next_offset)
        return aborted

    def complete(self, older: list[BatchHeader]) -> None:
        """Put back batches from before a snapshot, which holds only each producer's last one. `older`: in order of
        offsets."""
        for header in reversed(older):
            producer = self._known.get(header.producer_id)
            if producer is None or header.base_sequence < 0 or producer.epoch != header.producer_epoch:
                continue
            batches = producer.batches
            if not batches or len(batches) == BATCHES_KEPT or header.last_offset >= batches[0].base_offset:
                continue
            if (header.last_sequence + 1) & SEQUENCE_MASK == batches[0].base_sequence:
                delta = header.last_offset_delta
                batches.insert(0, BatchMetadata(header.last_sequence, header.last_offset, delta, header.max_timestamp))

    def expire(self, now_ms: int, expiration_ms: int) -> Iterator[None]:
        """Forget producers that have written nothing for `expiration_ms`, by the records' time, and have no open
        transaction. Yields after each producer: others may have a turn in between."""
        for producer_id, producer in self:
            if producer.transaction_start == NO_TRANSACTION and now_ms - producer.last_timestamp >= expiration_ms:
                self.entries.remove(producer_id)
                del self._known[producer_id]
            yield
        for producer_id, guard in list(self.guards.items()):
            if now_ms - guard.since_ms >= expiration_ms:
                self.guards.pop(producer_id)
