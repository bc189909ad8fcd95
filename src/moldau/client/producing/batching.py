"""Records waiting to be sent: the queues of all partitions of a producer, and the memory that they share.

The module holds no socket and no clock; `now_s` is the loop's time. Producers append under `lock` from any thread, or
to a batch that is open already without it (`records/columns/filling`); the sender seals batches and takes them on its
loop. When a batch may be sent, and in which order, `partition_queue` decides.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from moldau.client.producing.batch import Batch, ProducerIdAndEpoch
from moldau.client.producing.partition_queue import MAX_IN_FLIGHT, PartitionQueue
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.records.batch import HEADER_SIZE
from moldau.records.columns import CALLBACK_BYTES, NO_HEADERS, RECORD_SIZE_MAX, header_block

FIRST_BYTES = 1024
"""The memory of a new batch; it grows fourfold until it has `batch.size`."""
TABLES_BYTES = 8 * 1024 * 1024
"""Batches of tables are encoded no further ahead of the broker: memory that is used again costs less than fresh one."""

Headers = Sequence[tuple[str, bytes | None]]


class BufferFull(MoldauError):
    """The producer's buffer is full: wait until a batch is acknowledged. `record` is what did not fit, as the arguments
    of the call to repeat."""

    record: tuple[Any, ...] = ()


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

    def take(self, queue: PartitionQueue, identity: ProducerIdAndEpoch | None) -> Batch:
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

    def waited_for(self, topics: Collection[str]) -> list[TopicPartition]:
        """The partitions of these topics for which batches wait to be sent."""
        with self.lock:
            return [q.tp for q in self.queues.values() if q.tp.topic in topics and (q.again or q.waiting)]

    def expired(self, now_s: float) -> Iterable[tuple[PartitionQueue, Batch]]:
        """Remove and yield the waiting batches whose delivery time-out is over. Batches in flight stay: their reply or
        time-out settles them."""
        expired: list[tuple[PartitionQueue, Batch]] = []
        with self.lock:
            for queue in self.queues.values():
                while queue.again and queue.again[0].deadline_s <= now_s:
                    expired.append((queue, queue.again.pop(0)))
                while not queue.again and queue.waiting and queue.waiting[0].deadline_s <= now_s:
                    expired.append((queue, queue.waiting.popleft()))
        return expired
