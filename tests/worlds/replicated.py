"""Three simulated brokers with three replicas of every partition, a producer, and what happens to them: the story of a
world. Nothing that acks=all has acknowledged may be lost, moved or doubled, and the replicas are the same bytes.

What a power loss may take is stated by each harm. A record that is acknowledged is in the page caches of two machines
at least, so one machine at a time may lose power, until its broker is in sync again. With `flush.messages=1` it is on
their disks, and all machines may lose power together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.consuming.consumer import AsyncConsumer
from moldau.names import TopicPartition
from moldau.replication.replica import Replica
from moldau.simulation.world import SESSION_S, World
from tests.testing.replicas import committed_bytes
from tests.worlds.workload import Broken, History, produce

NAMES = ("one", "two", "three")
BOOTSTRAP = ",".join(f"{name}:9092" for name in NAMES)
SETTINGS: dict[str, object] = {
    "default_replication_factor": 3,
    "min_insync_replicas": 2,
    "replica_lag_time_max_ms": 5000,
}
FLUSHED = SETTINGS | {"log_flush_interval_messages": 1}
PARTITIONS = 3
TOPICS = ("events", "idle")
"""One record is written to `idle`, before anything happens."""
RECORDS = 300
HEALED_S = 60
ENDS_WITHIN_S = 600


def hosted(world: World) -> dict[TopicPartition, list[Replica]]:
    """The replicas of each partition of these topics, as far as their brokers are up."""
    found: dict[TopicPartition, list[Replica]] = {}
    for name in NAMES:
        broker = world.host(name).broker
        for replica in broker.replicas if broker is not None else ():
            if replica.tp.topic in TOPICS:
                found.setdefault(replica.tp, []).append(replica)
    return found


def replicas(world: World, partition: int) -> list[Replica]:
    """Those of one partition of `events`."""
    return hosted(world).get(TopicPartition("events", partition), [])


def is_whole(world: World) -> bool:
    """Whether all brokers are up, and all replicas in sync at the same high watermark."""
    every = hosted(world)
    for found in every.values():
        if len(found) < 3 or any(len(one.leadership.isr) < 3 for one in found):
            return False
        if len({(one.high_watermark, one.log.log_end_offset) for one in found}) > 1:
            return False
    return bool(every)


async def healed(world: World) -> None:
    """Raises `Broken` if it takes long."""
    try:
        async with asyncio.timeout(HEALED_S):
            while not is_whole(world):
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise Broken(f"not all replicas are in sync after {HEALED_S} s") from None


def are_equal(world: World) -> bool:
    """Whether all replicas of each partition are the same bytes below the high watermark."""
    every = hosted(world).values()
    return all(len({committed_bytes(one, one.high_watermark) for one in found}) == 1 for found in every)


async def read_all(world: World, history: History) -> None:
    """Everything that is in the log, from its start to its end."""
    async with AsyncConsumer(
        BOOTSTRAP, runtime=world.runtime(world.host("reader")), auto_offset_reset="earliest"
    ) as consumer:
        parts = [TopicPartition("events", number) for number in range(PARTITIONS)]
        consumer.assign(parts)
        ends = await consumer.end_offsets(parts)
        while any([await consumer.position(tp) < ends[tp] for tp in parts]):
            for record in await consumer.poll(timeout_ms=500):
                where = ("reader", TopicPartition(record.topic, record.partition), record.offset)
                history.seen.setdefault(bytes(record.value or b""), []).append(where)


async def produce_slowly(world: World, history: History) -> None:
    """A few records at a time, so that brokers come to harm between them."""
    for number in range(RECORDS // 10):
        name = f"producer-{number}"
        await world.on(name, produce(world, history, BOOTSTRAP, "events", name, 10))
        await asyncio.sleep(world.random.random())


async def kill_one(world: World) -> None:
    await _down_for_a_while(world, power_loss=False)


async def take_power_of_one(world: World) -> None:
    await _down_for_a_while(world, power_loss=True)


async def _down_for_a_while(world: World, *, power_loss: bool) -> None:
    victim = world.random.choice(NAMES)
    world.kill_broker(victim, power_loss)
    await asyncio.sleep(world.random.random() * 15)
    await world.join_broker(victim, **SETTINGS)


async def cut_one_off(world: World) -> None:
    victim = world.random.choice(NAMES)
    for other in [name for name in NAMES if name != victim]:
        world.network.partition(victim, other, both_ways=world.random.random() < 0.5)
    await asyncio.sleep(world.random.random() * 15)
    world.network.heal(victim)


async def end_the_session_of_one(world: World) -> None:
    """A broker is cut off from ZooKeeper until its session is over, and goes on."""
    session = world.host(world.random.choice(NAMES)).session
    assert session is not None
    world.zookeeper.cut(session.link)
    await asyncio.sleep(SESSION_S + 3 + world.random.random() * 10)
    world.zookeeper.mend(session.link)


async def take_power_of_the_last(world: World) -> None:
    """The others are killed one after the other, and the last one in the ISR loses power; it is back first."""
    last = world.random.choice(NAMES)
    others = [name for name in NAMES if name != last]
    for name in others:
        world.kill_broker(name)
        await asyncio.sleep(10)
    world.kill_broker(last, power_loss=True)
    for name in (last, *others):
        await asyncio.sleep(world.random.random() * 15)
        await world.join_broker(name, **SETTINGS)


async def take_power_of_all(world: World) -> None:
    """At once, or one after the other. Nothing is lost because everything was flushed."""
    order = world.random.sample(NAMES, 3)
    for name in order:
        world.kill_broker(name, power_loss=True)
        await asyncio.sleep(world.random.choice((0, 0, 2, 10)))
    world.random.shuffle(order)
    for name in order:
        await asyncio.sleep(world.random.random() * 5)
        await world.join_broker(name, **FLUSHED)


async def do_anything(world: World) -> None:
    await _harm(world, ("kill", "kill", "cut", "cut off and kill", "heal", "start"), SETTINGS)


async def do_anything_with_power_losses(world: World) -> None:
    """One broker at most loses power, again and again."""
    one = world.random.choice(NAMES)
    await _harm(world, (*WITH_POWER_LOSS, "cut"), SETTINGS, (one,))


async def do_anything_to_flushed(world: World) -> None:
    await _harm(world, (*WITH_POWER_LOSS, "power loss"), FLUSHED, NAMES)


WITH_POWER_LOSS = ("kill", "power loss", "cut off and kill", "heal", "start")


async def _harm(world: World, kinds: Sequence[str], settings: dict[str, object], powerless: Sequence[str] = ()) -> None:
    """Kills, cuts, starts and healings in any order: two brokers may be away at once, or all. `powerless`: those that
    may lose power."""
    down: list[str] = []
    for _ in range(12):
        await asyncio.sleep(world.random.random() * 3)
        victim = world.random.choice(NAMES)
        match world.random.choice(kinds):
            case "cut off and kill" if victim not in down:
                for other in [name for name in NAMES if name != victim]:
                    world.network.partition(victim, other)
                await asyncio.sleep(world.random.random() * 2)
                world.kill_broker(victim)
                down.append(victim)
            case "kill" if victim not in down:
                world.kill_broker(victim)
                down.append(victim)
            case "power loss" if (chosen := world.random.choice(powerless)) not in down:
                world.kill_broker(chosen, power_loss=True)
                down.append(chosen)
            case "cut":
                other = world.random.choice([name for name in NAMES if name != victim])
                world.network.partition(victim, other, both_ways=world.random.random() < 0.5)
            case "heal":
                world.network.heal()
            case "start" if down:
                world.network.heal()
                await world.join_broker(down.pop(0), **settings)
    world.network.heal()
    for name in down:
        await world.join_broker(name, **settings)


class Harm(NamedTuple):
    """What happens, how often, and the settings of the brokers."""

    do: Callable[[World], Awaitable[None]]
    times: int
    settings: dict[str, object]


HARMS = {
    "kills": Harm(kill_one, 4, SETTINGS),
    "cuts": Harm(cut_one_off, 4, SETTINGS),
    "anything": Harm(do_anything, 1, SETTINGS),
}
POWER_LOSSES = {
    "power losses of any one": Harm(take_power_of_one, 4, SETTINGS),
    "power losses of the last one in sync": Harm(take_power_of_the_last, 4, SETTINGS),
    "power losses of all that flush every record": Harm(take_power_of_all, 4, FLUSHED),
    "anything and power losses of one": Harm(do_anything_with_power_losses, 1, SETTINGS),
    "anything and power losses of any that flush every record": Harm(do_anything_to_flushed, 1, FLUSHED),
}
SESSIONS = {"sessions that end while their brokers go on": Harm(end_the_session_of_one, 4, SETTINGS)}


async def live_replicated(world: World, harm: Harm) -> None:
    """Raises `Broken` if an invariant does not hold."""
    for name in NAMES:
        await world.join_broker(name, **harm.settings)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        await admin.create_topic("events", partitions=PARTITIONS)
        await admin.create_topic("idle", partitions=1)
    await world.on("idle", produce(world, History(), BOOTSTRAP, "idle", "idle", 1))
    history = History()
    producing = world.loop.create_task(produce_slowly(world, history))
    for _ in range(harm.times):
        await asyncio.sleep(world.random.random() * 4)
        await harm.do(world)
        await healed(world)
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            await producing
    except TimeoutError:
        raise Broken(f"the producer does not come to an end within {ENDS_WITHIN_S} s") from None
    await healed(world)
    await world.on("reader", read_all(world, history))
    history.check()
    if len(history.acknowledged) != RECORDS:
        raise Broken(f"{len(history.acknowledged)} of {RECORDS} records were acknowledged")
    if not are_equal(world):
        raise Broken("the replicas differ below the high watermark")
    for name in NAMES:
        await world.stop_broker(name)
