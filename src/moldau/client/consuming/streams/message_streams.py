"""Message streams, the interface of the Kafka paper: a topic's partitions are shared out to blocking iterators.

    streams = consumer.create_message_streams({"orders": 2})
    for stream in streams["orders"]:
        threading.Thread(target=work, args=[stream]).start()

Each partition belongs to one stream at a time, so its records stay in order. A thread of the consumer feeds the
streams: it knows `StreamFeed`s, and never the `MessageStream`s of the application, so that it does not keep them or
their consumer. `async_streams` has those for asyncio, `stream_shares` what both have in common.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Generic

from moldau.client.background import LoopThread
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.streams.stream_shares import (
    WAIT_S,
    FedStream,
    Key,
    StreamBatch,
    StreamingConsumer,
    StreamShares,
)
from moldau.client.one_caller import OneCaller
from moldau.monotonic import monotonic_s


class StreamFeed(FedStream):
    """The batches on their way from the consumer's thread to one `MessageStream`."""

    def __init__(self, name: str, drained: Callable[[], object]):
        self._batches: queue.SimpleQueue[StreamBatch | Exception | None] = queue.SimpleQueue()
        super().__init__(name, drained, self._batches.put)

    def current(self) -> StreamBatch | None:
        """The batch to go on with; None at the end. Waits for one, and raises what `poll` would raise."""
        return self._current or self.begin(self._batches.get())


class MessageStream:
    """A blocking iterator over the records of its share of a topic's partitions, for one thread. It ends when the
    consumer is closed, and raises what `poll` would raise. A new loop continues where the last one was left. The
    consumer stays open for as long as one of its streams is held."""

    def __init__(self, feed: StreamFeed, owner: object):
        self._feed = feed
        self._owner = owner

    def __repr__(self) -> str:
        return f"<MessageStream {self._feed.name}>"

    def __iter__(self) -> Iterator[Record]:
        while (batch := self._feed.current()) is not None:
            yield from batch.walk
            self._feed.finish(batch)


class Streams(Generic[Key]):
    """The streams of one consumer, and the thread that feeds them."""

    def __init__(
        self, consumer: StreamingConsumer, thread: LoopThread, wanted: Mapping[Key, int], one_caller: OneCaller
    ):
        self._core = consumer
        self._one_caller = one_caller
        self._thread = thread
        self._shares = StreamShares(consumer, wanted, lambda name: StreamFeed(name, self._wake))
        self._stopping = False
        self._feeder = threading.Thread(target=self._feed, name="moldau-streams", daemon=True)
        thread.call(consumer.hand_out_to, self._shares.handout)
        thread.call(consumer.subscribe_to, self._shares.subscription)
        self._feeder.start()

    def of(self, owner: object) -> dict[Key, list[MessageStream]]:
        """The streams of each selection of topics; they hold the `owner`."""
        return {key: [MessageStream(feed, owner) for feed in feeds] for key, feeds in self._shares.of.items()}

    def stop(self) -> None:
        """End the streams: each thread comes to the end of its loop when it asks for the next record."""
        self._stopping = True
        self._wake()
        if threading.current_thread() is not self._feeder:
            self._feeder.join()
        self._shares.end(None)
        self._shares.handout.cut()

    def refuse(self, why: Exception) -> None:
        """Let each stream raise this; the consumer's account of what they have has ended."""
        self._shares.end(why)

    def _wake(self) -> None:
        self._thread.soon(self._core.wake)

    def _feed(self) -> None:
        try:
            with self._one_caller:
                while not self._stopping:
                    for partitions, holds in self._shares.to_hold_back():
                        self._thread.call(self._core.hold_back, partitions, holds)
                    if not self._shares.deal():
                        self._thread.run(self._core.ready, monotonic_s() + WAIT_S, serving=True)
        except Exception as failure:
            self._shares.end(failure)
