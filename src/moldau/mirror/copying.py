"""The copying itself: each partition is fetched from the source's leader, and appended at its mirror's leader.

a partition is assigned     its mirror's leader is asked where the log ends, and both logs compared (`preparing`)
it can be fetched           it joins the flow of the broker that leads it in the source (`leader_flow`)
its leader is another one   it leaves that flow, and is asked and compared again
an error                    the same, after a pause; the other partitions go on (`copied_partitions`)
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping

from moldau.client.routing import Router
from moldau.mirror.copied_partitions import CopiedPartitions, CopiedTopic
from moldau.mirror.copies import PartitionCopy
from moldau.mirror.counters import MirrorCounters
from moldau.mirror.leader_flow import LeaderFlow
from moldau.mirror.mirror_leaders import MirrorLeaders
from moldau.mirror.preparing import Preparation
from moldau.mirror.requests import by_leader
from moldau.names import TopicPartition
from moldau.tasks import ended


class Copying:
    """`topics`: those that may be copied (`mirror`). Runs in `run` until it is cancelled; `assign` says what is
    copied."""

    def __init__(self, source: Router, target: Router):
        self._source = source
        self._target = target
        self._copied = CopiedPartitions()
        self._mirrors = MirrorLeaders(target, self._copied)
        self._preparing = Preparation(source, target, self._copied, self._mirrors)
        self._flows: dict[int, LeaderFlow] = {}
        self._under_preparation: set[TopicPartition] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def topics(self) -> Mapping[str, CopiedTopic]:
        return self._copied.topics

    @property
    def copies(self) -> Mapping[TopicPartition, PartitionCopy]:
        return self._copied.copies

    @property
    def counters(self) -> MirrorCounters:
        return self._copied.counters

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Copy these from now on, and no others."""
        self._copied.assign(partitions)
        self._changed.set()

    def mirror(self, topics: Mapping[str, CopiedTopic]) -> None:
        """These topics may be copied now, and no others."""
        self._copied.mirror(topics)
        self._changed.set()

    async def run(self) -> None:
        try:
            while True:
                self._changed.clear()
                await self._look()
                stirred = asyncio.ensure_future(self._changed.wait())
                try:
                    done, _ = await asyncio.wait(
                        {stirred, *self._tasks}, timeout=self._copied.paused_s, return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    stirred.cancel()
                for task in self._tasks & done:
                    self._tasks.discard(task)
                    task.result()
        finally:
            await ended(*self._tasks)

    async def _look(self) -> None:
        """Prepare what is not followed, or followed at a broker that leads it no longer."""
        led = await by_leader(self._source, self._copied.ready())
        for tp, failure in led.failures.items():
            self._copied.pause(tp, f"the source: {failure}")
        for leader, partitions in led.leaders.items():
            joining: list[TopicPartition] = []
            for tp in partitions:
                copy = self._copied.copied(tp)
                if copy is None or copy.is_followed(leader, self._source.view.leader_epoch(tp)):
                    continue
                if tp not in self._under_preparation:
                    copy.forget()
                    joining.append(tp)
            if joining:
                self._under_preparation |= {*joining}
                self._begin(self._prepare(leader, joining))

    async def _prepare(self, leader: int, partitions: Collection[TopicPartition]) -> None:
        """By leaders of the mirrors, so that one that does not answer holds up its own partitions only."""
        mirrored = await by_leader(self._target, partitions)
        for tp, failure in mirrored.failures.items():
            self._copied.pause(tp, f"the mirror: {failure}")
        self._under_preparation -= mirrored.failures.keys()
        await asyncio.gather(*(self._join(leader, some) for some in mirrored.leaders.values()))

    async def _join(self, leader: int, partitions: Collection[TopicPartition]) -> None:
        try:
            prepared = await self._preparing.prepare(leader, partitions)
        finally:
            self._under_preparation -= {*partitions}
        if not prepared:
            return
        flow = self._flows.get(leader)
        is_new = flow is None or flow.is_over
        if flow is None or is_new:
            flow = self._flows[leader] = LeaderFlow(leader, self._source, self._mirrors, self._copied)
        for copy in prepared:
            copy.join(flow.session, self.topics[copy.tp.topic].topic_id)
        if is_new:
            self._begin(flow.run())

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))
        self._changed.set()
