"""A mirror by MirrorMaker's rules between two clusters of this process, and what each of them has."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from harness.patience import SECONDS, Deadline
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.errors import KafkaError
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.foreign_worker import ForeignWorker
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.foreign.target_topics import reader, records_from
from moldau.names import TopicPartition

SETTINGS = ForeignSettings(
    re.compile(".*"),
    ReplicationPolicy("A", "B"),
    refresh_s=0.05,
    checkpoints_s=0.05,
    heartbeats_s=0.05,
    lanes=2,
)
Content = tuple[Any, ...]


class ForeignMirroring:
    """`workers` are at work; they can be stopped, and others started."""

    def __init__(self, source: ClusterEnd, target: ClusterEnd, settings: ForeignSettings):
        self.source = source
        self.target = target
        self.settings = settings
        self.workers: dict[ForeignWorker, asyncio.Task[None]] = {}

    async def start(self) -> ForeignWorker:
        """Start a worker with connections of its own, as in a process of its own."""
        made: asyncio.Future[ForeignWorker] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            async with (
                ClusterEnd(self.source.brokers, "--from") as one,
                ClusterEnd(self.target.brokers, "--to") as other,
            ):
                made.set_result(ForeignWorker(one, other, self.settings))
                await made.result().run()

        task = asyncio.ensure_future(work())
        worker = await made
        self.workers[worker] = task
        return worker

    @property
    def worker(self) -> ForeignWorker:
        return next(iter(self.workers))

    async def stop(self) -> None:
        """Stop all workers."""
        tasks, self.workers = [*self.workers.values()], {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def until(self, holds: Callable[[], object | Awaitable[object]]) -> Any:
        """Wait until this holds; returns what it was then. Raises the failure of a worker."""
        deadline = Deadline(
            3 * SECONDS
        )  # a worker that was killed keeps its lanes for a session, and a restart adds one
        while True:
            what = holds()
            try:
                found = await what if asyncio.iscoroutine(what) else what
            except KafkaError:
                found = None
            if found:
                return found
            for task in self.workers.values():
                if task.done():
                    task.result()
            assert not deadline.passed, [(one.told(), one.board.stopped, one.refused) for one in self.workers]
            await asyncio.sleep(0.02)

    async def until_equal(
        self, tp: TopicPartition, remote: str = "", meanwhile: Callable[[], None] = lambda: None
    ) -> list[Content]:
        """Wait until the mirror of a partition has what the source has, no record twice; returns that."""
        wanted = await contents(self.source, tp)
        there = TopicPartition(remote or self.settings.policy.remote(tp.topic), tp.partition)

        async def is_equal() -> bool:
            meanwhile()
            views = (await self.target.admin.list_topics()).get(there.topic)
            if views is None or there.partition not in views.partitions:
                return not wanted
            has = await contents(self.target, there)
            assert has == wanted[: len(has)], (there, len(has), len(wanted))
            return len(has) == len(wanted)

        await self.until(is_equal)
        return wanted


@contextlib.asynccontextmanager
async def foreign_mirroring(
    source: str, target: str, topics: str, start: bool = True, **changes: Any
) -> AsyncIterator[ForeignMirroring]:
    """`source`, `target`: addresses. `changes`: of the settings."""
    async with ClusterEnd(source, "--from") as one, ClusterEnd(target, "--to") as other:
        mirror = ForeignMirroring(one, other, replace(SETTINGS, topics=re.compile(topics), **changes))
        if start:
            await mirror.start()
        try:
            yield mirror
        finally:
            await mirror.stop()


async def contents(end: ClusterEnd, tp: TopicPartition) -> list[Content]:
    """The committed records of a partition, without their offsets."""
    async with reader(end) as consumer:
        return [record[1:2] + record[3:6] async for record in records_from(consumer, tp)]


async def records_of(end: ClusterEnd, topic: str, partition: int = 0) -> list[Any]:
    """The committed records of a partition; none if there is no such topic."""
    if topic not in await end.admin.list_topics():
        return []
    consumer: AsyncConsumer
    async with reader(end) as consumer:
        return [record async for record in records_from(consumer, TopicPartition(topic, partition))]
