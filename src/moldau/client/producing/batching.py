"""Records waiting to be sent: one queue of batches for each partition, and the rules for when a batch may be sent.

The module holds no socket and no clock; `now_s` is the loop's time. Producers append under `lock` from any thread, or
to a batch that is open already without it (`records/columns/filling`); the sender seals batches and takes them on its
loop. Invariants, for each partition:

- Batches are sent in the order they were filled. After a failure they are sent again in the same order.
- With idempotence, a batch that was sent keeps its producer id, epoch and sequence until it is acknowledged or known
  not to have been appended. Only then may it get a new epoch and sequence.
- At most `in_flight_max` batches are unacknowledged. With idempotence that is at most 5: a broker remembers five
  batches of a producer to recognise duplicates. The first batch of an epoch is sent alone, because a broker that does
  not know the producer yet would accept a later batch first.
- A batch that waits to be sent again blocks newer batches, and is sent only when nothing is in flight.
"""

import contextlib
import struct
import threading
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.client.producing.outcome import Outcome
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.records.batch import HEADER_SIZE, NO_PRODUCER_ID, encode_batch, read_header, stamp, write_batch
from moldau.records.columns import CALLBACK_BYTES, NO_HEADERS, RECORD_SIZE_MAX, OpenBatch, header_block
from moldau.records.rows import iterate

MAX_IN_FLIGHT = 5
"""The default of `max.in.flight.requests.per.connection`."""
LAST_EPOCH = 32767
FIRST_BYTES = 1024
"""The memory of a new batch; it grows fourfold until it has `batch.size`."""
TABLES_BYTES = 8 * 1024 * 1024
"""Batches of tables are encoded no further ahead of the broker: memory that is used again costs less than fresh one."""
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_LOST_SEQUENCE = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
_PRODUCER_AT = 43
_PRODUCER = struct.Struct(">qhi")

Headers = Sequence[tuple[str, bytes | None]]


class BufferFull(MoldauError):
    """The producer's buffer is full: wait until a batch is acknowledged. `record` is what did not fit, as the arguments
    of the call to repeat."""

    record: tuple[Any, ...] = ()


class Ack(NamedTuple):
    """The broker's acknowledgement of a batch; -1 in fields that the broker did not fill."""

    base_offset: int
    append_time_ms: int


class Parts(NamedTuple):
    """The two halves of a batch that was split because it was too large for its topic."""

    first: "Batch"
    second: "Batch"

    def holding(self, index: int) -> "tuple[Batch, int]":
        """The half that holds the record at `index` of the whole batch, and the record's index in that half."""
        if index < self.first.count:
            return self.first, index
        return self.second, index - self.first.count


class Identity(NamedTuple):
    """The producer id and epoch of an idempotent producer."""

    producer_id: int
    epoch: int


NOBODY = Identity(NO_PRODUCER_ID, -1)


class Batch(OpenBatch):
    """Records of one partition that are sent in one piece and succeed or fail together. `held` is the memory that is
    reserved for them."""

    __slots__ = (
        "attempts",
        "deadline_s",
        "due_s",
        "encoded",
        "held",
        "identity",
        "order",
        "outcome",
        "reusable",
        "seen",
        "sequence",
        "stamped",
        "tp",
    )

    def __init__(self, tp: TopicPartition, due_s: float, deadline_s: float, capacity: int = 0):
        super().__init__(HEADER_SIZE, capacity)
        self.tp = tp
        self.encoded: bytearray | None = None
        self.held = capacity
        self.due_s = due_s
        self.deadline_s = deadline_s
        self.order: tuple[int, ...] = ()
        self.attempts = 0
        self.identity: Identity | None = None
        self.sequence = -1
        self.stamped: tuple[Identity | None, int] | None = None
        self.seen: set[int] | None = None
        self.reusable = False
        self.outcome = Outcome()

    @classmethod
    def of_encoded(cls, tp: TopicPartition, due_s: float, deadline_s: float, encoded: bytearray, count: int) -> "Batch":
        """A batch that is encoded already; its checksum need not be right."""
        batch = cls(tp, due_s, deadline_s)
        batch.seal()
        batch.encoded, batch.count, batch.held = encoded, count, len(encoded)
        return batch

    @property
    def size(self) -> int:
        """Its bytes, before compression where it is not encoded yet."""
        size: int = self.filled if self.encoded is None else len(self.encoded)
        return size

    def saw(self, index: int) -> None:
        """Note that the caller of the record at `index` knows that it failed."""
        if self.seen is None:
            self.seen = set()
        self.seen.add(index)

    @property
    def unseen(self) -> int:
        """The number of records of which no caller knows that they failed."""
        count: int = self.count
        return count - len(self.seen or ())

    def bytes_to_send(self, codec: int, attributes: int = 0) -> bytearray:
        """The batch's bytes for the Produce request, encoded on the first call and stamped with producer id, epoch and
        sequence. `attributes` are bits of the header that are set beside the batch's own."""
        if self.encoded is None:
            self.encoded = write_batch(
                self.taken(),
                count=self.count,
                base_timestamp=self.base_timestamp,
                max_timestamp=self.max_timestamp,
                codec=codec,
                attributes=attributes,
                producer_id=(self.identity or NOBODY).producer_id,
                producer_epoch=(self.identity or NOBODY).epoch,
                base_sequence=self.sequence,
                room=HEADER_SIZE,
            )
            self.stamped = self.identity, self.sequence
        elif self.stamped != (self.identity, self.sequence):
            _PRODUCER.pack_into(self.encoded, _PRODUCER_AT, *(self.identity or NOBODY), self.sequence)
            header = read_header(self.encoded)
            stamp(self.encoded, header.attributes | attributes, header.max_timestamp)
            self.stamped = self.identity, self.sequence
        return self.encoded


@dataclass
class PartitionQueue:
    """The waiting batches and the batches in flight of one partition."""

    tp: TopicPartition
    in_flight_max: int = MAX_IN_FLIGHT
    may_renew: bool = True
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
        """The time from which the next batch may be sent; None while that depends on a reply or on another record."""
        if self.again:
            return None if self.in_flight else self.not_before_s
        if not self.waiting:
            return None
        limit = self.in_flight_max if self.epoch_acknowledged or not idempotent else 1
        if len(self.in_flight) >= limit:
            return None
        full = len(self.waiting) > 1 or hurry
        return self.not_before_s if full else max(self.waiting[0].due_s, self.not_before_s)

    def take(self, identity: Identity | None) -> Batch:
        """Remove and return the next batch, with its sequence set; from now on it is in flight."""
        if self.again:
            if self.renew and self.identity is not None and identity is not None:
                identity = identity if self.exhausted else Identity(self.identity.producer_id, self.identity.epoch + 1)
                self._begin_epoch(identity)
            batch = self.again.pop(0)
        else:
            batch = self.waiting.popleft()
            batch.seal()
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

    def failed(self, batch: Batch, code: ErrorCode, not_before_s: float, may_retry: bool = True) -> bool:
        """Record a failed attempt; `may_retry` says whether the batch has attempts left. Returns whether the batch will
        be sent again; if not, it has failed for good.

        OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID mean that the batch was not appended. If an earlier batch
        is still unacknowledged, that is the cause. If an earlier batch was given up, or the broker has forgotten the
        producer, all unacknowledged batches are sent in a new epoch; in a transaction (`may_renew` is false) they fail,
        because only the coordinator gives epochs to a transactional id.
        """
        if code in _LOST_SEQUENCE and batch.sequence >= 0:
            if self.in_flight[0] is not batch or (self.again and self.again[0].order < batch.order):
                self._send_again(batch, self.not_before_s)
                return True
            if self.may_renew and (self.gap or code == ErrorCode.UNKNOWN_PRODUCER_ID):
                self.renew = True
                self._send_again(batch, 0.0)
                return True
        elif code.retriable and may_retry:
            self._send_again(batch, not_before_s)
            return True
        self.in_flight.remove(batch)
        self.gave_up(batch)
        return False

    def split(self, batch: Batch, code: ErrorCode) -> Parts | None:
        """If the broker refused a batch as too large, replace it by its two halves; None if it has only one record or
        failed for another reason.

        The batch was not appended, so the halves share its sequences and later batches keep theirs.
        """
        if code not in _TOO_LARGE or batch.count < 2:
            return None
        encoded = batch.bytes_to_send(0)
        rows = [(r.key, r.value, r.timestamp_ms, r.headers) for r in iterate(encoded)]
        middle, codec = len(rows) // 2, read_header(encoded).codec
        halves = (rows[:middle], 0, middle), (rows[middle:], middle, len(rows))
        parts = Parts(
            *(
                Batch.of_encoded(batch.tp, batch.due_s, batch.deadline_s, encode_batch(half, codec=codec), len(half))
                for half, *_ in halves
            )
        )
        for number, (part, (_, start, stop)) in enumerate(zip(parts, halves, strict=True)):
            part.held = batch.held * stop // len(rows) - batch.held * start // len(rows)
            part.callbacks, part.timestamps = batch.callbacks[start:stop], batch.timestamps[start:stop]
            part.order, part.attempts, part.identity = (*batch.order, number), batch.attempts, batch.identity
            part.outcome.loop_thread = batch.outcome.loop_thread
            part.sequence = batch.sequence + start & 0x7FFFFFFF if batch.sequence >= 0 else batch.sequence
            insort(self.again, part, key=lambda b: b.order)
        self.in_flight.remove(batch)
        self.not_before_s = 0.0
        return parts

    def gave_up(self, batch: Batch) -> None:
        """Note that a batch failed for good or that its outcome stays unknown: later sequences may now leave a gap."""
        self.gap = self.gap or batch.sequence >= 0

    @property
    def exhausted(self) -> bool:
        """Whether the producer id has used its last epoch in this partition."""
        return self.identity is not None and self.identity.epoch >= LAST_EPOCH

    def _send_again(self, batch: Batch, not_before_s: float) -> None:
        self.in_flight.remove(batch)
        insort(self.again, batch, key=lambda b: b.order)
        self.not_before_s = not_before_s

    def _begin_epoch(self, identity: Identity) -> None:
        """Begin a new epoch and give the batches that are to be sent again new sequences: none of them was appended."""
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
    """The queues of one producer, and the total size of their batches in bytes."""

    def __init__(
        self,
        *,
        batch_bytes: int,
        linger_ms: int,
        buffer_bytes: int,
        delivery_timeout_ms: int,
        in_flight_max: int = MAX_IN_FLIGHT,
        may_renew: bool = True,
    ):
        self.lock = threading.Lock()
        self.space = threading.Condition(self.lock)
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.held_bytes = 0
        self._spare: list[bytearray] = []
        self.hurry = 0
        self._callers = 0
        self.on_space: Callable[[], None] | None = None
        self.loop_thread = 0
        self._batch_bytes = batch_bytes
        self._linger_s = linger_ms / 1000
        self.buffer_bytes = buffer_bytes
        self._in_flight_max = in_flight_max
        self._may_renew = may_renew
        self._delivery_s = delivery_timeout_ms / 1000

    def append(
        self,
        tp: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        now_s: float,
        callback: Callable[..., object] | None = None,
    ) -> tuple[Batch, int, bool]:
        """Add a record. Returns its batch, its index in the batch, and whether to wake the sender. Call under `lock`.

        Raises `BufferFull`, and `KafkaError(MESSAGE_TOO_LARGE)` for a record larger than the whole buffer.
        """
        block = header_block(headers) if headers else NO_HEADERS
        size = RECORD_SIZE_MAX + (len(key) if key else 0) + (len(value) if value else 0) + len(block)
        if callback is not None:
            size += CALLBACK_BYTES
        needed = HEADER_SIZE + size
        self._check_size(needed)
        queue = self._queue(tp)
        batch = queue.waiting[-1] if queue.waiting else None
        if batch is not None and not batch.sealed:
            index = batch.put(key, value, timestamp_ms, block, callback)
            if index < 0 and batch.filled + size <= self._batch_bytes:
                self._grow(batch, size)
                index = batch.put(key, value, timestamp_ms, block, callback)
            if index >= 0:
                return batch, index, False
        capacity = self._reserve(needed, min(FIRST_BYTES, self._batch_bytes))
        if batch is not None:
            batch.seal()
        batch = Batch(tp, now_s + self._linger_s, now_s + self._delivery_s, capacity)
        batch.outcome.loop_thread = self.loop_thread
        queue.waiting.append(batch)
        index = batch.put(key, value, timestamp_ms, block, callback)
        assert index == 0
        if needed > self._batch_bytes:
            batch.seal()  # a record that is larger than a batch is alone in its own
        return batch, index, True

    def _grow(self, batch: Batch, size: int) -> None:
        """Give a batch room for `size` more bytes, and for more if the buffer has them."""
        more = batch.filled + size - batch.capacity
        if more > 0:
            more = self._reserve(more, min(3 * batch.capacity, self._batch_bytes - batch.capacity))
            batch.held += more
            batch.grow(batch.capacity + more)

    def append_encoded(self, tp: TopicPartition, encoded: bytearray, count: int, now_s: float) -> Batch:
        """Add a batch that is already encoded. Call under `lock`. Raises `BufferFull`."""
        self._reserve(len(encoded), at_most=max(TABLES_BYTES, 4 * len(encoded)))
        queue = self._queue(tp)
        if queue.waiting:
            queue.waiting[-1].seal()
        batch = Batch.of_encoded(tp, now_s, now_s + self._delivery_s, encoded, count)
        batch.outcome.loop_thread = self.loop_thread
        batch.reusable = True
        queue.waiting.append(batch)
        return batch

    def _queue(self, tp: TopicPartition) -> PartitionQueue:
        queue = self.queues.get(tp)
        if queue is None:
            queue = self.queues[tp] = PartitionQueue(tp, self._in_flight_max, self._may_renew)
        return queue

    @property
    def pressing(self) -> bool:
        """Whether to send batches without lingering: a caller waits for them, or for room in the buffer."""
        return self.hurry > 0 or self._callers > 0

    @contextlib.contextmanager
    def waiting_for_room(self) -> Iterator[None]:
        """While a caller waits for room: batches are sent before they are full, since nobody can fill them."""
        with self.lock:
            self._callers += 1
        try:
            yield
        finally:
            with self.lock:
                self._callers -= 1

    def take(self, queue: PartitionQueue, identity: Identity | None) -> Batch:
        """Take the queue's next batch and move the queue behind all others, so that each partition has its turn. Call
        under `lock`."""
        self.queues[queue.tp] = self.queues.pop(queue.tp)
        return queue.take(identity)

    def _reserve(self, needed: int, wanted: int = 0, at_most: int | None = None) -> int:
        """Reserve memory: what is wanted if there is as much, and at least what is needed. Returns how much. With
        `at_most`, all that is held may not be more."""
        self._check_size(needed)
        free = min(self.buffer_bytes, at_most or self.buffer_bytes) - self.held_bytes
        if needed > free:
            raise BufferFull(f"the producer's buffer is full: {self.held_bytes} bytes are not acknowledged yet")
        size = max(needed, min(wanted, free))
        self.held_bytes += size
        return size

    def spare(self) -> bytearray | None:
        """Memory of a batch of a table that was acknowledged, to be written over."""
        with self.lock:
            return self._spare.pop() if self._spare else None

    def reuse(self, encoded: bytearray) -> None:
        """Keep the memory of a batch of a table that was acknowledged, unless a connection still refers to it."""
        with contextlib.suppress(BufferError), self.lock:
            del encoded[-1:]
            if (len(self._spare) + 1) * len(encoded) <= TABLES_BYTES:
                self._spare.append(encoded)

    def _check_size(self, size: int) -> None:
        if size > self.buffer_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"a record that takes {size} bytes does not fit into the producer's buffer"
            )

    def release(self, batch: Batch) -> None:
        """Free the buffer space of a finished batch and wake the callers that wait for space."""
        with self.lock:
            self.held_bytes -= batch.held
        self.wake_all()

    def wake_all(self) -> None:
        """Have the callers that wait for space try again."""
        with self.space:
            self.space.notify_all()
        if self.on_space is not None:
            self.on_space()

    def waiting(self, topic: str, partitions: int) -> list[int]:
        """The number of batches that wait in each of the first partitions of a topic. Takes no lock: a rough answer."""
        queues = [self.queues.get(TopicPartition(topic, number)) for number in range(partitions)]
        return [len(queue.waiting) if queue is not None else 0 for queue in queues]

    @property
    def records(self) -> int:
        """The number of records that are not acknowledged yet."""
        return sum(batch.count for batch in self.outstanding())

    def outstanding(self) -> list[Batch]:
        """All batches that are not acknowledged yet."""
        return [batch for _, batch in self.unacknowledged()]

    def unacknowledged(self) -> list[tuple[TopicPartition, Batch]]:
        """All batches that are not acknowledged yet, with their partitions."""
        with self.lock:
            return [(q.tp, b) for q in self.queues.values() for b in (*q.in_flight, *q.again, *q.waiting)]

    def expired(self, now_s: float) -> Iterable[tuple[PartitionQueue, Batch]]:
        """Remove and yield the waiting batches whose delivery time-out is over. Batches in flight stay: their reply or
        time-out settles them."""
        found: list[tuple[PartitionQueue, Batch]] = []
        with self.lock:
            for queue in self.queues.values():
                while queue.again and queue.again[0].deadline_s <= now_s:
                    found.append((queue, queue.again.pop(0)))
                while not queue.again and queue.waiting and queue.waiting[0].deadline_s <= now_s:
                    found.append((queue, queue.waiting.popleft()))
        return found
