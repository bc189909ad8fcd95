"""`Consumer`, the synchronous face of `AsyncConsumer`, whose loop runs in a thread of its own.

Records are cut out of fetched replies, deserialized, and listeners called, in the thread that calls `poll`. Methods
made with `blocking` have the parameters and docstrings of the asyncio ones.
"""

import inspect
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.client import unclosed
from moldau.client.background import LoopThread
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.commits import CommitCallback, Offsets
from moldau.client.consuming.consumer_metrics import ConsumerMetrics
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.held_callbacks import HeldCallbacks
from moldau.client.consuming.partition_log import PartitionLog
from moldau.client.consuming.streams.message_streams import MessageStream, Streams
from moldau.client.consuming.streams.topic_filter import Wanted
from moldau.client.consuming.subscription import RebalanceListener, Topics
from moldau.client.consuming.tables.table_polling import WAIT_S
from moldau.client.faces import blocking
from moldau.client.one_caller import OneCaller
from moldau.client.pyarrow_needed import need_pyarrow
from moldau.client.settings import configured
from moldau.client.time_outs import milliseconds, time_out_s
from moldau.errors import ClientClosed, ConfigError
from moldau.monotonic import monotonic_s
from moldau.names import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow

__all__ = ["AsyncConsumer", "Consumer"]

ONE_READER = (
    "one thread at a time asks for records, by poll, iteration or process; several threads share them by"
    " create_message_streams"
)


class Consumer:
    """A consumer. Use it in a with-statement: on exit it commits what was processed, if automatic commits are enabled,
    and leaves the group.

        with Consumer("localhost:9092", group_id="billing") as consumer:
            consumer.subscribe("orders")
            for record in consumer:
                handle(record)

    A record counts as processed when the next one is asked for; automatic commits cover processed records only.

    One thread at a time asks for records: a second one is refused with `ConcurrentUse`. All other methods serve any
    thread; `close` ends a `poll` or loop in which another thread waits, with `ClientClosed`. A forked process must
    create its own consumer.
    """

    @configured(ConsumerSettings)
    def __init__(self, settings: ConsumerSettings):
        self._core = core = AsyncConsumer(settings)
        self._thread = thread = LoopThread("moldau-consumer")
        self._one_caller = OneCaller(ONE_READER)
        # The core does not hold this object: its thread ends when nobody does.
        core.tell = thread.in_caller
        core.soon = partial(_soon, thread)
        core.commit_record = partial(_commit_record, core, thread)
        self._held = HeldCallbacks()
        self._streams: Streams[Any] | None = None
        self._thread.start()
        try:
            self._thread.run(self._core.start)
        except BaseException:  # such as a certificate of no use
            self._thread.stop()
            raise
        forked = weakref.WeakMethod(self._forked)
        unclosed.watch(thread, lambda _: None, lambda: (call := forked()) and call())
        unclosed.close_when_dropped(self, thread, partial(core.shown, "Consumer"), partial(_leave, core))

    @property
    def settings(self) -> ConsumerSettings:
        """The settings of this consumer."""
        return self._core.settings

    def __repr__(self) -> str:
        return self._core.shown("Consumer")

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subscribe(
        self,
        topics: Topics,
        *,
        on_assigned: RebalanceListener | None = None,
        on_revoked: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
    ) -> None:
        """Read a topic, several topics, or all that a compiled pattern matches entirely, as a member of the group.

        The listeners are called with a list of partitions, in the thread that calls `poll` and inside it, and may use
        the consumer. `on_revoked` comes before partitions are given up, `on_lost` (by default `on_revoked`) if the
        group has already given them to others. Raises `ConfigError`.
        """
        for listener in (on_assigned, on_revoked, on_lost):
            if inspect.iscoroutinefunction(listener):
                raise ConfigError(f"{listener} is a coroutine function, which only moldau.aio.Consumer can call")
        assigned, revoked, lost = map(self._held.stand_in, (on_assigned, on_revoked, on_lost))
        self._thread.call(self._core.subscribe, topics, on_assigned=assigned, on_revoked=revoked, on_lost=lost)

    def subscription(self) -> list[str]:
        """The subscribed topics; of a pattern, those that exist and match."""
        return self._core.subscription()

    def unsubscribe(self) -> None:
        """Commit what was processed, give all partitions up, and leave the group."""
        with self._one_caller:
            self._thread.run(self._core.unsubscribe, serving=True)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions, without group membership; with a `group_id`, offsets are committed all the same.
        Raises `ConfigError`."""
        self._thread.call(self._core.assign, partitions)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now."""
        return self._core.assignment()

    def poll(
        self, timeout_ms: int | None = None, max_records: int | None = None, *, timeout: float | None = None
    ) -> list[Record]:
        """The next records, at most `max_records` (by default `max_poll_records`); if none are fetched yet, waits up to
        `timeout_ms`, or `timeout` in seconds (by default one), then returns an empty list.

        Records of earlier calls count as processed now. Raises `KafkaError` if a retry cannot help, or if retries have
        not helped for `default_api_timeout_ms`; `DeserializationFailed` for a record that cannot be read, which stays
        the next one until the consumer seeks past it; `ConcurrentUse` if another thread is in such a call.
        """
        deadline_s = self._deadline("poll", timeout_ms, timeout)
        with self._one_caller:
            while True:
                records = self._core.take(max_records, iterating=False)
                if records or not self._wait(deadline_s):
                    return records

    def __iter__(self) -> Iterator[Record]:
        """Records one by one, without end. After a `break` or an exception, the next loop continues behind the record
        of the last one."""
        while True:
            with self._one_caller:
                walk = self._core.walk()
                while walk is None:
                    self._wait(math.inf)
                    walk = self._core.walk()
            yield from walk

    def __next__(self) -> Record:
        """The next record, as a loop would get it."""
        return next(iter(self))

    def poll_table(self, timeout_ms: int | None = None, *, timeout: float | None = None) -> "pyarrow.Table":
        """All fetched records as a pyarrow table: topic, partition, offset, timestamp (UTC), key, value (both binary)
        and headers. Waits up to `timeout_ms`, or `timeout` in seconds (by default one), if none are fetched yet, then
        returns an empty table.

        Records of earlier calls count as processed now. Deserializers and interceptors are not called. Raises as
        `poll` does, and `ConfigError` without pyarrow.
        """
        need_pyarrow("poll_table")
        deadline_s = self._deadline("poll_table", timeout_ms, timeout)
        with self._one_caller:
            while True:
                table = self._core.take_table()
                if len(table) or not self._wait(deadline_s):
                    return table

    def tables(self, idle_ms: int | None = None) -> "Iterator[pyarrow.Table]":
        """Tables as `poll_table` returns them, without end, or until no record came for `idle_ms`. The records of a
        table count as processed when the next table is asked for."""
        idle_s = WAIT_S if idle_ms is None else milliseconds("tables", idle_ms, "idle_ms")
        while True:
            table = self.poll_table(timeout=idle_s)
            if len(table):
                yield table
            elif idle_ms is not None:
                return

    def process(
        self,
        handler: Callable[[Record], object],
        *,
        retries: int = 3,
        backoff_ms: int = 100,
        backoff_max_ms: int = 10_000,
        dead_letter: str | None = None,
        until: Callable[[], bool] | None = None,
        idle_ms: int | None = None,
    ) -> int:
        """Call `handler` with one record after another; returns their number once `until()` is true or no record came
        for `idle_ms`.

        A record whose handler or deserializer raises is tried `retries` times more, with waits that double from
        `backoff_ms` to `backoff_max_ms`. Then it is sent to the topic `dead_letter` with headers that say why, and
        counts as processed; without `dead_letter` the exception is raised, and the record is read again.
        """
        if inspect.iscoroutinefunction(handler):
            raise ConfigError(f"{handler} is a coroutine function, which only moldau.aio.Consumer can call")
        from moldau.client.consuming.processing import Handling, Processing  # few programs need it

        handling = Handling(retries, backoff_ms, backoff_max_ms, dead_letter)
        processing = Processing(self._core, handler, handling, until)
        processing.attempt = lambda records: self._thread.in_caller(processing.attempt_in_caller, records)
        with self._one_caller:
            return self._thread.run(self._core.run_processing, processing, idle_ms, serving=True)

    def create_message_streams(self, streams: Mapping[Wanted, int]) -> dict[Wanted, list[MessageStream]]:
        """Share topics out to blocking iterators, for threads: topic, or `moldau.TopicFilter` -> number of
        streams. Returns the streams of each.

        Each partition belongs to one stream at a time. Streams end when the consumer is closed. Call it once, in place
        of `subscribe`; `poll` and iteration are not for use beside it. Raises `ConfigError`.
        """
        if self._streams is not None or self._core.subscription():
            raise ConfigError("this consumer has subscribed already")
        self._streams = made = Streams(self._core, self._thread, streams, self._one_caller)
        return made.of(self)

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """A partition as a sequence of records, apart from the consumer's position: `log[100:200]`, `log[-1]`."""
        return PartitionLog(self._core.log(topic, partition), self._thread, self)

    def _deadline(self, call: str, timeout_ms: int | None, timeout: float | None) -> float:
        return monotonic_s() + (time_out_s(call, timeout_ms, timeout, usual_s=WAIT_S) or 0.0)

    def _wait(self, deadline_s: float) -> bool:
        return self._thread.run(self._core.ready, deadline_s, serving=True)

    def metrics(self) -> ConsumerMetrics:
        """The consumer's counters since it was started."""
        return self._core.metrics()

    def group_metadata(self) -> GroupMetadata:
        """This consumer as its group knows it, for the transaction of a producer (KIP-447)."""
        return self._core.group_metadata()

    position = blocking(AsyncConsumer.position)
    positions = blocking(AsyncConsumer.positions)

    def end_offset(self, tp: TopicPartition) -> int:
        """The end of the readable records at the last fetch (high watermark or last stable offset); -1 before the
        first."""
        return self._core.end_offset(tp)

    def seek(self, tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue reading at `offset`: a number, or a position whose leader epoch is compared with the log first
        (KIP-320). Raises `NotAssigned`, `ConfigError`."""
        self._thread.call(self._core.seek, tp, offset)

    seek_to_beginning = blocking(AsyncConsumer.seek_to_beginning)
    seek_to_end = blocking(AsyncConsumer.seek_to_end)
    seek_to = blocking(AsyncConsumer.seek_to)
    offsets_for_times = blocking(AsyncConsumer.offsets_for_times)
    beginning_offsets = blocking(AsyncConsumer.beginning_offsets)
    end_offsets = blocking(AsyncConsumer.end_offsets)
    lag = blocking(AsyncConsumer.lag)

    def pause(self, partitions: Iterable[TopicPartition], paused: bool = True) -> None:
        """Return no records of these partitions until they are resumed. Raises `NotAssigned`."""
        self._thread.call(self._core.pause, partitions, paused)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again. Raises `NotAssigned`."""
        self._thread.call(self._core.resume, partitions)

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused."""
        return self._core.paused()

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets (the next to read, as numbers or `OffsetAndMetadata`), or the positions behind all
        records handed out so far.

        Raises `KafkaError`; it is not retriable if the group has rebalanced without this consumer.
        """
        self._thread.run(self._core.commit, offsets)
        self._core.call_back()

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit as `commit` does, without waiting. The callback is called with the offsets and the error, or None, in
        the caller's thread: in a later `poll`, `commit` or `close`. A failure is logged as well."""
        if inspect.iscoroutinefunction(callback):
            raise ConfigError(f"{callback} is a coroutine function, which only moldau.aio.Consumer can call")
        self._thread.call(self._core.commit_async, offsets, self._held.stand_in(callback))

    committed = blocking(AsyncConsumer.committed)

    def close(self) -> None:
        """Commit what was processed, if automatic commits are enabled, leave the group, close the connections and end
        the thread. A call in which another thread waits raises `ClientClosed`."""
        if self._streams is not None:
            self._streams.stop()
        try:
            self._thread.close(self._core.close, serving=True)
        finally:
            if not self._thread.running:
                unclosed.forget(self._thread)
            self._core.call_back()

    def _forked(self) -> None:
        self._core.refuse(unclosed.FORKED)
        if self._streams is not None:
            self._streams.refuse(ClientClosed(unclosed.FORKED))


def _commit_record(core: AsyncConsumer, thread: LoopThread, record: Record) -> None:
    thread.run(core.commit, {record.place.tp: record.position})
    core.call_back()


def _soon(thread: LoopThread, function: Callable[..., object], *arguments: object) -> None:
    thread.soon(partial(function, *arguments))


async def _leave(core: AsyncConsumer) -> None:
    """Close a consumer that nobody holds: no thread is left in which its listeners could be called."""
    core.tell = lambda listener, partitions: None
    await core.close()
