"""Three simulated brokers that are cut off from each other and from ZooKeeper in a chosen way: who leads, who serves,
and for how long nobody does."""

import asyncio
from collections.abc import Callable

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.producing.producer import AsyncProducer
from moldau.names import TopicPartition
from moldau.replication.replica import Replica
from moldau.simulation.world import SESSION_S, World
from tests.worlds.replicated import BOOTSTRAP, NAMES, SETTINGS, healed

TP = TopicPartition("events", 0)


async def until(condition: Callable[[], bool], limit_s: float) -> float:
    """The virtual seconds until it holds."""
    began_s = asyncio.get_running_loop().time()
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.05)
    return asyncio.get_running_loop().time() - began_s


async def whole_cluster(world: World) -> None:
    for name in NAMES:
        await world.join_broker(name, **SETTINGS)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        await admin.create_topic("events", partitions=3)
    async with AsyncProducer(BOOTSTRAP, acks="all", runtime=world.runtime(world.host("producer"))) as producer:
        await (await producer.send("events", b"first", partition=0))
    await healed(world)


def cut_from_zookeeper(world: World, *names: str) -> None:
    for name in names:
        session = world.host(name).session
        assert session is not None
        world.zookeeper.cut(session.link)


def serving(world: World) -> list[Replica]:
    """The replicas of the first partition whose brokers answer clients as its leader."""
    found = []
    for broker in [world.host(name).broker for name in NAMES]:
        assert broker is not None and broker.replicas.exchange is not None
        replica = broker.replicas.hosted[TP]
        if replica.leadership.leads and not replica.is_cut_off and broker.replicas.exchange.leads(replica):
            found.append(replica)
    return found


def test_a_leader_and_a_follower_that_are_cut_off_together_do_not_hold_each_others_lease() -> None:
    async def scenario(world: World) -> None:
        await whole_cluster(world)
        [led] = serving(world)
        first = NAMES[led.leadership.local - 1]
        last = next(name for name in NAMES if name != first)
        beside = next(name for name in NAMES if name not in (first, last))
        cut_from_zookeeper(world, first, beside)
        for name in (first, beside):
            world.network.partition(name, last)
        await until(lambda: any(one.leadership.local != led.leadership.local for one in serving(world)), 3 * SESSION_S)
        assert [NAMES[one.leadership.local - 1] for one in serving(world)] == [last], "two leaders serve clients"

    World(5).run(scenario)
