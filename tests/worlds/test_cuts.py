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
        for name in (first, beside):
            world.cut_from_zookeeper(name)
            world.network.partition(name, last)
        await until(lambda: any(one.leadership.local != led.leadership.local for one in serving(world)), 3 * SESSION_S)
        assert [NAMES[one.leadership.local - 1] for one in serving(world)] == [last], "two leaders serve clients"

    World(5).run(scenario)


async def acknowledged_again(world: World) -> float:
    """The virtual seconds until each partition takes a record with acks=all, by clients that reach every broker."""
    began_s = asyncio.get_running_loop().time()
    async with AsyncProducer(
        BOOTSTRAP, acks="all", runtime=world.runtime(world.host("client")), delivery_timeout_ms=120_000
    ) as producer:
        for partition in range(3):
            await (await producer.send("events", b"again", partition=partition))
    return asyncio.get_running_loop().time() - began_s


def controllers(world: World) -> list[str]:
    return [name for name in NAMES if (broker := world.host(name).broker) is not None and broker.controls]


def test_two_brokers_that_hear_each_other_go_on_without_a_controller_that_only_zookeeper_hears() -> None:
    async def scenario(world: World) -> None:
        await whole_cluster(world)
        [first] = controllers(world)
        for name in NAMES:
            if name != first:
                world.network.partition(first, name)
        lag_s = SETTINGS["replica_lag_time_max_ms"] / 1000
        assert await world.on("client", acknowledged_again(world)) <= SESSION_S + lag_s + 2
        assert controllers(world) not in ([], [first])

    World(6).run(scenario)


def test_a_controller_that_is_cut_off_from_zookeeper_only_tells_clients_of_its_successor() -> None:
    async def scenario(world: World) -> None:
        await whole_cluster(world)
        [first] = controllers(world)
        world.cut_from_zookeeper(first)
        await until(lambda: any(name != first for name in controllers(world)), SESSION_S + 2)
        began_s = asyncio.get_running_loop().time()
        async with AsyncAdmin(f"{first}:9092", runtime=world.runtime(world.host("client"))) as admin:
            while (await admin.describe_cluster()).controller_id == NAMES.index(first) + 1:
                await asyncio.sleep(0.1)
            topics = await admin.describe_topics(["events"])
        assert asyncio.get_running_loop().time() - began_s <= 2
        leaders = {part.leader for part in topics["events"].partitions.values()}
        assert NAMES.index(first) + 1 not in leaders

    World(7).run(scenario)


def test_all_partitions_go_on_soon_after_the_session_of_a_controller_that_zookeeper_does_not_hear() -> None:
    async def scenario(world: World) -> None:
        await whole_cluster(world)
        [first] = controllers(world)
        world.cut_from_zookeeper(first)
        assert await world.on("client", acknowledged_again(world)) <= SESSION_S + 2
        await until(lambda: controllers(world) not in ([], [first]), SESSION_S + 2)
        await asyncio.sleep(SESSION_S)
        assert await world.on("client", acknowledged_again(world)) <= 2

    World(8).run(scenario)
