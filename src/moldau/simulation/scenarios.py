"""Stories that a world lives through. Each draws what happens from the world's seed, and checks at the end."""

import asyncio

from moldau.client.admin import AsyncAdmin
from moldau.simulation.network import Weather
from moldau.simulation.workload import History, consume, produce
from moldau.simulation.world import World

TOPIC = "events"
BROKER = "broker"
BOOTSTRAP = f"{BROKER}:9092"


async def two_clients(world: World, *, records: int = 300, power_loss: bool = False) -> History:
    """A producer and a member of a group, and a broker that dies up to three times under them and comes back.

    With `power_loss` each death is the machine's, and the broker flushes before it answers.
    """
    settings = {"log_flush_interval_messages": 1} if power_loss else {}
    await world.start_broker(BROKER, **settings)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        await admin.create_topic(TOPIC, partitions=3)
    history = History()
    clients = [
        world.loop.create_task(world.on("producer", produce(world, history, BOOTSTRAP, TOPIC, "producer", records))),
        world.loop.create_task(world.on("consumer", consume(world, history, BOOTSTRAP, TOPIC, "consumer", records))),
    ]
    for _ in range(world.random.randint(0, 3)):
        await asyncio.sleep(world.random.random() * 3)
        world.kill_broker(BROKER, power_loss)
        await asyncio.sleep(world.random.random() * 10)
        await world.start_broker(BROKER, **settings)
    await asyncio.gather(*clients)
    history.check()
    await world.stop_broker(BROKER)
    return history


def run_seed(seed: int, *, power_loss: bool = False) -> World:
    """One world of that seed, lived to its end. Raises `Broken` if an invariant does not hold."""
    world = World(seed, Weather(delay_ms_max=30, loss=0.02))
    world.run(lambda world: two_clients(world, power_loss=power_loss))
    return world
