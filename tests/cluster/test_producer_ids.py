"""Producer ids come in blocks, and none comes twice."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moldau.cluster.producer_ids import AHEAD, MemberProducerIds
from moldau.cluster.state import layout
from moldau.metadata_store.store import SessionOver
from moldau.simulation.world import World
from moldau.simulation.zookeeper import ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.opening import open_cluster


def test_producer_ids_come_in_blocks_and_a_restart_begins_the_next(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        found = []
        for count in (2, layout.PRODUCER_IDS_PER_BLOCK + 1, 1):
            cluster = await open_cluster(tmp_path)
            for _ in range(count):
                taken = cluster.producer_ids.next()
                found.append(taken if isinstance(taken, int) else await taken)
            await cluster.close()
        return found

    found = asyncio.run(scenario())
    assert found == [0, 1, *range(1000, 2001), 3000]


def test_producer_ids_taken_at_once_differ(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        cluster = await open_cluster(tmp_path)

        async def take() -> int:
            taken = cluster.producer_ids.next()
            return taken if isinstance(taken, int) else await taken

        found = await asyncio.gather(*(take() for _ in range(1500)))
        await cluster.close()
        return found

    assert len(set(asyncio.run(scenario()))) == 1500


def with_members(scenario: Callable[[ModelZooKeeper, Callable[[int], MemberProducerIds]], Awaitable[None]]) -> None:
    """A function that makes the producer ids of a broker of several."""

    async def whole(_: World) -> None:
        store = ModelZooKeeper()
        await ModelSession(store).multi(layout.new_cluster("c"))

        def member(broker_id: int) -> MemberProducerIds:
            session = ModelSession(store)
            return MemberProducerIds(broker_id, lambda: session)

        await scenario(store, member)

    World(0).run(whole)


async def taken(ids: MemberProducerIds, count: int) -> list[int]:
    found = []
    for _ in range(count):
        one = ids.next()
        found.append(one if isinstance(one, int) else await one)
    return found


def test_brokers_of_one_cluster_never_assign_the_same_producer_id() -> None:
    async def scenario(_: ModelZooKeeper, member: Callable[[int], MemberProducerIds]) -> None:
        members = [member(number) for number in (1, 2, 3)]
        for one in members:
            one.take_ahead()
        found = await asyncio.gather(*(taken(one, 2500) for one in members for _ in range(2)))
        assert len({one for ids in found for one in ids}) == 6 * 2500
        for one in members:
            await one.stop()

    with_members(scenario)


def test_producers_get_ids_while_the_store_is_away_from_the_blocks_that_were_taken_ahead() -> None:
    async def scenario(store: ModelZooKeeper, member: Callable[[int], MemberProducerIds]) -> None:
        ids = member(1)
        ids.take_ahead()
        await asyncio.sleep(1)
        await taken(ids, layout.PRODUCER_IDS_PER_BLOCK - AHEAD + 1)
        await asyncio.sleep(1)
        store.lose_quorum()
        left = AHEAD - 1 + layout.PRODUCER_IDS_PER_BLOCK
        assert len(set(await taken(ids, left))) == left
        with pytest.raises(SessionOver):
            await taken(ids, 1)
        await ids.stop()

    with_members(scenario)
