"""What the message streams of both faces share: which stream has which partition, and what each was given.

A record counts as processed when its stream is asked for the next one. The partitions of a stream that has
`BATCHES_AHEAD` batches left are paused, so that a slow stream delays no other and memory stays bounded.
"""

import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any, Generic, Protocol, TypeVar

from moldau.client.consuming.fetched.handout import Handout, walk_over
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.groups.streams_wanted import BLACK_LIST, STATIC, WHITE_LIST, StreamsWanted
from moldau.client.consuming.streams.topic_filter import TopicFilter
from moldau.client.consuming.subscription import RebalanceListener, Subscription, text_of
from moldau.client.own_loop import OwnLoop
from moldau.client.partitions import topic_name
from moldau.client.shown import some
from moldau.errors import ConfigError
from moldau.names import TopicPartition

BATCHES_AHEAD = 2
WAIT_S = 1.0
Key = TypeVar("Key", bound=str | TopicFilter)
"""The name or the filter that a stream was asked for with (`topic_filter.Wanted`)."""


class StreamBatch:
    """Records of one partition on their way through a stream."""

    def __init__(self, records: list[Record], may_deliver: Callable[[], bool] | None = None):
        self.records = records
        self.walk = walk_over(records, may_deliver)
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


class FedStream:
    """A stream as its feeder knows it: its name, and the batches it was given, which `enqueue` takes. `drained` is
    called when it has finished one."""

    def __init__(
        self,
        name: str,
        drained: Callable[[], object],
        enqueue: Callable[[StreamBatch | Exception | None], object],
    ):
        self.name = name
        self._drained = drained
        self._enqueue = enqueue
        self._current: StreamBatch | None = None
        """The batch that iteration is in; another loop over the stream continues it."""
        self._given = self._finished = 0

    def put(self, batch: StreamBatch | Exception | None) -> None:
        """Hand over records, a failure, or None for the end."""
        self._given += 1
        self._enqueue(batch)

    def begin(self, batch: StreamBatch | Exception | None) -> StreamBatch | None:
        """Iterate over what was taken from the queue. Raises a failure. The end and a failure stay in the queue, for
        the next loop over the stream."""
        if isinstance(batch, StreamBatch):
            self._current = batch
            return batch
        self._enqueue(batch)
        if batch is None:
            return None
        raise batch

    def finish(self, batch: StreamBatch) -> None:
        """The stream has been asked for more than this batch has."""
        self._current = None
        if length_hint(batch.walk):  # they may not be delivered any more, and stay unprocessed
            batch.cut()
        else:
            batch.done = True
        self._finished += 1
        self._drained()

    @property
    def is_full(self) -> bool:
        """Whether the stream has enough for now."""
        return self._given - self._finished >= BATCHES_AHEAD


class StreamHandout(Handout):
    """The account of what streams have: a record is processed when its stream is asked for the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._batches: dict[TopicPartition, list[StreamBatch]] = {}

    def add(self, tp: TopicPartition, records: list[Record]) -> StreamBatch:
        """Records that go to a stream now."""
        batch = StreamBatch(records, self.may_deliver)
        with self._lock:
            self._batches[tp] = [b for b in self._batches.get(tp, ()) if not b.done] + [batch]
            self._taken = {other: first for other, first in self._taken.items() if other != tp}
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

    def end(self) -> None:
        for batches in [*self._batches.values()]:
            for batch in batches:
                batch.records.clear()

    def left(self) -> dict[TopicPartition, int]:
        return self._firsts(0)

    def undelivered(self) -> dict[TopicPartition, int]:
        return {**self._taken, **self._firsts(0)}

    def unprocessed(self) -> dict[TopicPartition, int]:
        return {**self._taken, **self._firsts(1)}

    def _firsts(self, back: int) -> dict[TopicPartition, int]:
        firsts: dict[TopicPartition, int] = {}
        with self._lock:
            for tp, batches in self._batches.items():
                for batch in batches:
                    offset = batch.offset_at(max(batch.given - back, 0))
                    if offset is not None and (not batch.done or back == 0):
                        firsts[tp] = offset
                        break
        return firsts


class StreamSubscription(Subscription):
    """The topics of the streams: some by name, some by filters."""

    def __init__(self, wanted: Mapping[Key, int], on_assigned: RebalanceListener, on_revoked: RebalanceListener):
        keys = list(wanted)
        self._counts: dict[str | TopicFilter, int] = dict(wanted.items())
        super().__init__([key for key in keys if isinstance(key, str)], on_assigned, on_revoked)
        self._named = frozenset(self.names)
        self._filters = [key for key in keys if isinstance(key, TopicFilter)]

    def __str__(self) -> str:
        return some([*sorted(self._named), *self._filters])

    def streams_wanted(self) -> StreamsWanted:
        if not self._filters:
            return StreamsWanted(STATIC, {str(topic): streams for topic, streams in self._counts.items()})
        if len(self._counts) > 1:
            raise ConfigError("with zookeeper_connect streams are of topics by name, or of one TopicFilter")
        [chosen] = self._filters
        kind = BLACK_LIST if chosen.denies else WHITE_LIST
        return StreamsWanted(kind, {text_of(chosen.pattern): self._counts[chosen]})

    @property
    def selects(self) -> bool:
        return bool(self._filters)

    def wants(self, topic: str) -> bool:
        return topic in self._named or any(one.wants(topic) for one in self._filters)


class StreamSource(Protocol):
    """What streams need of their consumer."""

    def assignment(self) -> list[TopicPartition]: ...
    def stream_of(self, tp: TopicPartition) -> int | None: ...
    def paused(self) -> list[TopicPartition]: ...
    def take(self, most: int | None, *, iterating: bool) -> list[Record]: ...


class StreamingConsumer(StreamSource, Protocol):
    """The methods of a consumer that its feeders call. They run on the consumer's loop."""

    own_loop: OwnLoop | None

    def hand_out_to(self, handout: Handout) -> None: ...
    def hold_back(self, partitions: Iterable[TopicPartition], holds: bool) -> None: ...
    def ready(self, deadline_s: float) -> Coroutine[Any, Any, bool]: ...
    def subscribe_to(self, subscription: Subscription) -> None: ...
    def wake(self) -> None: ...


SomeStream = TypeVar("SomeStream", bound=FedStream)


class StreamShares(Generic[Key, SomeStream]):
    """The streams of one consumer, `of` what each was made for, and the owner of each partition. `make` makes a stream
    of a name. Raises `ConfigError`."""

    def __init__(self, source: StreamSource, wanted: Mapping[Key, int], make: Callable[[str], SomeStream]):
        for key, count in wanted.items():
            if not isinstance(key, TopicFilter):
                topic_name(key)
            if type(count) is not int or count <= 0:
                raise ConfigError(f"{key!r} needs a number of streams from 1, not {count!r}")
        self._source = source
        self._owner: dict[TopicPartition, SomeStream] = {}
        self.of: dict[Key, list[SomeStream]] = {
            key: [make(f"{key} {number}") for number in range(count)] for key, count in wanted.items()
        }
        self.handout = StreamHandout()
        self.subscription = StreamSubscription(wanted, self._assigned, self._revoked)

    def deal(self) -> bool:
        """Give what was fetched to the streams; whether that was anything."""
        by_partition: dict[TopicPartition, list[Record]] = {}
        for record in self._source.take(None, iterating=False):
            by_partition.setdefault(record.place.tp, []).append(record)
        for tp, records in by_partition.items():
            self._owner[tp].put(self.handout.add(tp, records))
        return bool(by_partition)

    def to_hold_back(self) -> Iterator[tuple[list[TopicPartition], bool]]:
        """The partitions to pause, because their streams have enough, and those to resume (False)."""
        paused = set(self._source.paused())
        full = {tp for tp, stream in self._owner.items() if stream.is_full}
        for partitions, holds in ((full - paused, True), (paused - full, False)):
            if partitions:
                yield sorted(partitions), holds

    def end(self, why: Exception | None) -> None:
        """Let each stream end, or raise this, behind what it has."""
        for streams in self.of.values():
            for stream in streams:
                stream.put(why)

    def _assigned(self, _: list[TopicPartition]) -> None:
        """Give each new partition to the stream that the group says, or to that of its topic with the fewest."""
        keys = sorted(self.of, key=lambda key: isinstance(key, TopicFilter))
        for tp in self._source.assignment():
            if tp not in self._owner:
                key = next(k for k in keys if k == tp.topic or (isinstance(k, TopicFilter) and k.wants(tp.topic)))
                owned, number = list(self._owner.values()), self._source.stream_of(tp)
                self._owner[tp] = self.of[key][number] if number is not None else min(self.of[key], key=owned.count)

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            self.handout.drop(tp)
            self._owner.pop(tp, None)
