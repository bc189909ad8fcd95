"""`AsyncConsumer`, the consumer on the caller's loop; `consumer.Consumer` is its synchronous face.

A record counts as processed when the caller asks for the next ones: with `poll` all records of the last call, with
iteration each record. Automatic commits, in `close` and in rebalances too, cover processed records only. Rebalances
happen only inside `poll` or iteration.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from moldau.client.consuming.closing import Closing
from moldau.client.consuming.commit_callbacks import CommitCallbacks
from moldau.client.consuming.commits import CommitCallback, Commits, Offsets
from moldau.client.consuming.consumer_metrics import ConsumerCounters, ConsumerMetrics
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.consumer_text import ConsumerText
from moldau.client.consuming.deserializing import Maker
from moldau.client.consuming.fetched.assigned import Assigned
from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.fetched.iteration import Iteration
from moldau.client.consuming.fetched.record import Record, RecordOrigin
from moldau.client.consuming.groups.group_protocols import member_of
from moldau.client.consuming.offset_lookups import OffsetLookups
from moldau.client.consuming.partition_log import AsyncPartitionLog
from moldau.client.consuming.polling import Poller
from moldau.client.consuming.positions import PositionLocator
from moldau.client.consuming.preparing import Preparing
from moldau.client.consuming.rebalancing import Rebalancing
from moldau.client.consuming.record_handling import RecordHandling
from moldau.client.consuming.seeking import Seeking
from moldau.client.consuming.streams.async_streams import AsyncMessageStream, AsyncStreams
from moldau.client.consuming.streams.topic_filter import Wanted
from moldau.client.consuming.subscription import RebalanceListener, Subscription, Topics
from moldau.client.consuming.tables.table_polling import WAIT_S, TablePolling
from moldau.client.consuming.tending import Tending
from moldau.client.own_loop import OwnLoop, of_one_loop
from moldau.client.partitions import partition_of, partitions_of
from moldau.client.routing import router_of
from moldau.client.settings import configured
from moldau.client.time_outs import time_out_s
from moldau.errors import ConfigError, NotAssigned
from moldau.monotonic import monotonic_s
from moldau.names import GroupMetadata, OffsetAndMetadata, TopicPartition


@of_one_loop("subscribe", "assign", "create_message_streams", "seek", "pause", "resume", "commit_async")
class AsyncConsumer(Closing, ConsumerText, Iteration, Seeking, OffsetLookups, RecordHandling, TablePolling):
    """A consumer on the running loop. Use it in `async with`: on exit the consumer commits what was processed, if
    automatic commits are enabled, and leaves the group."""

    @configured(ConsumerSettings)
    def __init__(self, settings: ConsumerSettings):
        self.settings = settings
        self.own_loop: OwnLoop | None = None
        self._started = False
        self._closing = False
        self._closed = False
        self._refused = ""
        self._ended = asyncio.Event()
        self._told = 0
        self._streams: AsyncStreams[Any] | None = None
        self._handout = Handout()
        self._callbacks = CommitCallbacks(settings.interceptors)
        self.commit_record: Callable[[Record], Any] = self._commit_record
        self.tell: Callable[[RebalanceListener, list[TopicPartition]], Any] = lambda listener, partitions: listener(
            partitions
        )
        self.soon: Callable[..., object] = lambda function, *arguments: function(*arguments)
        """How listeners are called, and functions on the loop: the synchronous face has ways of its own."""

    async def __aenter__(self) -> "AsyncConsumer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Bind the consumer to the running loop; it dials no broker before the first use."""
        s = self.settings
        self._loop = asyncio.get_running_loop()
        self._awake = asyncio.Event()
        self._router = router_of(s, s.reply_bytes_max)
        self.own_loop = self._router.own_loop
        self.own_loop.check()
        self._counters = counters = ConsumerCounters(monotonic_s)
        self._poller = Poller(
            self._router, s, self._awake.set, lambda tp: RecordOrigin(tp, self.commit_record), counters
        )
        self._membership = member_of(self._router, s, self._awake.set)
        self._handout.may_deliver = self._membership.may_deliver
        self._commits = Commits(self._poller, self._handout, self._membership, s, counters)
        self._positions = PositionLocator(self._router, self._poller, self._membership, s)
        self._rebalancing = Rebalancing(
            self._router, self._poller, self._membership, s, self._commit_automatically, self._tell, counters
        )
        self._preparing = Preparing(self._membership, self._rebalancing, self._positions, self._awake.set)
        self._tending = Tending(
            self._membership, self._rebalancing, self._commits, s.heartbeat_interval_ms, lambda: self._may_commit
        )
        self._maker = Maker(s)
        self._started = True

    def subscribe(
        self,
        topics: Topics,
        *,
        on_assigned: RebalanceListener | None = None,
        on_revoked: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
    ) -> None:
        """Read a topic, several topics, or all that a compiled pattern matches entirely, as a member of the group.

        The listeners are called with a list of partitions, inside `poll` or iteration, and may use the consumer; here
        they may be coroutine functions. `on_revoked` comes before partitions are given up, `on_lost` (by default
        `on_revoked`) if the group has already given them to others. Raises `ConfigError`.
        """
        subscription = Subscription(topics, on_assigned, on_revoked, on_lost)
        if not subscription.names and not subscription.selects:
            raise ConfigError("subscribe was given no topic; unsubscribe gives up all that were subscribed")
        self.subscribe_to(subscription)

    def subscribe_to(self, subscription: Subscription) -> None:
        """Read what a subscription selects, as a member of the group."""
        self._group()
        self._rebalancing.subscribe(subscription)
        self._tending.start()
        self._poller.by_hand = False
        self._awake.set()

    def hand_out_to(self, handout: Handout) -> None:
        """Have another account of what is handed out and processed."""
        handout.may_deliver = self._membership.may_deliver
        self._handout = self._commits.handout = handout

    def wake(self) -> None:
        """End the wait of `ready`. Call it on the loop."""
        self._awake.set()

    def subscription(self) -> list[str]:
        """The subscribed topics; of a pattern, those that exist and match."""
        self._check_started()
        subscription = self._rebalancing.subscription
        return [] if subscription is None else list(subscription.names)

    async def unsubscribe(self) -> None:
        """Commit what was processed, give all partitions up, and leave the group."""
        self._check_open()
        await self._preparing.stop()
        await self._rebalancing.leave()
        self._assign([])

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions, without group membership; with a `group_id`, offsets are committed all the same.
        Raises `ConfigError`."""
        self._check_open()
        chosen = partitions_of(partitions, "assign")
        if self._rebalancing.subscription is not None:
            raise ConfigError("this consumer has subscribed; assign needs unsubscribe first")
        if self._may_commit and self._poller.assigned:
            self.soon(self._commits.begin, self._commits.processed())
        self._assign(chosen)
        self._awake.set()

    def _assign(self, partitions: list[TopicPartition]) -> None:
        for tp in self._poller.assigned.keys() - set(partitions):
            self._handout.drop(tp)
        self._poller.by_hand = True
        self._poller.assign(partitions)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now."""
        self._check_started()
        return sorted(self._poller.assigned)

    def stream_of(self, tp: TopicPartition) -> int | None:
        """The number of the stream that the group has given the partition to, if it does."""
        return self._membership.stream_of(tp)

    async def poll(
        self, timeout_ms: int | None = None, max_records: int | None = None, *, timeout: float | None = None
    ) -> list[Record]:
        """The next records, at most `max_records` (by default `max_poll_records`); if none are fetched yet, waits up to
        `timeout_ms`, or `timeout` in seconds (by default one), then returns an empty list.

        Records of earlier calls count as processed now. Raises `KafkaError` if a retry cannot help, or if retries have
        not helped for `default_api_timeout_ms`; `DeserializationFailed` for a record that cannot be read, which stays
        the next one until the consumer seeks past it.
        """
        wait_s = time_out_s("poll", timeout_ms, timeout, usual_s=WAIT_S) or 0.0
        deadline_s = self._loop.time() + wait_s if self._started else 0.0
        while True:
            records = self.take(max_records, iterating=False)
            if records or not await self.ready(deadline_s):
                return records

    def take(self, most: int | None, *, iterating: bool) -> list[Record]:
        """The fetched records, without waiting. Runs in the caller's thread."""
        if not self.may_take():
            return []
        portions = self._poller.take(most or self.settings.max_poll_records, self._handout.taking)
        if not portions:
            return []
        self.soon(self._poller.fetch)
        records = self._maker.records(portions, self._poller, self._handout.taking)
        self._counters.consumed(len(records))
        if not iterating:
            self._handout.polled({state.tp: rows[0][0] for state, rows in portions})
        return records

    def may_take(self) -> bool:
        """Note that the caller has processed what it got before; whether it may take fetched records now."""
        self._check_open(self._closing)
        if self._rebalancing.subscription is None and not self._poller.assigned:
            raise NotAssigned("this consumer reads nothing: call subscribe, with a group_id, or assign")
        now_s = self._loop.time()
        self._membership.polled(now_s)
        self._callbacks.call()
        self._give_back()
        if self._may_commit and self._commits.due(now_s):
            self.soon(self._commits.begin, self._commits.processed())
        return self._preparing.lets_take(now_s)

    def walk(self) -> Iterator[Record] | None:
        """The rest of the run of records that iteration is in, or of a new one; None if nothing is fetched."""
        self._check_open()
        rest = self._handout.walk
        if rest is not None:
            return rest
        records = self.take(None, iterating=True)
        return self._handout.iterating(records) if records else None

    async def ready(self, deadline_s: float) -> bool:
        """Do what `take` depends on, and wait until it may find records or it is time to look again; False once the
        deadline has passed."""
        self._check_open(self._closing)
        now_s = self._loop.time()
        if not self._preparing.goes_on(now_s):
            self._poller.fetch()
            if self._poller.has_records:
                return True
        if now_s >= deadline_s:
            return False
        try:
            async with asyncio.timeout_at(min(deadline_s, self._preparing.look_again_s(now_s))):
                await self._awake.wait()
        except TimeoutError:
            pass
        self._awake.clear()  # not before: what was set since the last wait may concern what was looked at above
        return True

    def create_message_streams(self, streams: Mapping[Wanted, int]) -> dict[Wanted, list[AsyncMessageStream]]:
        """Share topics out to asynchronous iterators, for tasks: topic, or `moldau.TopicFilter` -> number of streams.
        Returns the streams of each.

        Each partition belongs to one stream at a time. Streams end when the consumer is closed. Call it once, in place
        of `subscribe`; `poll` and iteration are not for use beside it. Raises `ConfigError`.
        """
        self._group()
        if self._rebalancing.subscription is not None:
            raise ConfigError("this consumer has subscribed already")
        self._streams = made = AsyncStreams(self, streams)
        return made.of

    def log(self, topic: str, partition: int = 0) -> AsyncPartitionLog:
        """A partition as a sequence of records, apart from the consumer's position: `await log[100:200]`."""
        self._check_open()
        return AsyncPartitionLog(self._router, self.settings, partition_of((topic, partition)))

    def metrics(self) -> ConsumerMetrics:
        """The consumer's counters since it was started."""
        self._check_open()
        return self._poller.metrics()

    def group_metadata(self) -> GroupMetadata:
        """This consumer as its group knows it, for the transaction of a producer (KIP-447)."""
        self._check_started()
        return self._membership.metadata

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets (the next to read, as numbers or `OffsetAndMetadata`), or the positions behind all
        records handed out so far.

        Raises `KafkaError`; it is not retriable if the group has rebalanced without this consumer.
        """
        self._group()
        chosen = self._commits.chosen(offsets)
        self._commits.acknowledge(chosen)
        await self._commits.commit(chosen)
        self._callbacks.committed(chosen)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit as `commit` does, without waiting. The callback is called with the offsets and the error, or None, in
        the caller's thread: in a later `poll`, `commit` or `close`. A failure is logged as well."""
        self._group()
        chosen = self._commits.chosen(offsets)
        self._commits.acknowledge(chosen)
        self.soon(self._commits.later, chosen, lambda done, failed: self._callbacks.later(done, failed, callback))

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets of these partitions, or of the assigned ones; those without a commit are left
        out. Raises `KafkaError`."""
        self._group()
        wanted = self.assignment() if partitions is None else partitions_of(partitions, "committed")
        return await self._membership.committed(wanted)

    async def _leave(self) -> None:
        if self._streams is not None:
            await self._streams.stop()
        await self._tending.stop()
        await self._preparing.stop()
        await self._commits.settle()
        if self._poller.by_hand:
            await self._commit_automatically()
        await self._rebalancing.leave()

    async def _tell(self, listener: RebalanceListener, partitions: list[TopicPartition]) -> None:
        self._told += 1
        try:
            outcome = self.tell(listener, partitions)
            if inspect.isawaitable(outcome):
                await outcome
        finally:
            self._told -= 1

    def call_back(self) -> None:
        """Call the callbacks of finished commits."""
        self._callbacks.call()

    def _commit_record(self, record: Record) -> Awaitable[None]:
        return self.commit({record.place.tp: record.position})

    def commits_automatically(self) -> bool:
        """Whether records are committed as they are processed."""
        reads = self._poller.by_hand or self._rebalancing.subscription is not None
        return self.settings.enable_auto_commit and bool(self.settings.group_id) and reads

    @property
    def _may_commit(self) -> bool:
        return self.commits_automatically() and self._preparing.task is None

    async def _commit_automatically(self) -> None:
        if self.commits_automatically():
            await self._commits.quietly()

    def _state(self, tp: TopicPartition) -> Assigned:
        self._check_open()
        return self._poller.state(tp)

    def _group(self) -> None:
        self._check_open()
        if not self.settings.group_id:
            raise ConfigError("the consumer has no group_id, which subscribe and commit need")
