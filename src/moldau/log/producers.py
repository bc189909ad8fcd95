"""What a partition knows of its idempotent producers: each one's epoch and its last five batches. Pure.

It tells a new batch from a duplicate and from one that is out of order, and nothing else; the log asks before it
appends and reports after. Sequences count records, from 0 to 2**31 - 1 and then from 0 again. A producer nobody knows
may begin anywhere: that is why lost state would be silent, and why it is rebuilt from the log before anybody is served.

Rules, in this order, for a batch of a client:
    a known producer, the same epoch, the sequences of one of its last five batches    a duplicate, its offsets again
    an epoch below the known one                                                       INVALID_PRODUCER_EPOCH
    a larger epoch             the first sequence is 0, or                             OUT_OF_ORDER_SEQUENCE_NUMBER
    the same epoch             the first sequence is the last one + 1, or              OUT_OF_ORDER_SEQUENCE_NUMBER
Source: KIP-98, KIP-360; what Kafka 4.3 answers.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from moldau.errors import ErrorCode
from moldau.names import Offset
from moldau.records.batch import BatchHeader

SEQUENCE_MASK: Final = 2**31 - 1
BATCHES_KEPT: Final = 5
"""A producer has at most so many requests in flight, so an older batch is never sent again."""
NO_EPOCH: Final = -1
NO_TRANSACTION: Final = -1


class Batch(NamedTuple):
    """A batch that was appended. Its first sequence and offset are the last ones less `offset_delta`."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK


class Producer:
    """One producer's state. `batches` holds the oldest first."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "transaction_start")

    def __init__(self, epoch: int):
        self.epoch = epoch
        self.batches: list[Batch] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_start = NO_TRANSACTION

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        if len(self.batches) > BATCHES_KEPT:
            del self.batches[0]
        self.last_timestamp = batch.timestamp


class Producers:
    """All producers of one partition, up to (not including) `end_offset`."""

    __slots__ = ("_known", "end_offset")

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}
        self.end_offset = Offset(0)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[tuple[int, Producer]]:
        return iter(self._known.items())

    def get(self, producer_id: int) -> Producer | None:
        return self._known.get(producer_id)

    def put(self, producer_id: int, producer: Producer) -> None:
        self._known[producer_id] = producer

    def clear(self, end_offset: int = 0) -> None:
        self._known.clear()
        self.end_offset = Offset(end_offset)

    def check(self, header: BatchHeader) -> Batch | ErrorCode | None:
        """What a client's batch is: a duplicate of the returned one, an error, or (None) welcome."""
        producer = self._known.get(header.producer_id)
        if producer is None:
            return None
        first, epoch, batches = header.base_sequence, header.producer_epoch, producer.batches
        if epoch == producer.epoch:
            expected = (batches[-1].last_sequence + 1) & SEQUENCE_MASK if batches else 0
            if first == expected:
                return None
            delta = header.last_offset_delta
            last = (first + delta) & SEQUENCE_MASK
            for batch in batches:
                if batch.last_sequence == last and batch.offset_delta == delta:
                    return batch
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if first and producer.epoch != NO_EPOCH else None

    def appended(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Note a batch that is in the log: a client's, or one read back from it."""
        producer = self._known.get(header.producer_id)
        if producer is None:
            producer = self._known[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        if header.is_control:
            producer.transaction_start = NO_TRANSACTION
            producer.last_timestamp = timestamp
            return
        delta = header.last_offset_delta
        last_sequence = (header.base_sequence + delta) & SEQUENCE_MASK
        producer.add(tuple.__new__(Batch, (last_sequence, base_offset + delta, delta, timestamp)))
        if header.is_transactional and producer.transaction_start == NO_TRANSACTION:
            producer.transaction_start = base_offset

    def replay(self, header: BatchHeader) -> None:
        """Note a batch read back from the log, in order of offsets."""
        if header.producer_id >= 0:
            self.appended(header, header.base_offset, header.max_timestamp)
        self.end_offset = Offset(header.next_offset)

    def complete(self, older: list[BatchHeader]) -> None:
        """Put back batches from before a snapshot, which holds only each producer's last one. `older`: in order of
        offsets."""
        for header in reversed(older):
            producer = self._known.get(header.producer_id)
            if producer is None or header.is_control or producer.epoch != header.producer_epoch:
                continue
            batches = producer.batches
            if not batches or len(batches) == BATCHES_KEPT or header.last_offset >= batches[0].base_offset:
                continue
            if (header.last_sequence + 1) & SEQUENCE_MASK == batches[0].base_sequence:
                delta = header.last_offset_delta
                batches.insert(0, Batch(header.last_sequence, header.last_offset, delta, header.max_timestamp))

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget who has written nothing for so long, by the records' time, and has no transaction open."""
        gone = [
            producer_id
            for producer_id, producer in self._known.items()
            if producer.transaction_start == NO_TRANSACTION and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self._known[producer_id]
