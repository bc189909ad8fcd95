"""Three simulated brokers that are cut off from each other and from ZooKeeper in a chosen way: who leads, who serves,
and for how long nobody does."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.producing.producer import AsyncProducer
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.replication.replica import Replica
from moldau.simulation.world import SESSION_S, World
from tests.replacing import Instead, replaced, returns
from tests.unlogged import unlogged
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


async def cut_off_together(world: World) -> None:
    """A leader and a follower hear each other, and neither ZooKeeper nor the third broker."""
    await whole_cluster(world)
    [led] = serving(world)
    first = NAMES[led.leadership.local - 1]
    last = next(name for name in NAMES if name != first)
    for name in NAMES:
        if name != last:
            world.cut_from_zookeeper(name)
            world.network.partition(name, last)
    await until(lambda: any(one.leadership.local != led.leadership.local for one in serving(world)), 3 * SESSION_S)
    assert [NAMES[one.leadership.local - 1] for one in serving(world)] == [last], "two leaders serve clients"


async def heard_by_zookeeper_only(world: World) -> None:
    """ZooKeeper hears the controller, and no broker does."""
    await whole_cluster(world)
    [first] = controllers(world)
    for name in NAMES:
        if name != first:
            world.network.partition(first, name)
    lag_s = int(str(SETTINGS["replica_lag_time_max_ms"])) / 1000
    assert await world.on("client", acknowledged_again(world)) <= SESSION_S + lag_s + 2
    assert controllers(world) not in ([], [first])


async def not_heard_by_zookeeper(world: World) -> None:
    """The other brokers hear the controller, and ZooKeeper does not."""
    await whole_cluster(world)
    [first] = controllers(world)
    world.cut_from_zookeeper(first)
    assert await world.on("client", acknowledged_again(world)) <= SESSION_S + 2
    await until(lambda: controllers(world) not in ([], [first]), SESSION_S + 2)
    async with AsyncAdmin(f"{first}:9092", runtime=world.runtime(world.host("client"))) as admin:
        async with asyncio.timeout(2):  # else its clients do not hear of its successor
            while (await admin.describe_cluster()).controller_id == NAMES.index(first) + 1:
                await asyncio.sleep(0.1)
        topics = await admin.describe_topics(["events"])
    assert NAMES.index(first) + 1 not in {part.leader for part in topics["events"].partitions.values()}
    assert await world.on("client", acknowledged_again(world)) <= 2


Scenario = Callable[[World], Coroutine[Any, Any, None]]


@pytest.mark.parametrize("scenario", [cut_off_together, heard_by_zookeeper_only, not_heard_by_zookeeper])
@pytest.mark.parametrize("seed", range(5, 8))
def test_one_leader_serves_and_what_can_go_on_does(scenario: Scenario, seed: int) -> None:
    World(seed).run(scenario)


def by_any_follower(_: Callable[..., int], replica: Replica, now_ms: int) -> int:
    return now_ms - max(one.asked_ms for one in replica.waiters.followers)


async def nowhere(*_: object) -> None:
    await asyncio.sleep(1)


BUGS: dict[str, tuple[Instead, Scenario]] = {
    "any follower renews the lease of its leader": (
        Instead("moldau.replication.replica:Replica.followers_silent_ms", by_any_follower),
        cut_off_together,
    ),
    "a controller that nobody hears stays": (
        Instead("moldau.cluster.controlling.candidacy:is_isolated", returns(False)),
        heard_by_zookeeper_only,
    ),
    "nobody is asked for the successor": (
        Instead("moldau.cluster.successor:SuccessorSearch.look", nowhere),
        not_heard_by_zookeeper,
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    bug, scenario = BUGS[name]
    with unlogged(logging.CRITICAL), replaced([bug]), pytest.raises((AssertionError, TimeoutError, KafkaError)):
        World(5).run(scenario)
