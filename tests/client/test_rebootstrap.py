"""A client that was sent to the wrong broker starts again from its bootstrap servers (KIP-1242, KIP-1102)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.listening import free_port
from harness.patience import within
from moldau.aio import Admin
from moldau.client.blocking import Caller
from moldau.client.routing import Router, router_of
from moldau.client.settings import ClientSettings
from moldau.errors import ConfigError, ErrorCode, NetworkException, RebootstrapRequired
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import METADATA
from tests.client.scripted_cluster import TOPIC, ScriptedCluster

LEADER = TopicPartition(TOPIC, 0)
NOBODY = (None, -1)


class Checking(ScriptedCluster):
    """A cluster with an id; `says` is the error of its Metadata replies."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster_id = "first"
        self.says = ErrorCode.NONE

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        answer = await super()._answer(broker, key, request)
        if key == METADATA.key and self.says:
            answer.error_code = self.says
            self.says = ErrorCode.NONE
        return answer


@asynccontextmanager
async def routed(**settings: Any) -> AsyncIterator[tuple[Checking, Router]]:
    async with Checking().running() as cluster:
        assert isinstance(cluster, Checking)
        async with router_of(ClientSettings(cluster.bootstrap, **settings)) as router:
            yield cluster, router


async def leader_asked(router: Router) -> int:
    """The id of the leader, once a link to it is open."""

    async def attempt() -> int:
        leader = await router.leader(LEADER)
        await router.broker(leader)
        return leader

    return await within(router.retrying(attempt))


def test_links_name_the_broker_that_they_are_meant_for_once_the_cluster_is_known() -> None:
    async def scenario() -> None:
        async with routed() as (cluster, router):
            await router.refresh([TOPIC])
            assert cluster.meant == [NOBODY]
            for number in (0, 1):
                await router.broker(number, "group")
            assert cluster.meant[1:] == [("first", 0), ("first", 1)]

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(5))
def test_an_older_broker_is_asked_for_its_versions_as_before(version: int) -> None:
    async def scenario() -> None:
        async with routed() as (cluster, router):
            cluster.api_versions_max = version
            await router.refresh([TOPIC])
            await router.broker(1)
            assert cluster.meant == [NOBODY, NOBODY]

    asyncio.run(scenario())


def change_cluster(cluster: Checking) -> None:
    cluster.cluster_id = "second"


def change_ids(cluster: Checking) -> None:
    cluster.ids = [7, 8]


@pytest.mark.parametrize(("change", "leader"), [(change_cluster, 0), (change_ids, 7)])
def test_where_another_broker_answers_the_client_starts_again(change: Callable[[Checking], None], leader: int) -> None:
    async def scenario() -> None:
        async with routed() as (cluster, router):
            await router.refresh([TOPIC])
            opened = await router.any()
            change(cluster)
            with pytest.raises(NetworkException, match=r"is not broker 1 of cluster first: this is the address"):
                await router.broker(1)
            assert (router.view.brokers, router.view.topics, router.view.cluster_id) == ({}, {}, None)
            assert opened.closed
            cluster.meant.clear()
            assert await leader_asked(router) == leader
            assert cluster.meant[0] == NOBODY, "a bootstrap server can be any broker"
            assert router.view.cluster_id == cluster.cluster_id

    asyncio.run(scenario())


def test_a_client_that_starts_again_dials_no_broker_that_it_knew_before() -> None:
    async def scenario() -> None:
        async with routed() as (cluster, router):
            await router.refresh([TOPIC])
            (await router.any()).connection.close()
            change_cluster(cluster)
            cluster.meant.clear()
            with pytest.raises(NetworkException, match="is not broker 0 of cluster first"):
                await router.refresh([TOPIC])
            assert cluster.meant == [("first", 0)]
            await router.refresh([TOPIC])
            assert cluster.meant[1:] == [NOBODY] and router.view.cluster_id == "second"

    asyncio.run(scenario())


def test_two_links_that_were_misled_by_the_same_metadata_start_the_client_again_once() -> None:
    async def scenario() -> None:
        async with routed() as (cluster, router):
            await router.refresh([TOPIC])
            change_cluster(cluster)
            began: list[str] = []
            begin_again = router._begin_again

            def counted(why: str) -> None:
                began.append(why)
                begin_again(why)

            router._begin_again = counted  # type: ignore[method-assign]
            misled = [router.broker(number, "group") for number in (0, 1)]
            failed = await within(asyncio.gather(*misled, return_exceptions=True))
            assert [type(error) for error in failed] == [NetworkException] * 2
            assert len(began) == 1

    asyncio.run(scenario())


def test_a_broker_that_says_so_in_its_metadata_starts_the_client_again() -> None:
    async def scenario() -> None:
        async with routed() as (cluster, router):
            await router.refresh([TOPIC])
            cluster.says = ErrorCode.REBOOTSTRAP_REQUIRED
            router.stale(TOPIC)
            cluster.meant.clear()
            assert await leader_asked(router) == 0
            assert cluster.meant[0] == NOBODY, "the link of before was closed"

    asyncio.run(scenario())


def test_a_client_that_does_not_recover_names_no_broker_and_fails() -> None:
    async def scenario() -> None:
        async with routed(metadata_recovery_strategy="none") as (cluster, router):
            await router.refresh([TOPIC])
            change_cluster(cluster)
            await router.broker(1)
            assert cluster.meant == [NOBODY, NOBODY]
            cluster.says = ErrorCode.REBOOTSTRAP_REQUIRED
            with pytest.raises(RebootstrapRequired):
                await router.refresh([TOPIC])

    asyncio.run(scenario())


@pytest.mark.parametrize("recovers", [True, False])
def test_only_a_client_that_recovers_asks_a_bootstrap_server_when_no_known_broker_answers(recovers: bool) -> None:
    async def scenario() -> None:
        async with routed(metadata_recovery_strategy="rebootstrap" if recovers else "none") as (_, router):
            await router.refresh([TOPIC])
            (await router.any()).connection.close()
            router.view.brokers = {5: Address("127.0.0.1", free_port())}
            if recovers:
                await router.refresh([TOPIC])
                assert set(router.view.brokers) == {0, 1}
            else:
                with pytest.raises(NetworkException, match="cannot connect"):
                    await router.refresh([TOPIC])

    asyncio.run(scenario())


def test_the_check_can_be_switched_off() -> None:
    async def scenario() -> None:
        async with routed(metadata_cluster_check_enable=False) as (cluster, router):
            await router.refresh([TOPIC])
            change_cluster(cluster)
            await router.broker(1)
            assert cluster.meant == [NOBODY, NOBODY]
            cluster.says = ErrorCode.REBOOTSTRAP_REQUIRED
            router.stale(TOPIC)
            assert await leader_asked(router) == 0

    asyncio.run(scenario())


def test_another_strategy_is_refused() -> None:
    with pytest.raises(ConfigError, match="metadata_recovery_strategy='never' is not one of rebootstrap, none"):
        Admin("localhost:9092", metadata_recovery_strategy="never")


def test_a_client_on_blocking_sockets_starts_again_too() -> None:
    def scenario(cluster: Checking) -> None:
        with Caller(cluster.bootstrap, timeout_ms=10_000) as caller:
            caller.leader(LEADER)
            change_cluster(cluster)
            caller.close()
            cluster.meant.clear()
            with pytest.raises(NetworkException, match="is not broker 0 of cluster first"):
                caller.leader(LEADER)
            assert caller.retrying(lambda: caller.leader(LEADER)) is caller.any()
            assert cluster.meant == [("first", 0), NOBODY]
            assert caller.view.cluster_id == "second"
            cluster.cluster_id = "third"
            caller.close()
            cluster.meant.clear()
            with pytest.raises(NetworkException, match="is not broker 0 of cluster second"):
                caller.refresh([TOPIC])
            assert cluster.meant == [("second", 0)]
            cluster.says = ErrorCode.REBOOTSTRAP_REQUIRED
            with pytest.raises(NetworkException, match="says that its clients must start again"):
                caller.refresh([TOPIC])
            assert caller.view.cluster_id is None
            caller.refresh([TOPIC])
            assert cluster.meant[1:] == [NOBODY, NOBODY] and caller.view.cluster_id == "third"

    async def served() -> None:
        async with Checking().running() as cluster:
            assert isinstance(cluster, Checking)
            await within(asyncio.to_thread(scenario, cluster))

    asyncio.run(served())
