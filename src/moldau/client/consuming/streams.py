"""Message streams, the interface of the Kafka paper: a topic's partitions are shared out to blocking iterators.

    streams = consumer.create_message_streams({"orders": 2})
    for stream in streams["orders"]:
        threading.Thread(target=work, args=[stream]).start()

Each partition belongs to one stream at a time, so its records stay in order. A record counts as processed when its
stream is asked for the next one. A thread of the consumer feeds the streams; it pauses the partitions of one that has
`BATCHES_AHEAD` batches left, so that a slow stream delays no other and memory stays bounded.
"""

import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import length_hint

from moldau.client.background import LoopThread
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.handout import Handout
from moldau.client.consuming.record import Record
from moldau.client.consuming.subscription import Listener, Subscription, topic_name
from moldau.errors import ConfigError
from moldau.names import TopicPartition

BATCHES_AHEAD = 2
WAIT_S = 1.0


class TopicFilter:
    """Selects topics by a pattern of whole names: `TopicFilter.allow("orders.*")`, `TopicFilter.deny("test.*")`."""

    def __init__(self, pattern: "str | re.Pattern[str]", denies: bool):
        try:
            self.pattern = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise ConfigError(f"{pattern!r} is not a pattern of topics: {error}") from None
        self.denies = denies

    @classmethod
    def allow(cls, pattern: "str | re.Pattern[str]") -> "TopicFilter":
        """The topics whose whole name matches. Raises `ConfigError`."""
        return cls(pattern, denies=False)

    @classmethod
    def deny(cls, pattern: "str | re.Pattern[str]") -> "TopicFilter":
        """All topics except those whose whole name matches. Raises `ConfigError`."""
        return cls(pattern, denies=True)

    def __repr__(self) -> str:
        return f"TopicFilter.{'deny' if self.denies else 'allow'}({self.pattern.pattern!r})"

    def wants(self, topic: str) -> bool:
        return (self.pattern.fullmatch(topic) is None) == self.denies


Wanted = str | TopicFilter


class _Batch:
    """Records of one partition on their way through a stream."""

    def __init__(self, records: list[Record]):
        self.records = records
        self.walk = iter(records)
        self.done = False
        self._cut_at: int | None = None

    @property
    def given(self) -> int:
        return len(self.records) - length_hint(self.walk)

    def cut(self) -> None:
        """Give out no more records."""
        left = self.records[self.given :]
        if left:
            self._cut_at = left[0].offset
            del self.records[-len(left) :]

    def offset_at(self, index: int) -> int | None:
        """The offset of that record; None behind the last one."""
        return self.records[index].offset if index < len(self.records) else self._cut_at


class MessageStream:
    """A blocking iterator over the records of its share of a topic's partitions, for one thread. It ends when the
    consumer is closed, and raises what `poll` would raise."""

    def __init__(self, name: str, drained: Callable[[], object]):
        self._name = name
        self._drained = drained
        self._batches: queue.SimpleQueue[_Batch | Exception | None] = queue.SimpleQueue()
        self._put = self._finished = 0

    def __repr__(self) -> str:
        return f"<MessageStream {self._name}>"

    def __iter__(self) -> Iterator[Record]:
        while True:
            batch = self._batches.get()
            if not isinstance(batch, _Batch):
                self._batches.put(batch)
                if batch is None:
                    return
                raise batch
            yield from batch.walk
            batch.done = True
            self._finished += 1
            self._drained()

    def put(self, batch: "_Batch | Exception | None") -> None:
        """Hand over records, a failure, or None for the end."""
        self._put += 1
        self._batches.put(batch)

    @property
    def is_full(self) -> bool:
        return self._put - self._finished >= BATCHES_AHEAD


class StreamHandout(Handout):
    """The account of what streams have: a record is processed when its stream is asked for the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._batches: dict[TopicPartition, list[_Batch]] = {}

    def add(self, tp: TopicPartition, records: list[Record]) -> _Batch:
        """Records that go to a stream now."""
        batch = _Batch(records)
        with self._lock:
            self._batches[tp] = [b for b in self._batches.get(tp, ()) if not b.done] + [batch]
        return batch

    def polled(self, firsts: dict[TopicPartition, int]) -> None:
        """A poll hands records to the streams, which account for them."""

    def come_back(self) -> dict[TopicPartition, int]:
        return {}

    def drop(self, tp: TopicPartition) -> None:
        with self._lock:
            for batch in self._batches.pop(tp, ()):
                batch.cut()

    def cut(self) -> None:
        """Give out no more records; those that were not given out stay unprocessed."""
        with self._lock:
            for batches in self._batches.values():
                for batch in batches:
                    batch.cut()

    def undelivered(self) -> dict[TopicPartition, int]:
        return self._firsts(0)

    def unprocessed(self) -> dict[TopicPartition, int]:
        return self._firsts(1)

    def _firsts(self, back: int) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        with self._lock:
            for tp, batches in self._batches.items():
                for batch in batches:
                    offset = batch.offset_at(max(batch.given - back, 0))
                    if offset is not None and (not batch.done or back == 0):
                        found[tp] = offset
                        break
        return found


class StreamSubscription(Subscription):
    """The topics of the streams: some by name, some by filters."""

    def __init__(self, wanted: Iterable[Wanted], on_assigned: Listener, on_revoked: Listener):
        keys = list(wanted)
        super().__init__([key for key in keys if isinstance(key, str)], on_assigned, on_revoked)
        self._named = frozenset(self.names)
        self._filters = [key for key in keys if isinstance(key, TopicFilter)]

    @property
    def selects(self) -> bool:
        return bool(self._filters)

    def wants(self, topic: str) -> bool:
        return topic in self._named or any(one.wants(topic) for one in self._filters)


class Streams:
    """The streams of one consumer, and the thread that feeds them."""

    def __init__(self, consumer: AsyncConsumer, thread: LoopThread, wanted: Mapping[Wanted, int]):
        for key, count in wanted.items():
            if not isinstance(key, TopicFilter):
                topic_name(key)
            if type(count) is not int or count <= 0:
                raise ConfigError(f"{key!r} needs a number of streams from 1, not {count!r}")
        self._core = consumer
        self._thread = thread
        self._handout = StreamHandout()
        self._owner: dict[TopicPartition, MessageStream] = {}
        self._stopping = False
        self._feeder = threading.Thread(target=self._feed, name="moldau-streams", daemon=True)
        self.of = {key: [MessageStream(f"{key} {i}", self._wake) for i in range(n)] for key, n in wanted.items()}
        thread.call(consumer.hand_out_to, self._handout)
        thread.call(consumer.subscribe_to, StreamSubscription(wanted, self._assigned, self._revoked))
        self._feeder.start()

    def stop(self) -> None:
        """End the streams: each thread comes to the end of its loop when it asks for the next record."""
        self._stopping = True
        self._wake()
        if threading.current_thread() is not self._feeder:
            self._feeder.join()
        self._end(None)
        self._handout.cut()

    def _end(self, why: Exception | None) -> None:
        for streams in self.of.values():
            for stream in streams:
                stream.put(why)

    def _wake(self) -> None:
        self._thread.soon(self._core.wake)

    def _feed(self) -> None:
        try:
            while not self._stopping:
                self._hold_back()
                by_partition: dict[TopicPartition, list[Record]] = {}
                for record in self._core.take(None, iterating=False):
                    by_partition.setdefault(record.place.tp, []).append(record)
                for tp, records in by_partition.items():
                    self._owner[tp].put(self._handout.add(tp, records))
                if not by_partition:
                    self._thread.run(self._core.ready(time.monotonic() + WAIT_S), serving=True)
        except Exception as failure:
            self._end(failure)

    def _hold_back(self) -> None:
        """Pause the partitions of the streams that have enough, and resume those of the others."""
        paused = set(self._core.paused())
        full = {tp for tp, stream in self._owner.items() if stream.is_full}
        for partitions, holds in ((full - paused, True), (paused - full, False)):
            if partitions:
                self._thread.call(self._core.pause, sorted(partitions), holds)

    def _assigned(self, _: list[TopicPartition]) -> None:
        """Give each new partition to the stream of its topic that has the fewest."""
        keys = sorted(self.of, key=lambda key: isinstance(key, TopicFilter))
        for tp in self._core.assignment():
            if tp not in self._owner:
                key = next(k for k in keys if k == tp.topic or (isinstance(k, TopicFilter) and k.wants(tp.topic)))
                owned = list(self._owner.values())
                self._owner[tp] = min(self.of[key], key=owned.count)

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            self._handout.drop(tp)
            self._owner.pop(tp, None)
