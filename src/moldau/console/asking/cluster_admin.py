"""`ClusterAdmin`: all that the console asks a cluster for with the clients of one user.

The questions about topics, groups, mirrors and the whole cluster are in modules of their own. Here are those for plots,
and the clients that read and write records.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from moldau.client.cluster_view import TopicView
from moldau.client.producing.async_producer import AsyncProducer
from moldau.client.producing.delivery import Delivered
from moldau.client.security.brokers import Brokers
from moldau.console.asking import keeping
from moldau.console.asking.following import TopicFollower
from moldau.console.asking.group_questions import GroupQuestions
from moldau.console.asking.health_question import HealthQuestion
from moldau.console.asking.mirror_question import MirrorQuestion
from moldau.console.asking.throughput import GROWTH_KEPT_S, PARTITIONS_MAX, GrowthLook, growth, leaders_of
from moldau.console.search.outgoing import RecordToSend
from moldau.monotonic import monotonic_s
from moldau.names import INTERNAL_TOPICS

ANSWER_S = 5.0
"""A broker that does not answer for this long has a gap in the plot."""


class ClusterAdmin(GroupQuestions, HealthQuestion, MirrorQuestion):
    """An admin client of the console; `client` has its settings by Kafka's names."""

    def __init__(self, client: Mapping[str, Any]):
        super().__init__(client)
        self._producer: AsyncProducer | None = None
        self._growth: GrowthLook | None = None
        self._dialled: set[int] = set()

    async def log_in(self) -> None:
        """Connect to one broker. Raises `AuthenticationFailed` and other `KafkaError`s."""
        await self._router.retrying(self._router.any, timeout_ms=5_000)

    @property
    def brokers(self) -> Brokers:
        """The brokers, with the settings of the user's clients."""
        given = {name: value for name, value in self._client.items() if name != "bootstrap.servers"}
        return Brokers(str(self._client["bootstrap.servers"]), given)

    def follower(self, topic: str, starts: Mapping[int, int], *, committed: bool) -> TopicFollower:
        return TopicFollower(self._client, topic, starts, committed=committed)

    async def produce(self, topic: str, record: RecordToSend) -> Delivered:
        """Send one record, and wait until all in-sync replicas have it. Raises `KafkaError` and `ValueError`."""
        if self._producer is None:
            settings = {"client.id": "moldau-console", "delivery.timeout.ms": "20000", "request.timeout.ms": "10000"}
            self._producer = AsyncProducer({**self._client, **settings})
            await self._producer.start()
        delivery = await self._producer.send(
            topic, record.value, record.key, partition=record.partition, headers=record.headers
        )
        await self._producer.flush()
        return await delivery

    async def close(self) -> None:
        """Close the connections; calls that await a reply fail."""
        if self._producer is not None:
            await self._producer.close()
        await super().close()

    async def throughput(self) -> dict[str, float]:
        """Records and bytes per second of the whole cluster; empty at the first look, and if it is too large."""
        return await self._once("throughput", self._throughput, keeping.PULSE_KEPT_S, most_s=GROWTH_KEPT_S)

    async def _throughput(self) -> dict[str, float]:
        if (await self.health()).partitions > PARTITIONS_MAX:
            return {}
        topics: dict[str, TopicView] = await self._once("all topics", self.list_topics)
        leaders, before = leaders_of(topics), self._growth
        now_s, ends = asyncio.get_running_loop().time(), await self.ends(leaders)
        found = await self.known_sizes(topics)
        sizes = {tp: found[tp][leader] for tp, leader in leaders.items() if leader in found.get(tp, {})}
        self._growth = GrowthLook(now_s, ends, sizes)
        return growth(before, self._growth)

    async def answer_times(self) -> dict[int, float | None]:
        """Broker -> how long it took to answer a small request just now, in ms; None for one that did not answer."""
        return await self._once("answer times", self._answer_times, keeping.PULSE_KEPT_S, 0)

    async def _answer_times(self) -> dict[int, float | None]:
        brokers = [*(await self.cluster()).brokers]

        async def ask(broker_id: int) -> float:
            async with asyncio.timeout(ANSWER_S):
                if broker_id not in self._dialled:
                    await self.api_versions(broker_id)
                    self._dialled.add(broker_id)
                began_s = monotonic_s()
                await self.api_versions(broker_id)
                return (monotonic_s() - began_s) * 1_000

        answers = await asyncio.gather(*map(ask, brokers), return_exceptions=True)
        times = zip(brokers, answers, strict=True)
        return {broker: None if isinstance(took, BaseException) else round(took, 3) for broker, took in times}


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
