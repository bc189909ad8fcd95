"""Which broker a client asks."""

import asyncio
from typing import Any

import pytest

from harness.patience import within
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.peers.link import Link
from moldau.protocol.apis import METADATA
from moldau.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_cluster import TOPIC, ScriptedCluster


class Hanging(ScriptedCluster):
    """Broker 0 does not answer any more once it `hangs`."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        if broker == 0 and self.hangs:
            await asyncio.get_running_loop().create_future()
        return await super()._answer(broker, key, request)


def test_metadata_is_asked_of_a_broker_that_has_answered_all_before() -> None:
    async def scenario() -> None:
        async with Hanging().running() as cluster, Router(cluster.bootstrap) as router:
            await router.refresh([TOPIC])
            links = [await router.broker(number) for number in (0, 1)]
            assert isinstance(cluster, Hanging)
            cluster.hangs = True
            unanswered = links[0].post(METADATA, MetadataRequest())
            assert await router.any() is links[1]
            await within(router.refresh([TOPIC]))
            assert not unanswered.done()
            unanswered.cancel()

    asyncio.run(scenario())


class Outdated(ScriptedCluster):
    """Broker 0 is cut off from the cluster and goes on saying that it leads; broker 1 does."""

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        answer = await super()._answer(broker, key, request)
        if key == METADATA.key:
            for topic in answer.topics:
                for part in topic.partitions:
                    part.leader_id, part.leader_epoch = (0, 1) if broker == 0 else (1, 2)
        return answer


def test_a_broker_that_goes_on_naming_a_leader_that_does_not_lead_is_not_asked_again() -> None:
    async def scenario() -> None:
        async with Outdated().running() as cluster, Router(cluster.bootstrap) as router:
            tp = TopicPartition(TOPIC, 0)
            leaders = []
            for _ in range(4):
                leaders.append(await within(router.leader(tp)))
                router.stale(TOPIC)
            assert leaders[-2:] == [1, 1] and 0 in leaders

    asyncio.run(scenario())


def test_a_doubtful_broker_is_asked_rather_than_waiting_for_others_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialled: list[Address] = []

    async def scenario() -> None:
        async with Outdated().running() as cluster, Router(cluster.bootstrap) as router:
            link = await router.any()
            [(router._doubted, _)] = router._links
            router.view.brokers = {5: Address("192.0.2.1", 9), 6: Address("192.0.2.2", 9)}  # of the documentation's net

            async def refused(address: Address, *_: object) -> Link:
                dialled.append(address)
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "cannot connect")

            monkeypatch.setattr("moldau.client.routing.connect", refused)
            for _ in range(3):
                assert await router.any() is link

    asyncio.run(scenario())
    assert len(dialled) == 1


def test_links_that_have_ended_do_not_stay() -> None:
    async def scenario() -> None:
        async with ScriptedCluster().running() as cluster, Router(cluster.bootstrap) as router:
            await router.refresh([TOPIC])
            for number in (0, 1):
                link = await router.broker(number, "earlier")
                link.connection.close()
            with pytest.raises(KafkaError):
                await router.link(Address("127.0.0.1", 1))
            await router.broker(0, "now")
            assert [purpose for _, purpose in router._links] == ["", "now"]

    asyncio.run(scenario())
