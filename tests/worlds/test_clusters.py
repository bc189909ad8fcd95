"""Three simulated brokers of one cluster, on a model ZooKeeper: brokers are killed under a producer and a group, and
nothing that was acknowledged is lost."""

import asyncio
import contextlib

import pytest

from moldau.client.administration.admin import AsyncAdmin
from moldau.errors import TopicAlreadyExists
from moldau.simulation.world import World
from tests.worlds.workload import History, consume, produce

NAMES = ("one", "two", "three")
BOOTSTRAP = ",".join(f"{name}:9092" for name in NAMES)
SETTINGS = {
    "offsets_topic_num_partitions": 6,
    "transaction_state_log_num_partitions": 6,
    "group_initial_rebalance_delay_ms": 0,
}


async def controller(world: World) -> str:
    """The host of the controller, when there is one."""
    while True:
        for host in world.hosts.values():
            if host.broker is not None and host.broker.controls:
                return host.name
        await asyncio.sleep(0.1)


async def killed_in_turn(world: World, *, power_loss: bool) -> History:
    settings = SETTINGS | ({"log_flush_interval_messages": 1} if power_loss else {})
    for name in NAMES:
        await world.join_broker(name, **settings)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        await admin.create_topic("events", partitions=6)
    history = History()
    clients = [
        world.loop.create_task(world.on("producer", produce(world, history, BOOTSTRAP, "events", "producer", 300))),
        world.loop.create_task(world.on("consumer", consume(world, history, BOOTSTRAP, "events", "consumer", 300))),
    ]
    for number in range(3):
        await asyncio.sleep(world.random.random() * 3)
        victim = await controller(world) if number == 0 else world.random.choice(NAMES)
        world.kill_broker(victim, power_loss)
        await asyncio.sleep(world.random.random() * 20)
        await world.join_broker(victim, **settings)
    async with asyncio.timeout(600):
        await asyncio.gather(*clients)
    history.check()
    images = []
    for name in NAMES:
        broker = world.host(name).broker
        assert broker is not None
        while len(broker.cluster.image.brokers) < len(NAMES):
            await asyncio.sleep(0.1)
        images.append(broker.cluster.image)
    await asyncio.sleep(5)
    assert all(image.topics == images[0].topics for image in images)
    for name in NAMES:
        await world.stop_broker(name)
    return history


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_doubled_when_brokers_of_a_cluster_are_killed(seed: int) -> None:
    World(seed).run(lambda world: killed_in_turn(world, power_loss=False))


@pytest.mark.parametrize("seed", range(4, 6))
def test_what_was_flushed_survives_when_brokers_of_a_cluster_lose_their_power(seed: int) -> None:
    World(seed).run(lambda world: killed_in_turn(world, power_loss=True))


@pytest.mark.parametrize("seed", range(3))
def test_topics_that_were_answered_are_there_after_the_death_of_the_controller(seed: int) -> None:
    async def scenario(world: World) -> None:
        for name in NAMES:
            await world.join_broker(name, **SETTINGS)
        made: list[str] = []

        async def make() -> None:
            async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
                for number in range(30):
                    name = f"topic-{number}"
                    with contextlib.suppress(TopicAlreadyExists):  # the first attempt was made, its answer was lost
                        await admin.create_topic(name, partitions=4)
                    made.append(name)
                    await asyncio.sleep(world.random.random())

        making = world.loop.create_task(world.on("admin", make()))
        for _ in range(2):
            await asyncio.sleep(3 + world.random.random() * 5)
            victim = await controller(world)
            world.kill_broker(victim)
            await asyncio.sleep(world.random.random() * 10)
            await world.join_broker(victim, **SETTINGS)
        async with asyncio.timeout(600):
            await making
        for name in NAMES:
            broker = world.host(name).broker
            assert broker is not None
            assert set(made) <= broker.cluster.image.topics.keys()
            assert all(len(broker.cluster.image.topics[topic].partitions) == 4 for topic in made)
            await world.stop_broker(name)

    World(seed).run(scenario)
