"""A mirror between two brokers of this process, and what each of them has, byte by byte."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable

from harness.patience import Deadline
from moldau.mirror.ends import NO_ID, ClusterEnd
from moldau.mirror.requests import fetch
from moldau.mirror.worker import MirrorSettings, MirrorWorker
from moldau.names import TopicPartition
from moldau.records.batch import batches, place
from moldau.testing import Broker, Cluster

REFRESH_S = 0.05


class Mirroring:
    """`worker` is at work; it can be stopped, and another one started."""

    def __init__(self, source: ClusterEnd, target: ClusterEnd, settings: MirrorSettings):
        self.source = source
        self.target = target
        self.settings = settings
        self.start()

    def start(self) -> None:
        self.worker = MirrorWorker(self.source, self.target, self.settings)
        self._task = asyncio.ensure_future(self.worker.run())

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for the worker to have done this. Raises its failure."""
        deadline = Deadline()
        while not holds():
            if self._task.done():
                self._task.result()
            assert not deadline.passed
            await asyncio.sleep(0.01)

    def stopped(self, tp: TopicPartition) -> str:
        copy = self.worker.copying.copies.get(tp)
        return copy.stopped if copy else ""

    async def until_end(self, tp: TopicPartition, end: int) -> None:
        """Wait until the mirror of a partition ends there, as the worker knows."""
        await self.until(lambda: (copy := self.worker.copying.copies.get(tp)) is not None and copy.end == end)

    async def until_equal(self, tp: TopicPartition) -> bytes:
        """Wait until both have the same bytes of a partition; returns them."""
        wanted = await log_of(self.source, tp)
        deadline = Deadline()
        while (has := await log_of(self.target, tp)) != wanted:
            assert wanted.startswith(has)
            if self._task.done():
                self._task.result()
            assert not deadline.passed
            await asyncio.sleep(0.01)
        return wanted


@contextlib.asynccontextmanager
async def mirroring(source: Broker | Cluster, target: Broker | Cluster, topics: str) -> AsyncIterator[Mirroring]:
    async with ClusterEnd(source.address, "--from") as one, ClusterEnd(target.address, "--to") as other:
        started = Mirroring(one, other, MirrorSettings(re.compile(topics), refresh_s=REFRESH_S))
        try:
            yield started
        finally:
            await started.stop()


async def log_of(end: ClusterEnd, tp: TopicPartition) -> bytes:
    """All batches of a partition from its log's start on, without their leader epochs; none if there is no such
    partition."""
    topics = await end.topics()
    if tp.topic not in topics or tp.partition not in topics[tp.topic].partitions:
        return b""
    start, finish = (await end.admin.watermarks(tp.topic))[tp]
    found = bytearray()
    while start < finish:
        leader, ids = await end.router.leader(tp), {tp.topic: topics[tp.topic].topic_id or NO_ID}
        answer = (await fetch(end.router, leader, {tp: start}, ids, 0))[tp]
        assert not answer.error, answer
        piece = bytearray(answer.records)
        for position, header in [*batches(piece)]:
            place(piece, header.base_offset, 0, position)
            start, size = header.next_offset, position + header.size
        found += piece[:size]
    return bytes(found)
