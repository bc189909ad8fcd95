"""Records waiting to be sent: one queue of batches for each partition, and what a sender may take from it when.

Holds no socket and no clock; `now_s` is the loop's time. Producers append under `lock` from any thread, the sender
takes on its loop. Invariants, for each partition:

- Batches are taken in the order they were filled, and taken again, after a failure, in that same order.
- With idempotence a batch keeps producer id, epoch and sequence once it was sent, until it is acknowledged or is known
not
  to have been appended; only then may a new epoch number it anew.
- At most `MAX_IN_FLIGHT` batches are unacknowledged: what a broker remembers to recognise duplicates. The first batch
of an
  epoch flies alone, because a broker that does not know the producer yet would accept its successor first.
- While a batch waits to be sent again, nothing newer is sent, and it is sent only when nothing is in flight.
"""

import struct
import threading
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.records.batch import HEADER_SIZE, encode_batch, read_header, stamp
from moldau.records.rows import iterate

MAX_IN_FLIGHT = 5
LAST_EPOCH = 32767
RECORD_OVERHEAD_BYTES = 24
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_LOST_SEQUENCE = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
_PRODUCER_AT = 43
_PRODUCER = struct.Struct(">qhi")

Headers = Sequence[tuple[str, bytes | None]]


class BufferFull(MoldauError):
    """The producer holds as much as it may: wait until something is acknowledged."""


class Ack(NamedTuple):
    """Where a batch went; -1 where the broker did not say."""

    base_offset: int
    append_time_ms: int


class Parts(NamedTuple):
    """What a batch became that was too large for its topic: its first and its second half."""

    first: "Batch"
    second: "Batch"

    def holding(self, index: int) -> "tuple[Batch, int]":
        """The part that has the record of that place in the whole, and the record's place there."""
        if index < self.first.count:
            return self.first, index
        return self.second, index - self.first.count


class Identity(NamedTuple):
    """An idempotent producer."""

    producer_id: int
    epoch: int


class Batch:
    """Records of one partition that are sent, and acknowledged or not, together."""

    __slots__ = (
        "attempts",
        "count",
        "deadline_s",
        "due_s",
        "encoded",
        "identity",
        "order",
        "outcome",
        "rows",
        "sequence",
        "size",
    )

    def __init__(self, due_s: float, deadline_s: float):
        self.rows: list[tuple[bytes | None, bytes | None, int, Headers]] = []
        self.encoded: bytearray | None = None
        self.count = 0
        self.size = HEADER_SIZE
        self.due_s = due_s
        self.deadline_s = deadline_s
        self.order: tuple[int, ...] = ()
        self.attempts = 0
        self.identity: Identity | None = None
        self.sequence = -1
        self.outcome: Future[Ack | Parts] = Future()
        self.outcome.set_running_or_notify_cancel()  # whoever stops waiting for it does not cancel it

    def bytes_to_send(self, codec: int) -> bytearray:
        """The batch as it goes out, encoded once; stamped with identity and sequence."""
        if self.encoded is None:
            self.encoded = encode_batch(self.rows, codec=codec)
            self.rows = []
        if self.identity is not None:
            _PRODUCER.pack_into(self.encoded, _PRODUCER_AT, *self.identity, self.sequence)
            header = read_header(self.encoded)
            stamp(self.encoded, header.attributes, header.max_timestamp)
        return self.encoded


@dataclass
class PartitionQueue:
    """What waits for, and what is on its way to, one partition."""

    tp: TopicPartition
    waiting: deque[Batch] = field(default_factory=deque)
    again: list[Batch] = field(default_factory=list)
    in_flight: deque[Batch] = field(default_factory=deque)
    identity: Identity | None = None
    next_sequence: int = 0
    epoch_acknowledged: bool = False
    gap: bool = False
    renew: bool = False
    not_before_s: float = 0.0
    orders: int = 0

    def due_s(self, now_s: float, hurry: bool, idempotent: bool) -> float | None:
        """From when on the next batch may be taken; None while that depends on a reply or a record to come."""
        if self.again:
            return None if self.in_flight else self.not_before_s
        if not self.waiting:
            return None
        limit = MAX_IN_FLIGHT if self.epoch_acknowledged or not idempotent else 1
        if len(self.in_flight) >= limit:
            return None
        full = len(self.waiting) > 1 or hurry
        return self.not_before_s if full else max(self.waiting[0].due_s, self.not_before_s)

    def take(self, identity: Identity | None) -> Batch:
        """The next batch, numbered; it is in flight from now on."""
        if self.again:
            if self.renew and self.identity is not None and identity is not None:
                identity = identity if self.exhausted else Identity(self.identity.producer_id, self.identity.epoch + 1)
                self._begin_epoch(identity)
            batch = self.again.pop(0)
        else:
            batch = self.waiting.popleft()
            batch.order = (self.orders,)
            self.orders += 1
            if identity is not None:
                self._number(batch, self.identity or identity)
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def _number(self, batch: Batch, identity: Identity) -> None:
        self.identity = batch.identity = identity
        batch.sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.count) & 0x7FFFFFFF

    def acknowledged(self, batch: Batch) -> None:
        self.in_flight.remove(batch)
        if batch.identity == self.identity:
            self.epoch_acknowledged = True

    def failed(self, batch: Batch, code: ErrorCode, not_before_s: float) -> bool:
        """An attempt failed. Returns whether the batch will be sent again; if not, it has failed for good.

        A sequence that the broker does not expect was not appended. If an earlier batch is still to come, that is why;
        if an earlier one was given up, or the broker forgot the producer, everything unacknowledged goes out in a new
        epoch.
        """
        if code in _LOST_SEQUENCE and batch.sequence >= 0:
            if self.again or self.in_flight[0] is not batch:
                self._send_again(batch, self.not_before_s)
                return True
            if self.gap or code == ErrorCode.UNKNOWN_PRODUCER_ID:
                self.renew = True
                self._send_again(batch, 0.0)
                return True
        elif code.retriable:
            self._send_again(batch, not_before_s)
            return True
        self.in_flight.remove(batch)
        self.gave_up(batch)
        return False

    def split(self, batch: Batch, code: ErrorCode) -> Parts | None:
        """Put the halves of a batch that the broker finds too large in its place, if it has more than one record.

        It was not appended, so the halves share its sequences and nothing behind them has to be numbered anew.
        """
        if code not in _TOO_LARGE or batch.count < 2:
            return None
        rows = batch.rows or [(r.key, r.value, r.timestamp_ms, r.headers) for r in iterate(batch.encoded or b"")]
        middle = len(rows) // 2
        parts = Parts(Batch(batch.due_s, batch.deadline_s), Batch(batch.due_s, batch.deadline_s))
        for number, (part, start, stop) in enumerate(((parts[0], 0, middle), (parts[1], middle, len(rows)))):
            part.rows, part.count = rows[start:stop], stop - start
            part.size = batch.size * stop // len(rows) - batch.size * start // len(rows)
            part.order, part.attempts, part.identity = (*batch.order, number), batch.attempts, batch.identity
            part.sequence = batch.sequence + start & 0x7FFFFFFF if batch.sequence >= 0 else batch.sequence
            insort(self.again, part, key=lambda b: b.order)
        self.in_flight.remove(batch)
        self.not_before_s = 0.0
        return parts

    def gave_up(self, batch: Batch) -> None:
        """A batch failed for good, or its outcome will never be known: its successors' sequences may leave a gap."""
        self.gap = self.gap or batch.sequence >= 0

    @property
    def exhausted(self) -> bool:
        """Whether the producer id has no further epoch for this partition."""
        return self.identity is not None and self.identity.epoch >= LAST_EPOCH

    def _send_again(self, batch: Batch, not_before_s: float) -> None:
        self.in_flight.remove(batch)
        insort(self.again, batch, key=lambda b: b.order)
        self.not_before_s = not_before_s

    def _begin_epoch(self, identity: Identity) -> None:
        """Number everything anew: none of it can have been appended."""
        assert not self.in_flight
        self.identity, self.next_sequence, self.epoch_acknowledged, self.gap, self.renew = (
            identity,
            0,
            False,
            False,
            False,
        )
        for batch in self.again:
            self._number(batch, identity)


class Accumulator:
    """All queues of one producer, and how many bytes they hold."""

    def __init__(self, *, batch_bytes: int, linger_ms: int, buffer_bytes: int, delivery_timeout_ms: int):
        self.lock = threading.Lock()
        self.space = threading.Condition(self.lock)
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.held_bytes = 0
        self.hurry = False
        self.on_space: Callable[[], None] | None = None
        self._batch_bytes = batch_bytes
        self._linger_s = linger_ms / 1000
        self._buffer_bytes = buffer_bytes
        self._delivery_s = delivery_timeout_ms / 1000

    def append(
        self,
        tp: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        now_s: float,
    ) -> tuple[Batch, int, bool]:
        """Add a record: its batch, its place there, and whether the sender has to look. Call under `lock`.

        Raises `BufferFull`; a record larger than the whole buffer is refused with `KafkaError(MESSAGE_TOO_LARGE)`.
        """
        size = RECORD_OVERHEAD_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
        for name, content in headers:
            size += len(name) + (len(content) if content else 0) + 8
        queue = self.queues.get(tp)
        if queue is None:
            queue = self.queues[tp] = PartitionQueue(tp)
        batch = queue.waiting[-1] if queue.waiting else None
        opens = batch is None or batch.encoded is not None or batch.size + size > self._batch_bytes
        self._reserve(size + (HEADER_SIZE if opens else 0))
        if batch is None or opens:
            batch = Batch(now_s + self._linger_s, now_s + self._delivery_s)
            queue.waiting.append(batch)
        batch.rows.append((key, value, timestamp_ms, headers))
        batch.size += size
        batch.count += 1
        return batch, batch.count - 1, opens

    def append_encoded(self, tp: TopicPartition, encoded: bytearray, count: int, now_s: float) -> Batch:
        """Add a whole batch that was encoded elsewhere. Call under `lock`. Raises `BufferFull`."""
        self._reserve(len(encoded))
        queue = self.queues.get(tp)
        if queue is None:
            queue = self.queues[tp] = PartitionQueue(tp)
        batch = Batch(now_s, now_s + self._delivery_s)
        batch.encoded, batch.count, batch.size = encoded, count, len(encoded)
        queue.waiting.append(batch)
        return batch

    @property
    def pressing(self) -> bool:
        """Whether batches go out without lingering: someone waits for them, or the buffer fills up."""
        return self.hurry or self.held_bytes * 2 > self._buffer_bytes

    def take(self, queue: PartitionQueue, identity: Identity | None) -> Batch:
        """The queue's next batch; the queue goes to the end of the row, so that all have their turn. Call under
        `lock`."""
        self.queues[queue.tp] = self.queues.pop(queue.tp)
        return queue.take(identity)

    def _reserve(self, size: int) -> None:
        if size > self._buffer_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"a record of {size} bytes does not fit into the producer's buffer"
            )
        if self.held_bytes + size > self._buffer_bytes:
            raise BufferFull(f"the producer already holds {self.held_bytes} bytes that are not acknowledged")
        self.held_bytes += size

    def release(self, batch: Batch) -> None:
        """A batch is done with: give its bytes back and wake those who wait for them."""
        with self.lock:
            self.held_bytes -= batch.size
            self.space.notify_all()
        if self.on_space is not None:
            self.on_space()

    def outstanding(self) -> list[Batch]:
        """Every batch that is not acknowledged yet."""
        with self.lock:
            return [b for q in self.queues.values() for b in (*q.in_flight, *q.again, *q.waiting)]

    def expired(self, now_s: float) -> Iterable[tuple[PartitionQueue, Batch]]:
        """Take out the batches whose delivery took too long. Those in flight are left: their reply or time-out
        comes."""
        found: list[tuple[PartitionQueue, Batch]] = []
        with self.lock:
            for queue in self.queues.values():
                while queue.again and queue.again[0].deadline_s <= now_s:
                    found.append((queue, queue.again.pop(0)))
                while not queue.again and queue.waiting and queue.waiting[0].deadline_s <= now_s:
                    found.append((queue, queue.waiting.popleft()))
        return found
