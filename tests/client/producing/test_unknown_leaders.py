"""A producer whose metadata names a leader that is not among the brokers: it asks again after a wait."""

import asyncio
from typing import Any

import pytest

from moldau.client.producing.producer import AsyncProducer
from moldau.errors import NotDelivered
from moldau.protocol.apis import INIT_PRODUCER_ID, METADATA, PRODUCE
from tests.client.scripted_cluster import OFFERED, TOPIC, ScriptedCluster

GONE = 7


class LeaderIsGone(ScriptedCluster):
    """`asked` counts the requests for metadata."""

    offered = (*OFFERED, INIT_PRODUCER_ID, PRODUCE)

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        answer = await super()._answer(broker, key, request)
        if key == METADATA.key:
            self.asked += 1
            answer.topics[0].partitions[0].leader_id = GONE
        return answer


def test_waits_between_requests_grow() -> None:
    async def scenario() -> int:
        async with LeaderIsGone().running() as cluster:
            assert isinstance(cluster, LeaderIsGone)
            producer = AsyncProducer(cluster.bootstrap, linger_ms=0, delivery_timeout_ms=500)
            with pytest.raises(NotDelivered, match="not acknowledged within the delivery time-out"):
                async with producer:
                    await producer.send(TOPIC, b"value", partition=0)
            return cluster.asked

    # after 0, 50, 150, 350 ms, with up to a fifth less, and for the number of partitions
    assert asyncio.run(scenario()) < 12
