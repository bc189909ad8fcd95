"""Consumers: `AsyncConsumer` on the caller's loop, and `Consumer`, its synchronous form, with a loop in a thread.

Either `subscribe` to topics as a member of a group, whose members share the partitions, or `assign` partitions by hand.
`poll` returns records. Rebalances happen only inside `poll`. An automatic commit covers the records that earlier polls
returned, so a record counts as processed once `poll` is called again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

from moldau.client.background import LoopThread
from moldau.client.consumer_settings import RESETS, ConsumerSettings
from moldau.client.failures import ClientClosed
from moldau.client.membership import GroupSettings, Membership, OffsetAndMetadata
from moldau.client.offsets import LATEST, offsets_at
from moldau.client.polling import ConsumedRecord, Poller
from moldau.client.routing import router_of
from moldau.client.settings import configured
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition

logger = logging.getLogger(__name__)


class AsyncConsumer:
    """A consumer on the running loop. Use it in `async with`: on exit the consumer makes its automatic commit, if that
    is enabled, and leaves the group."""

    @configured(ConsumerSettings)
    def __init__(self, settings: ConsumerSettings):
        self.settings = settings
        self._started = False
        self._closed = False
        self._topics: list[str] = []
        self._callbacks: list[Callable[[list[TopicPartition]], object] | None] = [None, None]
        self._preparing: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._counts: dict[str, int] = {}
        self._watch_at_s = 0.0
        self._commit_at_s = 0.0

    async def __aenter__(self) -> "AsyncConsumer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Bind the consumer to the running loop; it dials no broker before the first use."""
        s = self.settings
        self._awake = asyncio.Event()
        self._router = router_of(s)
        self._poller = Poller(
            self._router,
            self._awake.set,
            max_bytes=s.fetch_max_bytes,
            partition_max_bytes=s.max_partition_fetch_bytes,
            min_bytes=s.fetch_min_bytes,
            wait_ms=s.fetch_max_wait_ms,
            committed=s.committed,
        )
        group = GroupSettings(
            group_id=s.group_id or "",
            group_instance_id=s.group_instance_id,
            session_timeout_ms=s.session_timeout_ms,
            rebalance_timeout_ms=s.max_poll_interval_ms,
            heartbeat_interval_ms=s.heartbeat_interval_ms,
        )
        self._membership = Membership(self._router, group, self._awake.set)
        self._started = True

    def subscribe(
        self,
        topics: Iterable[str],
        *,
        on_assigned: Callable[[list[TopicPartition]], object] | None = None,
        on_revoked: Callable[[list[TopicPartition]], object] | None = None,
    ) -> None:
        """Read these topics as a member of the group. The callbacks run inside `poll`, on the consumer's loop."""
        self._group()
        self._topics = sorted(set(topics))
        self._callbacks = [on_assigned, on_revoked]
        self._membership.rejoin_needed = True

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without group membership."""
        self._check_open()
        self._topics = []
        self._poller.assign(list(partitions))

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now."""
        return sorted(self._poller.assigned)

    async def poll(self, timeout_ms: int = 1_000, max_records: int = 500) -> list[ConsumedRecord]:
        """The next records, at most `max_records`; waits up to `timeout_ms` if none are fetched yet. Raises
        `KafkaError`."""
        self._check_open()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        self._membership.polled(loop.time())
        self._commit_now_and_then(loop.time())
        while True:
            self._awake.clear()
            if self._preparing is None and self._lacks_something(loop.time()):
                self._preparing = loop.create_task(self._prepare())
                self._preparing.add_done_callback(lambda _: self._awake.set())
            if self._preparing is not None and self._preparing.done():
                prepared, self._preparing = self._preparing, None
                prepared.result()
                continue
            if self._preparing is None:
                records = self._poller.take(max_records)
                self._poller.fetch()
                if records:
                    return records
            left_s = deadline - loop.time()
            if left_s <= 0:
                return []
            try:
                async with asyncio.timeout(left_s):
                    await self._awake.wait()
            except TimeoutError:
                pass

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        while True:
            for record in await self.poll():
                yield record

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record that `poll` will return; None while it is unknown."""
        return self._poller.assigned[tp].position

    def end_offset(self, tp: TopicPartition) -> int:
        """The end of the readable records at the last fetch (high watermark or last stable offset); -1 before the
        first."""
        return self._poller.assigned[tp].end_offset

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continue reading at `offset`."""
        self._poller.assigned[tp].move(offset)

    async def seek_to(self, where: Mapping[TopicPartition, int]) -> None:
        """Continue at `EARLIEST`, `LATEST` or the first record at or after a time in ms (the end if no record is)."""
        found = await offsets_at(self._router, where, committed=self.settings.committed)
        late = [tp for tp, offset in found.items() if offset < 0]
        if late:
            found |= await offsets_at(self._router, dict.fromkeys(late, LATEST), committed=self.settings.committed)
        for tp, offset in found.items():
            self.seek(tp, offset)

    def pause(self, partitions: Iterable[TopicPartition], paused: bool = True) -> None:
        """Return no records of these partitions from `poll` until they are resumed (`paused=False`)."""
        for tp in partitions:
            self._poller.assigned[tp].paused = paused

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets, or the current positions. Raises `KafkaError`; it is not retriable if the group has
        rebalanced without this consumer."""
        self._group()
        chosen = self._positions() if offsets is None else dict(offsets)
        if chosen:
            await self._membership.commit(chosen)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without a commit are left out."""
        self._group()
        return await self._membership.committed(partitions)

    async def close(self) -> None:
        """Make the automatic commit, if enabled, leave the group, and close the connections."""
        if self._closed or not self._started:
            return
        self._closed = True
        for task in (self._preparing, self._committing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._topics:
            if self.settings.enable_auto_commit:
                await self._commit_quietly()
            await self._membership.leave()
        await self._poller.close()
        await self._router.close()

    def _lacks_something(self, now_s: float) -> bool:
        if self._membership.fatal is not None:
            failure, self._membership.fatal = self._membership.fatal, None
            raise failure
        if self._topics and (self._membership.rejoin_needed or now_s >= self._watch_at_s):
            return True
        return any(state.position is None for state in self._poller.assigned.values())

    async def _prepare(self) -> None:
        """Do the slow work that `poll` depends on: join the group, get the topics' metadata, find the start
        positions."""
        loop = asyncio.get_running_loop()
        if self._topics and loop.time() >= self._watch_at_s:
            await self._watch_topics()
            missing = any(topic not in self._counts for topic in self._topics)
            self._watch_at_s = loop.time() + (1.0 if missing else self.settings.metadata_max_age_ms / 1000)
        if self._topics and self._membership.rejoin_needed:
            revoked = self.assignment()
            if revoked and self.settings.enable_auto_commit:
                await self._commit_quietly()
            self._poller.assign([])
            if self._callbacks[1] and revoked:
                self._callbacks[1](revoked)
            assigned = await self._membership.join(self._topics)
            self._poller.assign(assigned)
            if self._callbacks[0]:
                self._callbacks[0](assigned)
        await self._locate()

    async def _watch_topics(self) -> None:
        """Start a rebalance if a subscribed topic was created or deleted or its number of partitions changed."""
        await self._router.retrying(lambda: self._router.refresh(self._topics))
        view = self._router.view
        for topic in self._topics:
            why = view.missing.get(topic)
            if why is not None and not why.retriable:
                raise KafkaError(why, f"topic {topic}: {why.name.lower().replace('_', ' ')}")
        counts = {t: len(view.topics[t].partitions) for t in self._topics if t in view.topics}
        if counts != self._counts:
            self._counts = counts
            self._membership.rejoin_needed = True

    async def _locate(self) -> None:
        """Find the start positions: the group's committed offsets, else as `auto_offset_reset` says."""
        unknown = {tp: s for tp, s in self._poller.assigned.items() if s.position is None}
        fresh = [tp for tp, s in unknown.items() if not s.out_of_range]
        if fresh and self.settings.group_id:
            for tp, committed in (await self._membership.committed(fresh)).items():
                unknown.pop(tp).move(committed.offset)
        if not unknown:
            return
        reset = self.settings.auto_offset_reset
        if reset == "none":
            tp = min(unknown)
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{tp} has no committed offset in range, and auto_offset_reset is none"
            )
        begin = dict.fromkeys(unknown, RESETS[reset])
        for tp, offset in (await offsets_at(self._router, begin, committed=self.settings.committed)).items():
            unknown[tp].move(offset)
            unknown[tp].out_of_range = False

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        states = self._poller.assigned.values()
        return {s.tp: OffsetAndMetadata(s.position) for s in states if s.position is not None}

    def _commit_now_and_then(self, now_s: float) -> None:
        automatic = self.settings.enable_auto_commit and self.settings.group_id and self._topics
        if not automatic or now_s < self._commit_at_s or (self._committing is not None and not self._committing.done()):
            return
        if self._commit_at_s and self._preparing is None:
            self._committing = asyncio.get_running_loop().create_task(self._commit_quietly())
        self._commit_at_s = now_s + self.settings.auto_commit_interval_ms / 1000

    async def _commit_quietly(self) -> None:
        """Commit automatically. A failure is only logged: the next commit covers it, or the records are read again
        after a rebalance."""
        positions = self._positions()
        if positions and self._membership.generation >= 0:
            try:
                async with asyncio.timeout(5):
                    await self._membership.commit(positions)
            except (KafkaError, TimeoutError) as failure:
                why = str(failure) or "no answer within 5 s"
                logger.debug("group %s: an automatic commit failed: %s", self.settings.group_id, why)

    def _group(self) -> None:
        self._check_open()
        if not self.settings.group_id:
            raise ConfigError("the consumer has no group_id, which subscribe and commit need")

    def _check_open(self) -> None:
        if self._closed or not self._started:
            raise ClientClosed("this consumer is closed" if self._closed else "this consumer was not started")


class Consumer:
    """The synchronous form of `AsyncConsumer`, with the same methods. Use it in a with-statement, from one thread."""

    @configured(ConsumerSettings)
    def __init__(self, settings: ConsumerSettings):
        self._core = AsyncConsumer(settings)
        self._thread = LoopThread("moldau-consumer")
        self._thread.start()
        self._thread.run(self._core.start())

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subscribe(
        self,
        topics: Iterable[str],
        *,
        on_assigned: Callable[[list[TopicPartition]], object] | None = None,
        on_revoked: Callable[[list[TopicPartition]], object] | None = None,
    ) -> None:
        """Read these topics as a member of the group. The callbacks run in the consumer's thread."""
        self._thread.call(self._core.subscribe, topics, on_assigned=on_assigned, on_revoked=on_revoked)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._thread.call(self._core.assign, partitions)

    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(self._core.assignment)

    def poll(self, timeout_ms: int = 1_000, max_records: int = 500) -> list[ConsumedRecord]:
        return self._thread.run(self._core.poll(timeout_ms, max_records))

    def __iter__(self) -> Iterator[ConsumedRecord]:
        while True:
            yield from self.poll()

    def position(self, tp: TopicPartition) -> int | None:
        return self._core.position(tp)

    def end_offset(self, tp: TopicPartition) -> int:
        return self._core.end_offset(tp)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._thread.call(self._core.seek, tp, offset)

    def seek_to(self, where: Mapping[TopicPartition, int]) -> None:
        self._thread.run(self._core.seek_to(where))

    def pause(self, partitions: Iterable[TopicPartition], paused: bool = True) -> None:
        self._thread.call(self._core.pause, partitions, paused)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        self._thread.run(self._core.commit(offsets))

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._thread.run(self._core.committed(partitions))

    def close(self) -> None:
        """Make the automatic commit, if enabled, leave the group, close the connections and end the thread."""
        if self._thread.running:
            try:
                self._thread.run(self._core.close())
            finally:
                self._thread.stop()
