"""What administrators are told while ZooKeeper answers no broker of three: soon, and why."""

import asyncio

import pytest

from moldau.client.administration.admin import AsyncAdmin
from moldau.cluster.lease_keeping import AWAY_S, QUESTIONS
from moldau.error_codes import ErrorCode
from moldau.errors import ChangeTimedOut
from moldau.handlers.between_brokers.forwarding import GRACE_S
from moldau.simulation.world import SESSION_S, World
from tests.worlds.replicated import NAMES
from tests.worlds.test_cuts import controllers, whole_cluster

SOON_S = GRACE_S + 1
SAYS = r"^topic later: ZooKeeper has not answered broker \d for \d+ s, and nothing can be created or changed until it "


async def told_s(world: World, broker: str) -> float:
    """How many seconds an administrator of that broker waited for the sentence."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with AsyncAdmin(f"{broker}:9092", runtime=world.runtime(world.host("admin"))) as admin:
        with pytest.raises(ChangeTimedOut, match=SAYS) as refused:
            await admin.create_topic("later", partitions=2)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    return loop.time() - began_s


async def away(world: World) -> None:
    await whole_cluster(world)
    [first] = controllers(world)
    other = next(name for name in NAMES if name != first)
    for name in NAMES:
        world.cut_from_zookeeper(name)
    soon = [world.on("admin", told_s(world, name)) for name in (first, other)]
    waited = await asyncio.gather(*soon)
    assert max(waited) <= AWAY_S + SESSION_S / QUESTIONS + SOON_S, "the sessions may have to end first"
    await asyncio.sleep(2 * SESSION_S)
    assert controllers(world) == []
    for name in NAMES:
        assert await world.on("admin", told_s(world, name)) <= SOON_S
    async with AsyncAdmin("two:9092", runtime=world.runtime(world.host("admin"))) as admin:
        assert "events" in await admin.list_topics(), "brokers go on telling what they know"
        assert (await admin.describe_cluster()).controller_id == -1


@pytest.mark.parametrize("seed", range(3))
def test_an_administrator_is_told_that_zookeeper_is_away(seed: int) -> None:
    World(seed).run(away)


async def back(world: World) -> None:
    """The store is silent for less than it may take to elect a leader: nobody is told."""
    await whole_cluster(world)
    world.zookeeper.lose_quorum()
    async with AsyncAdmin("one:9092", runtime=world.runtime(world.host("admin"))) as admin:
        creating = asyncio.ensure_future(admin.create_topic("later", partitions=2))
        await asyncio.sleep(AWAY_S - 1)
        assert not creating.done()
        world.zookeeper.regain_quorum()
        await creating


def test_a_short_silence_costs_a_wait_and_no_change() -> None:
    World(1).run(back)
