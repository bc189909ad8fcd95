"""Writes what clients have pushed to a topic, behind their backs: a queue, and one task while there is something in it.

A record goes to the partition of its client's id, so that the pushes of a client stay in order, whichever broker leads
that: another one is sent a Produce. Batches are compressed by zstd. A batch that cannot be written is tried again until
`TRY_S` have passed; then it is lost, which the log says. After an unknown outcome a record may be there twice.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state.image import NO_LEADER, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.protocol.apis import PRODUCE, Api
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import Headers, Row, encode_batch
from moldau.records.columns import positive_hash
from moldau.records.compression import ZSTD
from moldau.replication.client_appends import append_off_loop, plan_append
from moldau.replication.own_appends import committed
from moldau.replication.replicas import Replicas
from moldau.replication.results import AppendRefusal, AppendTerms
from moldau.replication.telemetry.counts import TelemetryCounts
from moldau.runtime import Runtime
from moldau.tasks import ended

BATCH_BYTES = 1 << 20
"""Payloads of that many bytes go into one batch, or one that is larger."""
TRY_S = 30.0
RETRY_S = 0.2
STOP_S = 2.0
"""How long a stop waits for what was pushed before."""
ALL_IN_SYNC = -1
_TERMS = AppendTerms(acks_all=True, transactional=False, zstd=True, transaction_version=0)
notices = Notices(logging.getLogger(__name__))


class PushedMetrics(NamedTuple):
    """The record of a push: the client's id as text, its payload inflated, when it came, and what is known of it."""

    key: bytes
    payload: bytes
    time_ms: int
    headers: Headers

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.payload) + sum(len(name) + len(value or b"") for name, value in self.headers)


class PushedMetricsWriter:
    """`ensure` makes a topic that is missing; `ask` sends a request to another broker of the cluster, None if there are
    none."""

    def __init__(
        self,
        metadata: MetadataCache,
        ensure: Callable[[str], Awaitable[TopicImage | Refusal]],
        replicas: Replicas,
        ask: Callable[[int, Api, Any, int], Awaitable[Any]] | None,
        runtime: Runtime,
        counts: TelemetryCounts,
    ):
        self._metadata = metadata
        self._ensure = ensure
        self._replicas = replicas
        self._ask = ask
        self._runtime = runtime
        self._counts = counts
        self._queue: deque[PushedMetrics] = deque()
        self._task: asyncio.Task[None] | None = None
        self.held_bytes = 0

    def put(self, pushed: PushedMetrics) -> None:
        """Have this written soon."""
        self._queue.append(pushed)
        self.held_bytes += pushed.size
        if self._task is None:
            self._task = asyncio.ensure_future(self._write_all())

    async def stop(self) -> None:
        """Write what is there, as far as that takes no longer than `STOP_S`; the rest is lost."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=STOP_S)
        await ended(self._task)

    async def _write_all(self) -> None:
        try:
            while self._queue:
                some = self._next()
                try:
                    await self._write(some)
                finally:
                    self.held_bytes -= sum(one.size for one in some)
        finally:
            self._task = None

    def _next(self) -> list[PushedMetrics]:
        some = [self._queue.popleft()]
        size = some[0].size
        while self._queue and size + self._queue[0].size <= BATCH_BYTES:
            some.append(self._queue.popleft())
            size += some[-1].size
        return some

    async def _write(self, some: Sequence[PushedMetrics]) -> None:
        """Write these, each to its partition. What stays behind after `TRY_S` is lost."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + TRY_S
        left = list(some)
        while left:
            name = self._metadata.config.client_metrics_topic
            if not name:  # nobody wants them any more
                self._counts.lost += len(left)
                return
            error: MoldauError
            try:
                left = await self._written(name, left, end_s - loop.time())
                continue
            except MoldauError as failed:
                error = failed
            may_retry = not isinstance(error, KafkaError) or error.retriable
            if not may_retry or loop.time() >= end_s:
                self._lose(name, left, error)
                return
            await asyncio.sleep(RETRY_S)

    def _lose(self, topic: str, lost: Sequence[PushedMetrics], error: MoldauError) -> None:
        self._counts.lost += len(lost)
        notices.warning(topic, "metrics of clients could not be written to the topic %s and are lost: %s", topic, error)

    async def _written(self, name: str, some: Sequence[PushedMetrics], seconds: float) -> list[PushedMetrics]:
        """Write those of the partition of the first one; returns the others. Raises `MoldauError`."""
        topic = self._metadata.image.topics.get(name) or await self._ensure(name)
        if isinstance(topic, Refusal):
            raise KafkaError(topic.code, topic.message)
        count = len(topic.partitions)
        number = positive_hash(some[0].key) % count
        here = [one for one in some if positive_hash(one.key) % count == number]
        await self._append(topic, number, here, seconds)
        return [one for one in some if positive_hash(one.key) % count != number]

    async def _append(self, topic: TopicImage, number: int, some: Sequence[PushedMetrics], seconds: float) -> None:
        leader = topic.partitions[number].leader
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        rows = [Row(one.key, one.payload, one.time_ms, one.headers) for one in some]
        batch = await self._runtime.run(partial(encode_batch, rows, codec=ZSTD))
        try:
            if leader == self._metadata.broker_id:
                await self._append_here(TopicPartition(topic.name, number), batch, seconds)
            else:
                await self._append_there(leader, topic, number, bytes(batch), seconds)
            self._counts.written += len(some)
        except KafkaError as error:
            if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
            if len(some) == 1:
                self._lose(topic.name, some, error)
                return
            middle = len(some) // 2
            await self._append(topic, number, some[:middle], seconds)
            await self._append(topic, number, some[middle:], seconds)

    async def _append_here(self, tp: TopicPartition, batch: bytearray, seconds: float) -> None:
        replica = self._replicas.hosted.get((tp.topic, tp.partition))
        if replica is None:
            raise KafkaError(self._replicas.absence(tp.topic, None, tp.partition))
        now_ms = self._runtime.clock.now_ms()
        planned = plan_append(replica, memoryview(batch), _TERMS, now_ms)
        outcome = planned if isinstance(planned, AppendRefusal) else await append_off_loop(planned, now_ms)
        if isinstance(outcome, AppendRefusal):
            raise KafkaError(outcome.error, outcome.message)
        if outcome.error:
            raise KafkaError(error_of(outcome.error))
        await committed(replica, outcome, max(seconds, 1.0))

    async def _append_there(self, leader: int, topic: TopicImage, number: int, batch: bytes, seconds: float) -> None:
        if self._ask is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        timeout_ms = int(max(seconds, 1.0) * 1000)
        partitions = [PartitionProduceData(index=number, records=batch)]
        data = TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=partitions)
        request = ProduceRequest(acks=ALL_IN_SYNC, timeout_ms=timeout_ms, topic_data=[data])
        response = await self._ask(leader, PRODUCE, request, timeout_ms)
        for answered in response.responses:
            for part in answered.partition_responses:
                if part.error_code:
                    raise KafkaError(error_of(part.error_code), part.error_message)
