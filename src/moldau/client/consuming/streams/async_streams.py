"""Message streams for asyncio: a topic's partitions are shared out to asynchronous iterators, one for each task.

    streams = consumer.create_message_streams({"orders": 2})
    async with asyncio.TaskGroup() as tasks:
        for stream in streams["orders"]:
            tasks.create_task(work(stream))

Each partition belongs to one stream at a time, so its records stay in order. A task of the consumer feeds the streams.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Generic

from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.streams.stream_shares import (
    WAIT_S,
    FedStream,
    Key,
    StreamBatch,
    StreamingConsumer,
    StreamShares,
)
from moldau.client.own_loop import OwnLoop, of_one_loop
from moldau.errors import ClientClosed
from moldau.tasks import ended


class TaskFeed(FedStream):
    """The batches on their way from the consumer's task to one `AsyncMessageStream`."""

    def __init__(self, name: str, drained: Callable[[], object]):
        self._batches: asyncio.Queue[StreamBatch | Exception | None] = asyncio.Queue()
        super().__init__(name, drained, self._batches.put_nowait)

    async def current(self) -> StreamBatch | None:
        """The batch to go on with; None at the end. Waits for one, and raises what `poll` would raise."""
        return self._current or self.begin(await self._batches.get())


@of_one_loop()
class AsyncMessageStream:
    """An asynchronous iterator over the records of its share of a topic's partitions, for one task. It ends when the
    consumer is closed, and raises what `poll` would raise. A new loop continues where the last one was left."""

    def __init__(self, feed: TaskFeed, own_loop: OwnLoop | None):
        self._feed = feed
        self.own_loop = own_loop

    def __repr__(self) -> str:
        return f"<AsyncMessageStream {self._feed.name}>"

    async def __aiter__(self) -> AsyncIterator[Record]:
        while (batch := await self._feed.current()) is not None:
            for record in batch.walk:
                yield record
            self._feed.finish(batch)


class AsyncStreams(Generic[Key]):
    """The streams of one consumer, and the task that feeds them, on the running loop."""

    def __init__(self, consumer: StreamingConsumer, wanted: Mapping[Key, int]):
        self._consumer = consumer
        self._shares = StreamShares(consumer, wanted, lambda name: TaskFeed(name, consumer.wake))
        self.of = {
            key: [AsyncMessageStream(feed, consumer.own_loop) for feed in feeds]
            for key, feeds in self._shares.of.items()
        }
        self._stopping = False
        consumer.hand_out_to(self._shares.handout)
        consumer.subscribe_to(self._shares.subscription)
        self._feeder = asyncio.get_running_loop().create_task(self._feed())

    async def stop(self) -> None:
        """End the streams: each loop ends when it asks for the next record."""
        self._stopping = True
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
        except asyncio.CancelledError:
            if not self._stopping:
                self._shares.end(ClientClosed("the task that feeds this consumer's streams was cancelled"))
            raise
        except Exception as failure:
            self._shares.end(failure)
