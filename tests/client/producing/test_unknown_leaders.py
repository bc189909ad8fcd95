"""A producer whose metadata name no broker for a partition: it asks again after a wait."""

import asyncio
from typing import Any

import pytest

from moldau.client.producing.producer import AsyncProducer
from moldau.errors import NotDelivered
from moldau.protocol.apis import INIT_PRODUCER_ID, METADATA, PRODUCE
from moldau.protocol.messages.metadata import MetadataResponsePartition
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


class PartitionIsGone(LeaderIsGone):
    """Only the first answer has a second partition, which has no leader."""

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        answer = await super()._answer(broker, key, request)
        if key == METADATA.key and self.asked == 1:
            answer.topics[0].partitions.append(MetadataResponsePartition(partition_index=1, leader_id=-1))
        return answer


@pytest.mark.parametrize(("kind", "partition"), [(LeaderIsGone, 0), (PartitionIsGone, 1)])
def test_waits_between_requests_grow(kind: type[LeaderIsGone], partition: int) -> None:
    async def scenario() -> int:
        async with kind().running() as cluster:
            assert isinstance(cluster, LeaderIsGone)
            producer = AsyncProducer(cluster.bootstrap, linger_ms=0, delivery_timeout_ms=500)
            with pytest.raises(NotDelivered, match="not acknowledged within the delivery time-out"):
                async with producer:
                    await producer.send(TOPIC, b"value", partition=partition)
            return cluster.asked

    # after 0, 50, 150, 350 ms, with up to a fifth less, and for the number of partitions
    assert asyncio.run(scenario()) < 12
