"""Keeps the buffers of the assigned partitions filled: positions, long polls, memory.

Each leader has at most one Fetch in flight, for the partitions that have fewer than `CHUNKS_AHEAD` unread replies. The
unread replies of one leader and the Fetch in flight together take at most `fetch_max_bytes`, plus one batch, because a
broker returns the first batch whatever its size. A reply for a position that a seek has changed meanwhile is dropped.

The loop fetches, and `take` runs in the caller's thread: both hold `lock` while they touch what is assigned.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from moldau.client.consuming.consumer_metrics import ConsumerCounters, ConsumerMetrics
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.fetched.assigned import Assigned, no_such_partition
from moldau.client.consuming.fetched.record import Record, RecordOrigin
from moldau.client.consuming.fetched.reply_memory import HeldReply, ReplyMemory
from moldau.client.consuming.fetched.truncation import compare, made_anew
from moldau.client.failures import STALE_METADATA, error_of, of_partition, own_fault, sentence, unread
from moldau.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError, NotAssigned
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from moldau.records.arena import Arena
from moldau.tasks import ended

T = TypeVar("T")
CHUNKS_AHEAD = 2
UNKNOWN_S_MAX = 1.0
"""An assigned partition may be missing in metadata for this long: a new topic reaches some brokers later."""
ANOTHER_TOPIC_S, DOUBT_PAUSE_S = 1.0, 0.25
"""Metadata must name another topic of the same name for this long, before a position is given up for it; meanwhile
nothing is fetched, and metadata are asked for again after the pause."""


class Portion(NamedTuple):
    """Rows of one partition that `take` handed out."""

    state: Assigned
    rows: list[Record]


class Poller:
    """Fetches the assigned partitions. `wake` is called on the loop when something arrived. `by_hand` is whether the
    partitions were assigned by the application, so that a missing one is its mistake."""

    def __init__(
        self,
        router: Router,
        settings: ConsumerSettings,
        wake: Callable[[], object],
        place: Callable[[TopicPartition], RecordOrigin],
        counters: ConsumerCounters,
    ):
        self._router = router
        self._counters = counters
        self._settings = settings
        self._wake = wake
        self._place = place
        self._resets = settings.auto_offset_reset != "none"
        self._isolation = READ_COMMITTED if settings.committed else READ_UNCOMMITTED
        self._fetches: dict[int, asyncio.Task[None]] = {}
        self._replies: list[HeldReply] = []
        self._memory = ReplyMemory()
        self._refreshing: asyncio.Task[None] | None = None
        self._comparisons: dict[int, asyncio.Task[None]] = {}
        self._backoff = router.backoff()
        self._failure: KafkaError | None = None
        self._failing_since_s: float | None = None
        self.lock = threading.Lock()
        self.arena = Arena()
        self.assigned: dict[TopicPartition, Assigned] = {}
        self.by_hand = False
        self._closed = False

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch these partitions from now on. A partition that was assigned before keeps its position and buffers."""
        with self.lock:
            before = self.assigned
            self.assigned = {tp: before.get(tp) or Assigned(self._place(tp), arena=self.arena) for tp in partitions}
            for tp in before.keys() - self.assigned.keys():
                before[tp].lose_position(out_of_range=False)

    def state(self, tp: TopicPartition) -> Assigned:
        """The partition's state. Raises `NotAssigned`."""
        state = self.assigned.get(tp)
        if state is None:
            raise NotAssigned(f"{tp} is not assigned to this consumer")
        return state

    async def close(self) -> None:
        self._closed = True
        await ended(*self._fetches.values(), *self._comparisons.values(), self._refreshing)

    @property
    def has_records(self) -> bool:
        """Whether `take` would find fetched batches, or a failure to raise."""
        if self._failure is not None:
            return True
        return any(s.has_records and not s.paused for s in self.assigned.values())

    def buffered_bytes(self, leader: int | None = None) -> int:
        """The bytes of the replies of a leader, or of all, that have records left to read."""
        self._replies = [reply for reply in self._replies if reply.parts]
        return sum(reply.size for reply in self._replies if leader is None or reply.leader == leader)

    def metrics(self) -> ConsumerMetrics:
        """What was counted, and how things are now."""
        with self.lock:
            known = [s for s in self.assigned.values() if s.position is not None and s.end_offset >= 0]
            lags = [max(state.end_offset - (state.position or 0), 0) for state in known]
            buffered = self.buffered_bytes()
        return self._counters.snapshot(lags=lags, assigned=len(self.assigned), buffered_bytes=buffered)

    def take(self, most: int, taking: Callable[[dict[TopicPartition, int]], object]) -> list[Portion]:
        """Buffered records, partition by partition, the least recently served first; `taking` hears the first offset of
        each before their positions can be seen. Raises the last failure of a Fetch that is not retriable."""
        with self.lock:
            self._raise_failure()
            portions: list[Portion] = []
            for state in list(self.assigned.values()):
                if most <= 0:
                    break
                if state.position is None or state.paused or not state.has_records:
                    continue
                try:
                    rows = state.take(most)
                except KafkaError as failure:
                    if not portions:
                        raise unread(state.tp, failure) from None
                    break
                if rows:
                    portions.append(Portion(state, rows))
                    most -= len(rows)
                    self.assigned[state.tp] = self.assigned.pop(state.tp)
            taking({state.tp: rows[0][0] for state, rows in portions})
            return portions

    def take_all(
        self, read: Callable[[Assigned], list[T]], taking: Callable[[list[tuple[Assigned, list[T]]]], object]
    ) -> list[tuple[Assigned, list[T]]]:
        """What `read` makes of the fetched records of each partition, where that is anything; `taking` hears it before
        their positions can be seen. Raises as `take` does."""
        with self.lock:
            self._raise_failure()
            taken: list[tuple[Assigned, list[T]]] = []
            for state in self.assigned.values():
                if state.position is None or state.paused or not state.has_records:
                    continue
                try:
                    records = read(state)
                except KafkaError as failure:
                    state.go_back(state.position)
                    if not taken:
                        raise unread(state.tp, failure) from None
                    break
                if records:
                    taken.append((state, records))
            taking(taken)
            return taken

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def fetch(self) -> None:
        """Send a Fetch to each broker that has none in flight, for the partitions whose buffers have room. Positions
        that the leader has to be asked about are compared first; the others do not wait for them."""
        loop, view = asyncio.get_running_loop(), self._router.view
        now_s = loop.time()
        by_broker: dict[int, list[Assigned]] = {}
        by_leader: dict[int, list[Assigned]] = {}
        unled: dict[str, None] = {}
        doubted: dict[str, None] = {}
        others: list[Assigned] = []
        with self.lock:
            for state in self.assigned.values():
                if state.fetch_from is None or state.paused:
                    continue
                another_s = state.another_topic_s(view.topic_id(state.tp.topic), now_s)
                if another_s is not None:
                    if another_s >= ANOTHER_TOPIC_S:
                        others.append(state)
                    else:
                        doubted[state.tp.topic] = None
                    continue
                leader = view.leader(state.tp)
                if not isinstance(leader, ErrorCode) and state.is_unchecked(view.leader_epoch(state.tp)):
                    by_leader.setdefault(leader, []).append(state)
                    continue
                if len(state.chunks) >= CHUNKS_AHEAD:
                    continue
                broker = self._broker_of(state, now_s)
                if broker is None:
                    unled[state.tp.topic] = None
                elif broker not in self._fetches:
                    by_broker.setdefault(broker, []).append(state)
        for state in others:
            self._failure = made_anew(state, self.lock, self._resets) or self._failure
        if (unled or doubted) and self._refreshing is None:
            pause_s = 0.0 if unled else DOUBT_PAUSE_S
            self._refreshing = loop.create_task(self._refresh([*unled, *doubted], pause_s))
        for leader, states in by_leader.items():
            if leader not in self._comparisons:
                self._comparisons[leader] = loop.create_task(self._compare(leader, states))
        for broker, wanting in by_broker.items():
            budget = self._budget(broker)
            if budget > 0:
                self._fetches[broker] = loop.create_task(self._fetch(broker, wanting, budget))

    def _budget(self, broker: int) -> int:
        """The bytes that the next Fetch from this broker may return. Partitions that are paused give up what was
        fetched for them rather than keep the others waiting."""
        most = self._settings.fetch_max_bytes
        with self.lock:
            if self.buffered_bytes(broker) >= most:
                for state in self.assigned.values():
                    if state.paused and state.has_records and state.position is not None:
                        state.go_back(state.position)
            return most - self.buffered_bytes(broker)

    def _broker_of(self, state: Assigned, now_s: float) -> int | None:
        """The broker to fetch this partition from: the follower that its leader named, or the leader."""
        leader = self._router.view.leader(state.tp)
        if isinstance(leader, ErrorCode):
            return None
        if state.replica is not None and (
            now_s >= state.replica_until_s or state.replica not in self._router.view.brokers
        ):
            state.replica = None
        return leader if state.replica is None else state.replica

    async def check(self, partitions: Iterable[TopicPartition]) -> bool:
        """Compare the positions of these partitions that were found elsewhere and not compared yet. Returns whether
        one has to be found or compared again. Raises `KafkaError`."""
        states = [state for tp in partitions if (state := self.assigned.get(tp)) is not None]
        wanted, asked = [state for state in states if state.is_believed], list[Assigned]()

        async def ask() -> None:
            by_leader: dict[int, list[Assigned]] = {}
            for state in wanted:
                if state.is_believed:
                    leader = await self._router.leader(state.tp)
                    if state.is_unchecked(self._router.view.leader_epoch(state.tp)):
                        by_leader.setdefault(leader, []).append(state)
                        asked.append(state)
            await asyncio.gather(*(self._ask(leader, states) for leader, states in by_leader.items()))

        if wanted:
            await self._router.retrying(ask)
        return any(state.is_believed for state in asked) or any(state.position is None for state in states)

    async def _ask(self, leader: int, states: list[Assigned]) -> None:
        await compare(self._router, leader, states, self.lock, asyncio.get_running_loop().time(), self._resets)

    async def _compare(self, leader: int, states: list[Assigned]) -> None:
        try:
            await self._ask(leader, states)
            self._worked()
        except KafkaError as failure:
            await self._failed(failure, [state.tp.topic for state in states])
        except Exception as fault:
            await self._failed(self._own_fault(fault))
        finally:
            self._comparisons.pop(leader, None)
            self._wake()

    async def _refresh(self, topics: list[str], pause_s: float) -> None:
        try:
            await asyncio.sleep(pause_s)
            await self._router.refresh(topics)
            now_s = asyncio.get_running_loop().time()
            failure: KafkaError | None = None
            for tp, state in list(self.assigned.items()):
                why = self._router.view.leader(tp)
                if not isinstance(why, ErrorCode):
                    state.unknown_since_s = None
                    continue
                failure = _failure(tp, why)
                if state.unknown_since_s is None:
                    state.unknown_since_s = now_s
                lasts = now_s - state.unknown_since_s >= UNKNOWN_S_MAX
                if why is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self.by_hand and lasts:
                    failure = no_such_partition(tp, self._router.view)
                if not failure.retriable:
                    break
            if failure is not None:
                await self._failed(failure)
        except KafkaError as failed:
            await self._failed(failed)
        except Exception as fault:
            await self._failed(self._own_fault(fault))
        finally:
            self._refreshing = None
            self._wake()

    async def _fetch(self, broker: int, states: list[Assigned], budget: int) -> None:
        more = False
        try:
            link = await self._router.broker(broker)
            asked, request = self._request(states, budget)
            if not asked:
                return
            memory = HeldReply(broker, self._memory)
            timeout_ms = self._settings.fetch_max_wait_ms + self._router.request_timeout_ms
            began_s = monotonic_s()  # uvloop's clock counts whole milliseconds
            reply = await link.call(FETCH, request, timeout_ms, memory.room)
            if reply.error_code:
                error = error_of(reply.error_code)
                raise KafkaError(error, f"fetching: {sentence(error)}")
            failed: KafkaError | None = None
            with self.lock:
                for topic in reply.responses:
                    for data in topic.partitions:
                        place = asked.get(TopicPartition(topic.topic, data.partition_index))
                        if place is not None:
                            failed = self._received(*place, data, memory) or failed
                self._replies.append(memory)
                memory.free()
            self._counters.fetched(memory.size, began_s)
            if failed is None:
                self._worked()
            else:
                await self._failed(failed)
            more = memory.parts > 0
        except KafkaError as failure:
            for state in states:
                state.replica = None
            await self._failed(failure, [state.tp.topic for state in states])
        except Exception as fault:
            await self._failed(self._own_fault(fault))
        finally:
            self._fetches.pop(broker, None)
            self._wake()
            if more and not self._closed:
                self.fetch()

    def _request(
        self, states: list[Assigned], budget: int
    ) -> tuple[dict[TopicPartition, tuple[Assigned, int, int]], FetchRequest]:
        settings = self._settings
        asked: dict[TopicPartition, tuple[Assigned, int, int]] = {}
        topics: dict[str, FetchTopic] = {}
        for state in states:
            if state.fetch_from is None:
                continue
            asked[state.tp] = state, state.fetch_from, state.leader_epoch
            topics.setdefault(state.tp.topic, FetchTopic(topic=state.tp.topic)).partitions.append(
                FetchPartition(
                    partition=state.tp.partition,
                    current_leader_epoch=self._router.view.leader_epoch(state.tp),
                    fetch_offset=state.fetch_from,
                    partition_max_bytes=settings.max_partition_fetch_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=budget,
            isolation_level=self._isolation,
            topics=list(topics.values()),
            rack_id=settings.client_rack,
        )
        return asked, request

    def _received(
        self, state: Assigned, offset: int, leader_epoch: int, data: PartitionData, memory: HeldReply
    ) -> KafkaError | None:
        """Buffer what a reply has of one partition. Returns the failure if the next Fetch has to wait, else None. The
        answer of an earlier leader is dropped, because the present one may lack its records."""
        moved = state.fetch_from != offset or state.leader_epoch != leader_epoch
        if self.assigned.get(state.tp) is not state or moved:
            return None
        error = error_of(data.error_code)
        follower, state.replica = state.replica, None if error else state.replica
        if data.preferred_read_replica >= 0 and not error:
            if data.preferred_read_replica not in self._router.view.brokers:  # it is younger than the metadata here
                self._router.stale(state.tp.topic)
                return _failure(state.tp, ErrorCode.REPLICA_NOT_AVAILABLE)
            state.replica = data.preferred_read_replica
            state.replica_until_s = asyncio.get_running_loop().time() + self._settings.metadata_max_age_ms / 1000
            return None
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            if follower is None:  # a follower may only be behind: its leader is asked next
                state.lose_position(out_of_range=True)
        elif error in STALE_METADATA:
            self._router.stale(state.tp.topic)
            return _failure(state.tp, error)
        elif error != ErrorCode.NONE:
            failure = _failure(state.tp, error, f" from offset {offset}")
            if not error.retriable:
                self._failure = failure
            return failure
        else:
            state.end_offset = data.last_stable_offset if self._isolation == READ_COMMITTED else data.high_watermark
            aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
            state.received(memoryview(data.records or b""), aborted, memory)
        return None

    def _own_fault(self, fault: Exception) -> KafkaError:
        """The failure of a task that met a fault of the consumer's own, for the caller of `take`; without it the task
        would begin again at once, for ever."""
        return own_fault(f"{self._router.client_id}: the consumer", fault)

    def _worked(self) -> None:
        self._failing_since_s = None
        self._backoff.reset()

    async def _failed(self, failure: KafkaError, topics: Iterable[str] = ()) -> None:
        """Wait before the next attempt. `take` raises the failure if retrying cannot help, or has not helped for
        `default_api_timeout_ms`."""
        for topic in topics:
            self._router.stale(topic)
        now_s = asyncio.get_running_loop().time()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        if not failure.retriable:
            self._failure = failure
        elif now_s - self._failing_since_s >= self._router.api_timeout_ms / 1000:
            self._failure, self._failing_since_s = failure, None
        wait_ms = self._backoff.after_ms(failure)
        if self._failure is not None:
            self._wake()
        await asyncio.sleep(wait_ms / 1000)


def _failure(tp: TopicPartition, error: ErrorCode, where: str = "") -> KafkaError:
    return of_partition(tp, error, f"fetching {tp}{where}: {sentence(error)}")
