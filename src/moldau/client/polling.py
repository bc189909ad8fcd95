"""Fetched records that the consumer has not returned yet: positions, buffers, and the long polls that fill them.

Each leader has at most one Fetch in flight, for the partitions that have fewer than `CHUNKS_AHEAD` unread replies. This
bounds memory to `CHUNKS_AHEAD * partition_max_bytes` for each partition. `position` is the offset of the next record to
return; it never goes back unless the application seeks. A reply for a position that a seek has changed meanwhile is
dropped. With isolation level read_committed, records of aborted transactions are left out.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from moldau.client.failures import STALE_METADATA, error_of, sentence
from moldau.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from moldau.records.batch import batches
from moldau.records.rows import Record, iterate

CHUNKS_AHEAD = 2


class ConsumedRecord(NamedTuple):
    """A record as `poll` returns it; `timestamp_type` 0 is the producer's time, 1 the broker's."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


Chunk: TypeAlias = tuple[memoryview, list[tuple[int, int]]]
"""The records of one reply, and producer id and first offset of each aborted transaction in it."""


class Assigned:
    """One assigned partition. `position` is None until the start position has been found."""

    __slots__ = ("asked", "chunks", "end_offset", "fetch_from", "out_of_range", "paused", "position", "rows", "tp")

    def __init__(self, tp: TopicPartition, position: int | None):
        self.tp = tp
        self.out_of_range = False
        self.paused = False
        self.end_offset = -1
        self.move(position)

    def move(self, position: int | None) -> None:
        """Continue at this position; fetched records are dropped."""
        self.position = position
        self.fetch_from = position
        self.chunks: deque[Chunk] = deque()
        self.rows: Iterator[Record] = iter(())
        self.asked: object = None

    def next_rows(self) -> bool:
        """Open the next buffered reply; False if none is left."""
        if not self.chunks:
            return False
        records, aborted = self.chunks.popleft()
        self.rows = iterate(records, aborted=aborted)
        return True


class Poller:
    """Keeps the buffers of the assigned partitions filled. `wake` is called on the loop when something arrived."""

    def __init__(
        self,
        router: Router,
        wake: Callable[[], object],
        *,
        max_bytes: int,
        partition_max_bytes: int,
        min_bytes: int,
        wait_ms: int,
        committed: bool = False,
    ):
        self._router = router
        self._wake = wake
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._min_bytes = min_bytes
        self._wait_ms = wait_ms
        self._isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        self._fetches: dict[int, asyncio.Task[None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._backoff = router.backoff()
        self._failure: KafkaError | None = None
        self.assigned: dict[TopicPartition, Assigned] = {}

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Fetch these partitions from now on. A partition that was assigned before keeps its position and buffers."""
        self.assigned = {tp: self.assigned.get(tp) or Assigned(tp, None) for tp in partitions}

    async def close(self) -> None:
        tasks = [t for t in (*self._fetches.values(), self._refreshing) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take(self, max_records: int) -> list[ConsumedRecord]:
        """Return buffered records, partition by partition. Raises the last failure of a Fetch that is not retriable."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        taken: list[ConsumedRecord] = []
        for state in list(self.assigned.values()):
            if state.position is None or state.paused:
                continue
            if self._take(state, max_records, taken):
                self.assigned[state.tp] = self.assigned.pop(state.tp)
            if len(taken) >= max_records:
                break
        return taken

    def _take(self, state: Assigned, max_records: int, taken: list[ConsumedRecord]) -> bool:
        topic, partition = state.tp
        position = state.position
        assert position is not None
        before = len(taken)
        more = True
        while more and len(taken) < max_records:
            for record in state.rows:
                if record[0] >= position:
                    taken.append(ConsumedRecord(topic, partition, *record))
                    position = record[0] + 1
                    if len(taken) >= max_records:
                        break
            else:
                more = state.next_rows()
        if not more and state.fetch_from is not None:
            position = max(position, state.fetch_from)
        state.position = position
        return len(taken) > before

    def fetch(self) -> None:
        """Send a Fetch to each leader that has none in flight, for the partitions whose buffers have room."""
        by_leader: dict[int, list[Assigned]] = {}
        unled: dict[str, None] = {}
        for state in self.assigned.values():
            if state.fetch_from is None or state.paused or len(state.chunks) >= CHUNKS_AHEAD:
                continue
            leader = self._router.view.leader(state.tp)
            if isinstance(leader, ErrorCode):
                unled[state.tp.topic] = None
            elif leader not in self._fetches:
                by_leader.setdefault(leader, []).append(state)
        if unled and self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh(list(unled)))
        for leader, states in by_leader.items():
            self._fetches[leader] = asyncio.get_running_loop().create_task(self._fetch(leader, states))

    async def _refresh(self, topics: list[str]) -> None:
        try:
            await self._router.refresh(topics)
            leaders = ((tp, self._router.view.leader(tp)) for tp in self.assigned)
            unled = next((_failure(tp, why) for tp, why in leaders if isinstance(why, ErrorCode)), None)
            if unled is not None:
                await asyncio.sleep(self._backoff.after_ms(unled) / 1000)
        except KafkaError as failure:
            if not failure.retriable:
                self._failure = failure
            await asyncio.sleep(self._backoff.after_ms(failure) / 1000)
        finally:
            self._refreshing = None
            self._wake()

    async def _fetch(self, leader: int, states: list[Assigned]) -> None:
        try:
            link = await self._router.broker(leader)
            asked: dict[TopicPartition, tuple[Assigned, int]] = {}
            topics: dict[str, FetchTopic] = {}
            for state in states:
                if state.fetch_from is None:
                    continue
                asked[state.tp] = state, state.fetch_from
                topics.setdefault(state.tp.topic, FetchTopic(topic=state.tp.topic)).partitions.append(
                    FetchPartition(
                        partition=state.tp.partition,
                        fetch_offset=state.fetch_from,
                        partition_max_bytes=self._partition_max_bytes,
                    )
                )
            request = FetchRequest(
                max_wait_ms=self._wait_ms,
                min_bytes=self._min_bytes,
                max_bytes=self._max_bytes,
                isolation_level=self._isolation,
                topics=list(topics.values()),
            )
            reply = await link.call(FETCH, request, self._wait_ms + self._router.request_timeout_ms)
            if reply.error_code:
                error = error_of(reply.error_code)
                raise KafkaError(error, f"fetching: {sentence(error)}")
            failed: KafkaError | None = None
            for topic in reply.responses:
                for data in topic.partitions:
                    state, offset = asked[TopicPartition(topic.topic, data.partition_index)]
                    failed = self._received(state, offset, data) or failed
            if failed is not None:
                await asyncio.sleep(self._backoff.after_ms(failed) / 1000)
            else:
                self._backoff.reset()
        except KafkaError as failure:
            if not failure.retriable:
                self._failure = failure
            for state in states:
                self._router.stale(state.tp.topic)
            await asyncio.sleep(self._backoff.after_ms(failure) / 1000)
        finally:
            self._fetches.pop(leader, None)
            self._wake()

    def _received(self, state: Assigned, offset: int, data: PartitionData) -> KafkaError | None:
        """Buffer a partition's part of a reply. Returns the failure if the next Fetch has to wait, else None."""
        if self.assigned.get(state.tp) is not state or state.fetch_from != offset:
            return None
        error = error_of(data.error_code)
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            state.out_of_range = True
            state.move(None)
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
            records = memoryview(data.records or b"")
            after = max((header.last_offset + 1 for _, header in batches(records)), default=offset)
            if after > offset:
                aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
                state.chunks.append((records, aborted))
                state.fetch_from = after
        return None


def _failure(tp: TopicPartition, error: ErrorCode, where: str = "") -> KafkaError:
    return KafkaError(error, f"fetching {tp}{where}: {sentence(error)}")
