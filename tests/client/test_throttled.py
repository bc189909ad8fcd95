"""A broker answers at once and reads nothing for a while, because the client has used up a quota (KIP-219)."""

import asyncio
from typing import Any

import pytest

from moldau import aio
from moldau.client.routing import Router
from moldau.net.connection import ClientConnection
from moldau.protocol.apis import METADATA, PRODUCE
from moldau.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.client.scripted_cluster import OFFERED, TOPIC, ScriptedCluster

THROTTLE_MS = 60_000


class Throttling(ScriptedCluster):
    """The replies of one API have a throttle time."""

    offered = (*OFFERED, PRODUCE)

    def __init__(self, throttled: int) -> None:
        super().__init__()
        self.throttled = throttled

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        if key == PRODUCE.key:
            partitions = [PartitionProduceResponse(index=0, base_offset=0)]
            answer: Any = ProduceResponse(responses=[TopicProduceResponse(name=TOPIC, partition_responses=partitions)])
        else:
            answer = await super()._answer(broker, key, request)
        if key == self.throttled:
            answer.throttle_time_ms = THROTTLE_MS
        return answer


@pytest.fixture
def muted_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    noted: list[float] = []
    monkeypatch.setattr(ClientConnection, "muted_for", lambda _, seconds: noted.append(seconds))
    return noted


def test_requests_get_more_time_after_a_reply_that_says_so(muted_s: list[float]) -> None:
    async def scenario() -> None:
        async with Throttling(METADATA.key).running() as cluster, Router(cluster.bootstrap) as router:
            await router.refresh([TOPIC])
            assert muted_s == [THROTTLE_MS / 1000]

    asyncio.run(scenario())


def test_so_do_those_of_a_producer(muted_s: list[float]) -> None:
    async def scenario() -> None:
        async with Throttling(PRODUCE.key).running() as cluster:
            async with aio.Producer(cluster.bootstrap, enable_idempotence=False, linger_ms=0) as producer:
                assert (await (await producer.send(TOPIC, b"x"))).offset == 0
            assert muted_s == [THROTTLE_MS / 1000]

    asyncio.run(scenario())
