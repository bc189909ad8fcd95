"""Message streams for asyncio: a topic's partitions are shared out to asynchronous iterators, one for each task.

    streams = consumer.create_message_streams({"orders": 2})
    async with asyncio.TaskGroup() as tasks:
        for stream in streams["orders"]:
            tasks.create_task(work(stream))

Each partition belongs to one stream at a time, so its records stay in order. A task of the consumer feeds the streams.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from typing import Any, Generic, Protocol

from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.stream_shares import WAIT_S, FedStream, StreamBatch, StreamShares, StreamSource
from moldau.client.consuming.subscription import Subscription
from moldau.client.consuming.topic_filter import Wanted
from moldau.client.own_loop import OwnLoop, of_one_loop
from moldau.names import TopicPartition
from moldau.tasks import ended


@of_one_loop()
class AsyncMessageStream(FedStream):
    """An asynchronous iterator over the records of its share of a topic's partitions, for one task. It ends when the
    consumer is closed, and raises what `poll` would raise. A new loop continues where the last one was left."""

    def __init__(self, name: str, drained: Callable[[], object], own_loop: OwnLoop | None):
        self.own_loop = own_loop
        self._batches: asyncio.Queue[StreamBatch | Exception | None] = asyncio.Queue()
        super().__init__(name, drained, self._batches.put_nowait)

    async def __aiter__(self) -> AsyncIterator[Record]:
        while True:
            if self._current is None:
                batch = await self._batches.get()
                if not isinstance(batch, StreamBatch):
                    self._batches.put_nowait(batch)
                    if batch is None:
                        return
                    raise batch
                self._current = batch
            for record in self._current.walk:
                yield record
            self._finish(self._current)


class AsyncStreamSource(StreamSource, Protocol):
    """What the feeder needs of the consumer besides."""

    own_loop: OwnLoop | None

    def hand_out_to(self, handout: Handout) -> None: ...
    def hold_back(self, partitions: Iterable[TopicPartition], holds: bool) -> None: ...
    def ready(self, deadline_s: float) -> Coroutine[Any, Any, bool]: ...
    def subscribe_to(self, subscription: Subscription) -> None: ...
    def wake(self) -> None: ...


class AsyncStreams(Generic[Wanted]):
    """The streams of one consumer, and the task that feeds them, on the running loop."""

    def __init__(self, consumer: AsyncStreamSource, wanted: Mapping[Wanted, int]):
        self._consumer = consumer
        self._shares = StreamShares(
            consumer, wanted, lambda name: AsyncMessageStream(name, consumer.wake, consumer.own_loop)
        )
        self.of = self._shares.of
        consumer.hand_out_to(self._shares.handout)
        consumer.subscribe_to(self._shares.subscription)
        self._feeder = asyncio.get_running_loop().create_task(self._feed())

    async def stop(self) -> None:
        """End the streams: each loop ends when it asks for the next record."""
        await ended(self._feeder)
        self._shares.end(None)
        self._shares.handout.cut()

    async def _feed(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                for partitions, holds in self._shares.to_hold_back():
                    self._consumer.hold_back(partitions, holds)
                if self._shares.deal():
                    await asyncio.sleep(0)
                else:
                    await self._consumer.ready(loop.time() + WAIT_S)
        except Exception as failure:
            self._shares.end(failure)
