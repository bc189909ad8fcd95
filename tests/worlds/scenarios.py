"""The scenarios of a world. Each draws what happens from the world's seed, and checks at the end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.producing.producer import AsyncProducer
from moldau.errors import MoldauError
from moldau.simulation.faults import PowerLoss
from moldau.simulation.network import Weather
from moldau.simulation.world import World
from tests.worlds.brokers import ENSEMBLE
from tests.worlds.folder_moves import FOLDER_MOVES
from tests.worlds.groups.replicated import live_replicated_groups
from tests.worlds.groups.story import live_groups
from tests.worlds.replicated import HARMS, POWER_LOSSES, live_replicated
from tests.worlds.transactions.replicated import ReplicatedTransactionStory
from tests.worlds.transactions.story import TransactionStory
from tests.worlds.workload import Broken, History, consume, produce

TOPIC = "events"
BROKER = "broker"
BOOTSTRAP = f"{BROKER}:9092"
ENDS_WITHIN_S = 600
"""Virtual seconds from the broker's last death on, a hundred times what the clients need. A consumer whose committed
offset was lost may wait for ever."""


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
    try:
        await asyncio.wait_for(asyncio.gather(*clients), ENDS_WITHIN_S)
    except TimeoutError:
        raise Broken(f"the clients do not come to an end within {ENDS_WITHIN_S} s") from None
    history.check()
    await world.stop_broker(BROKER)
    return history


async def restarts(world: World, *, kills: int = 12) -> float:
    """A producer whose broker is killed while a request is on its way to it, and again while it starts, always to come
    back at the same address; turns of the loop are slow. Returns the longest time in seconds that the producer needed,
    after the broker was there again, to deliver all that it had been given."""
    chance = world.random
    world.loop.slow(lambda: chance.choice((0.0,) * 30 + (0.02, 0.1, 0.5)))
    world.loop.work_s = lambda: chance.random() * 0.1
    await world.start_broker(BROKER)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        await admin.create_topic(TOPIC, partitions=3)
    producer = AsyncProducer(BOOTSTRAP, runtime=world.runtime(world.host("producer")), request_timeout_ms=5_000)
    await world.on("producer", producer.start())
    longest_s = 0.0
    for number in range(kills):
        sent = [await producer.send(TOPIC, f"{number}:{at}", key=str(at)) for at in range(chance.randint(1, 30))]
        await _delivered_to(world, BROKER, chance.randint(1, 12))
        world.kill_broker(BROKER)
        while chance.random() < 0.5:
            await asyncio.sleep(chance.random() * 2)
            starting = world.loop.create_task(world.start_broker(BROKER))
            await asyncio.sleep(chance.random())
            world.kill_broker(BROKER)
            await asyncio.gather(starting, return_exceptions=True)
        await asyncio.sleep(chance.random() * 2)
        await world.start_broker(BROKER)
        since_s = world.loop.time()
        for delivery in sent:
            await delivery
        longest_s = max(longest_s, world.loop.time() - since_s)
    await producer.close()
    return longest_s


async def _delivered_to(world: World, host: str, count: int, wait_s: float = 2.0) -> None:
    """Wait for the `count`th message that reaches the host from now on, or for `wait_s`."""
    reached, note, left = asyncio.Event(), world.network.on_deliver, count

    def count_down(target: str, source: str, data: bytes) -> None:
        nonlocal left
        note(target, source, data)
        left -= target == host
        if left <= 0:
            reached.set()

    world.network.on_deliver = count_down
    try:
        async with asyncio.timeout(wait_s):
            await reached.wait()
    except TimeoutError:
        pass
    finally:
        world.network.on_deliver = note


def run_seed(seed: int, *, power_loss: bool = False) -> World:
    """One world of that seed, lived to its end. Raises `Broken` if an invariant does not hold."""
    world = World(seed, Weather(delay_ms_max=30, loss=0.02))
    world.run(lambda world: two_clients(world, power_loss=power_loss))
    return world


class Complaints(logging.Handler):
    """The first unexpected error in the broker's own log."""

    def __init__(self, world: World):
        super().__init__(logging.ERROR)
        self._world = world
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (MoldauError, OSError, PowerLoss)) and not self.first:
            self.first = f"at {self._world.loop.time():.3f} s: {record.getMessage()}: {error!r}"


def run_groups(seed: int, *, power_loss: bool = False) -> World:
    """One world of groups of that seed. Raises `Broken` if an invariant does not hold."""
    return _told(World(seed), lambda world: live_groups(world, power_loss))


def run_transactions(seed: int, *, power_loss: bool = False) -> World:
    """One world of transactions of that seed. Raises `Broken` if an invariant does not hold."""
    return _told(World(seed), lambda world: TransactionStory(world, power_loss).tell())


def run_replicas(seed: int, *, power_loss: bool = False) -> World:
    """One world of three brokers with replicas; the seed says what happens to them. Raises `Broken` if an invariant
    does not hold."""
    moves = [harm for name, harm in FOLDER_MOVES.items() if name.startswith("power") == power_loss]
    harms = [*(POWER_LOSSES if power_loss else HARMS).values(), *moves]
    return _told(World(seed, manners=ENSEMBLE), lambda world: live_replicated(world, harms[seed % len(harms)]))


def run_replicated_groups(seed: int, *, power_loss: bool = False) -> World:
    """One world of groups on three brokers of that seed. Raises `Broken` if an invariant does not hold."""
    return _told(World(seed, manners=ENSEMBLE), lambda world: live_replicated_groups(world, power_loss))


def run_replicated_transactions(seed: int, *, power_loss: bool = False) -> World:
    """One world of transactions on three brokers of that seed. Raises `Broken` if an invariant does not hold."""
    return _told(World(seed, manners=ENSEMBLE), lambda world: ReplicatedTransactionStory(world, power_loss).tell())


def _told(world: World, story: Callable[[World], Coroutine[Any, Any, None]]) -> World:
    world.network.weather = world.random.choice((Weather(5), Weather(30, 0.02), Weather(200, 0.05)))
    world.loop.set_exception_handler(lambda loop, context: None)
    logger, complaints = logging.getLogger("moldau"), Complaints(world)
    logger.addHandler(complaints)
    logger.propagate, before = False, logger.propagate
    try:
        world.run(story)
    finally:
        logger.removeHandler(complaints)
        logger.propagate = before
    if complaints.first:
        raise Broken(complaints.first)
    return world


class Lived(NamedTuple):
    """One seed in a sentence; `failure` is None if all held."""

    seed: int
    line: str
    failure: str | None


KINDS = {
    "": run_seed,
    "groups": run_groups,
    "transactions": run_transactions,
    "replicas": run_replicas,
    "replicated-groups": run_replicated_groups,
    "replicated-transactions": run_replicated_transactions,
}


def live(seed: int, kind: str, power_loss: bool) -> Lived:
    """One world of that kind. Only its errors are logged."""
    logger = logging.getLogger("moldau")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        world = KINDS[kind](seed, power_loss=power_loss)
    except Exception as error:
        return Lived(seed, "", f"{type(error).__name__}: {error}")
    finally:
        logger.setLevel(before)
    return Lived(seed, f"{world.network.delivered} messages in {world.loop.time():.1f} s: {world.digest}", None)
