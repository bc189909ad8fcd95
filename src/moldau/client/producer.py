"""Producers: `AsyncProducer` on the caller's loop, and `Producer`, its synchronous form, with a loop in a thread.

`send` puts a record into a batch and returns a `Delivery` at once; a sender sends the batches (`sending`). Producers
are idempotent by default: retries until the delivery time-out never duplicate or reorder records. A producer buffers at
most `buffer_memory`; when the buffer is full, `send` waits.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client.background import LoopThread
from moldau.client.batching import Accumulator, BufferFull, Headers, Parts
from moldau.client.delivery import Delivery
from moldau.client.failures import ClientClosed, check
from moldau.client.partitioning import Sticky, positive_hash
from moldau.client.producer_settings import ProducerSettings
from moldau.client.routing import METADATA_MAX_AGE_MS, router_of
from moldau.client.sending import Sender
from moldau.client.settings import configured
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.records.compression import CODECS
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.client.columnar import EncodedBatch

T = TypeVar("T")
FULL = "the producer's buffer is still full: the broker does not acknowledge records fast enough"
Content = bytes | bytearray | memoryview | str | None


class AsyncProducer:
    """A producer on the running loop. Use it in `async with`, which delivers all records before it exits."""

    @configured(ProducerSettings)
    def __init__(self, settings: ProducerSettings):
        self.settings = settings
        self._runtime = settings.runtime or Runtime()
        self._router = router_of(settings)
        self.accumulator = Accumulator(
            batch_bytes=settings.batch_size,
            linger_ms=settings.linger_ms,
            buffer_bytes=settings.buffer_memory,
            delivery_timeout_ms=settings.delivery_timeout_ms,
        )
        self._partitions: dict[str, tuple[int, float]] = {}
        self._sticky: dict[str, Sticky] = {}
        self._space = asyncio.Event()
        self.accumulator.on_space = self._space.set
        self._sender: Sender | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    async def __aenter__(self) -> "AsyncProducer":
        await self.start()
        return self

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        await self.close(0 if failed else None)

    async def start(self) -> None:
        """Start the sender on the running loop; it dials no broker before the first record."""
        self._loop = asyncio.get_running_loop()
        self._sender = Sender(
            self._router,
            self.accumulator,
            acks=self.settings.acks_number,
            idempotent=self.settings.is_idempotent,
            codec=CODECS[self.settings.compression_type],
            max_request_bytes=self.settings.max_request_size,
        )
        self._sender.start()

    async def send(
        self,
        topic: str,
        value: Content = None,
        key: Content = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Put a record into a batch; waits while the buffer is full. Await the `Delivery` to wait for the broker.

        Raises `KafkaError` if the topic can be neither found nor created, or if the record is too large.
        """
        count = self.known_partitions(topic) or await self.learn_partitions(topic)
        record = as_bytes(key), as_bytes(value), timestamp_ms, headers
        try:
            async with asyncio.timeout(self.settings.max_block_ms / 1000):
                while True:
                    self._space.clear()
                    try:
                        delivery, wake = self.place(topic, count, partition, *record)
                    except BufferFull:
                        self.wake()
                        await self._space.wait()
                        continue
                    if wake:
                        self.wake()
                    return delivery
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, FULL) from None

    async def send_columns(
        self,
        topic: str,
        values: Any,
        *,
        keys: Any = None,
        timestamps_ms: Any = None,
        headers: Any = None,
        partition: int | None = None,
    ) -> list[Delivery]:
        """Send Arrow columns, one record per row, in order within each partition. Returns a `Delivery` for the last
        record of each batch.

        Keys and values are binary or text; timestamps are int64 in ms or Arrow timestamps; headers are list<struct<key,
        value>>. Waits while the buffer is full. Raises `KafkaError`, and `ValueError` if the columns' lengths differ.
        """
        count = self.known_partitions(topic) or await self.learn_partitions(topic)
        deliveries = []
        for batch in self.encode(topic, count, values, keys, timestamps_ms, headers, partition):
            while True:
                self._space.clear()
                try:
                    deliveries.append(self.place_encoded(topic, batch))
                except BufferFull:
                    self.wake()
                    await self._space.wait()
                    continue
                break
            self.wake()
            await asyncio.sleep(0)
        return deliveries

    async def flush(self) -> None:
        """Send the waiting batches, and wait until each record sent so far is delivered or has failed."""
        self.accumulator.hurry = True
        try:
            self.wake()
            outstanding = self.accumulator.outstanding()
            while outstanding:
                futures = [asyncio.shield(asyncio.wrap_future(batch.outcome)) for batch in outstanding]
                outcomes = await asyncio.gather(*futures, return_exceptions=True)
                outstanding = [part for outcome in outcomes if isinstance(outcome, Parts) for part in outcome]
        finally:
            self.accumulator.hurry = False

    async def close(self, timeout_s: float | None = None) -> None:
        """Deliver the waiting records for at most `timeout_s` (None: the delivery time-out), then stop. Records that
        are not delivered by then fail."""
        if self.closed:
            return
        self.closed = True
        try:
            async with asyncio.timeout(timeout_s):
                await self.flush()
        except TimeoutError:
            pass
        finally:
            if self._sender is not None:
                await self._sender.close()
            await self._router.close()

    def wake(self) -> None:
        """Wake the sender. Call on the loop only."""
        if self._sender is not None:
            self._sender.wake()

    def known_partitions(self, topic: str) -> int | None:
        """The topic's number of partitions; None if it is unknown or its metadata is too old."""
        if self.closed or self._loop is None:
            raise ClientClosed("this producer is closed" if self.closed else "this producer was not started")
        count, until_s = self._partitions.get(topic, (None, 0.0))
        return count if count is not None and self._loop.time() < until_s else None

    async def learn_partitions(self, topic: str) -> int:
        """Request the topic's number of partitions; the broker may create the topic (`auto.create.topics.enable`)."""

        async def ask() -> int:
            await self._router.refresh([topic], create=True)
            view = self._router.view
            if topic not in view.topics:
                check(view.missing.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {topic}")
            return len(view.topics[topic].partitions)

        assert self._loop is not None
        count = await self._router.retrying(ask, timeout_ms=self.settings.max_block_ms)
        self._partitions[topic] = count, self._loop.time() + METADATA_MAX_AGE_MS / 1000
        return count

    def place(
        self,
        topic: str,
        count: int,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[Delivery, bool]:
        """Put a record into its batch, from any thread. Also returns whether to wake the sender. Raises
        `BufferFull`."""
        assert self._loop is not None
        if timestamp_ms is None:
            timestamp_ms = self._runtime.clock.now_ms()
        with self.accumulator.lock:
            if partition is None:
                if key is not None:
                    partition = positive_hash(key) % count
                else:
                    partition = self._sticky_of(topic).partition(count, len(value) + 24 if value else 24)
            tp = TopicPartition(topic, partition)
            batch, index, wake = self.accumulator.append(tp, key, value, timestamp_ms, headers, self._loop.time())
        return Delivery(tp, batch, index), wake

    def encode(
        self,
        topic: str,
        count: int,
        values: Any,
        keys: Any,
        timestamps_ms: Any,
        headers: Any,
        partition: int | None,
    ) -> "Iterator[EncodedBatch]":
        """Encode these columns into batches, one by one, in the calling thread."""
        from moldau.client.columnar import columns_of, encoded_batches

        columns = columns_of(keys, values, timestamps_ms, headers, self._runtime.clock.now_ms())
        sticky = self._sticky_of(topic)
        codec, batch_bytes = CODECS[self.settings.compression_type], self.settings.column_batch_size
        yield from encoded_batches(
            columns, count, partition, lambda size: sticky.partition(count, size), batch_bytes=batch_bytes, codec=codec
        )

    def place_encoded(self, topic: str, batch: "EncodedBatch") -> Delivery:
        """Queue an encoded batch, from any thread. Raises `BufferFull`."""
        assert self._loop is not None
        tp = TopicPartition(topic, batch.partition)
        with self.accumulator.lock:
            placed = self.accumulator.append_encoded(tp, batch.data, batch.rows, self._loop.time())
        return Delivery(tp, placed, batch.rows - 1)

    def _sticky_of(self, topic: str) -> Sticky:
        sticky = self._sticky.get(topic)
        if sticky is None:
            sticky = self._sticky[topic] = Sticky(self._runtime.random, self.settings.batch_size)
        return sticky


def as_bytes(content: Content) -> bytes | None:
    """The content as bytes: text in UTF-8, and a copy of a buffer that its owner might change later."""
    if content is None or type(content) is bytes:
        return content
    return content.encode() if isinstance(content, str) else bytes(content)


class Producer:
    """The synchronous form of `AsyncProducer`. Use it in a with-statement, which delivers all records before it exits.
    Threads may share it."""

    @configured(ProducerSettings)
    def __init__(self, settings: ProducerSettings):
        self._core = AsyncProducer(settings)
        self._thread = LoopThread("moldau-producer")
        self._thread.start()
        self._thread.run(self._core.start())

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self.close(0 if failed else None)

    def send(
        self,
        topic: str,
        value: Content = None,
        key: Content = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """As `AsyncProducer.send`; blocks only while the buffer is full."""
        core = self._core
        count = core.known_partitions(topic) or self._thread.run(core.learn_partitions(topic))
        if type(value) is not bytes:
            value = as_bytes(value)
        if type(key) is not bytes:
            key = as_bytes(key)
        try:
            delivery, wake = core.place(topic, count, partition, key, value, timestamp_ms, headers)
        except BufferFull:
            place = partial(core.place, topic, count, partition, key, value, timestamp_ms, headers)
            delivery, wake = self._when_there_is_room(place)
        if wake:
            self._thread.soon(core.wake)
        return delivery

    def send_columns(
        self,
        topic: str,
        values: Any,
        *,
        keys: Any = None,
        timestamps_ms: Any = None,
        headers: Any = None,
        partition: int | None = None,
    ) -> list[Delivery]:
        """As `AsyncProducer.send_columns`; encoding is done in the caller's thread."""
        core = self._core
        count = core.known_partitions(topic) or self._thread.run(core.learn_partitions(topic))
        deliveries = []
        for batch in core.encode(topic, count, values, keys, timestamps_ms, headers, partition):
            deliveries.append(self._when_there_is_room(partial(core.place_encoded, topic, batch)))
            self._thread.soon(core.wake)
        return deliveries

    def _when_there_is_room(self, place: Callable[[], T]) -> T:
        space = self._core.accumulator.space
        deadline = time.monotonic() + self._core.settings.max_block_ms / 1000
        while True:
            try:
                return place()
            except BufferFull:
                if time.monotonic() > deadline:
                    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, FULL) from None
            self._thread.soon(self._core.wake)
            with space:
                space.wait(0.1)

    def flush(self) -> None:
        """Wait until each record sent so far is delivered or has failed."""
        self._thread.run(self._core.flush())

    def close(self, timeout_s: float | None = None) -> None:
        """Deliver the waiting records for at most `timeout_s`, then stop. Records that are not delivered by then
        fail."""
        if self._thread.running:
            try:
                self._thread.run(self._core.close(timeout_s))
            finally:
                self._thread.stop()
