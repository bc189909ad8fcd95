"""Records that go on three simulated brokers: deleted by a client, by retention on each replica, or by compaction."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.producing.producer import AsyncProducer
from moldau.names import TopicPartition
from moldau.records.batch import batches
from moldau.records.rows import iterate
from moldau.replication.replica import Replica
from moldau.simulation.world import World
from tests.testing.replicas import committed_bytes
from tests.worlds.replicated import BOOTSTRAP, NAMES, SETTINGS, healed, replicas
from tests.worlds.workload import History, produce

TP = TopicPartition("events", 0)
UPKEEP = {"log_retention_check_interval_ms": 5000, "log_initial_task_delay_ms": 1000, "log_cleaner_backoff_ms": 1000}


async def play(world: World, scenario: Callable[[AsyncAdmin], Awaitable[None]], **configs: object) -> None:
    for name in NAMES:
        await world.join_broker(name, **SETTINGS, **UPKEEP)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        topic = {key.replace("_", "."): value for key, value in configs.items()}
        await admin.create_topic("events", partitions=3, configs=topic)
        await scenario(admin)
    for name in NAMES:
        if world.host(name).broker is not None:
            await world.stop_broker(name)


def leader(world: World) -> Replica:
    return next(one for one in replicas(world, 0) if one.leadership.leads)


def controls(world: World, name: str) -> bool:
    broker = world.host(name).broker
    return broker is not None and broker.controls


def host_of(replica: Replica) -> str:
    return NAMES[replica.leadership.local - 1]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("is_killed", [False, True], ids=["it is heard again", "its leader is killed"])
def test_a_live_follower_that_is_cut_off_is_waited_for(is_killed: bool) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        await world.on("producer", produce(world, History(), BOOTSTRAP, "events", "producer", 60))
        await healed(world)
        led = leader(world)
        first, end = host_of(led), led.high_watermark
        [follower] = [name for name in NAMES if name != first and not controls(world, name)]
        world.network.partition(first, follower)
        deleting = world.loop.create_task(admin.delete_records({TP: -1}))
        await asyncio.sleep(20)
        assert not deleting.done()
        assert sorted(one.log_start_offset for one in replicas(world, 0)) == [0, end, end]
        if is_killed:
            world.kill_broker(first)
        world.network.heal()
        async with asyncio.timeout(60):
            assert await deleting == {TP: end}
        assert {one.log_start_offset for one in replicas(world, 0)} == {end}

    world = World(1)
    world.run(lambda world: play(world, scenario))


async def write(world: World, name: str, keys: int, count: int) -> None:
    """Values `name-NUMBER` under keys in turn, slowly, so that segments roll (`segment.ms`)."""
    async with AsyncProducer(BOOTSTRAP, runtime=world.runtime(world.host("p")), linger_ms=0) as producer:
        for number in range(count):
            value = f"{name}-{number}".encode()
            await (await producer.send("events", value, key=b"%d" % (number % keys), partition=0))
            await asyncio.sleep(0.2)


def test_old_segments_go_on_followers_also() -> None:
    async def scenario(_: AsyncAdmin) -> None:
        await world.on("p", write(world, "first", 1, 200))
        await until(lambda: all(one.log_start_offset > 0 for one in replicas(world, 0)))
        victim = host_of(leader(world))
        world.kill_broker(victim)
        await world.on("p", write(world, "second", 1, 200))
        await world.join_broker(victim, **SETTINGS, **UPKEEP)
        await healed(world)
        await until(lambda: all(one.log.size < 6000 for one in replicas(world, 0)))
        found = replicas(world, 0)
        start = max(found, key=lambda one: one.log_start_offset)
        assert start.log_start_offset <= start.high_watermark
        kept = committed_bytes(start, start.high_watermark)
        assert all(committed_bytes(one, one.high_watermark).endswith(kept) for one in found)

    world = World(2)
    world.run(lambda world: play(world, scenario, segment_ms=2000, retention_bytes=2000))


def last_records(replica: Replica) -> dict[bytes, tuple[int, bytes]]:
    """The offset and value of the last record of every key."""
    data = replica.log.read_batches(replica.log_start_offset, 1 << 20)
    last: dict[bytes, tuple[int, bytes]] = {}
    offset = int(replica.log_start_offset)
    while data:
        for at, header in batches(data):
            for row in iterate(data[at : at + header.size]):
                last[bytes(row.key or b"")] = (header.base_offset, bytes(row.value or b""))
            offset = header.next_offset
        data = replica.log.read_batches(offset, 1 << 20)
    return last


def test_every_replica_of_a_compacted_topic_has_the_last_record_of_each_key() -> None:
    async def scenario(_: AsyncAdmin) -> None:
        for turn in range(3):
            await world.on("p", write(world, f"{turn}", 7, 150))
            victim = host_of(leader(world))
            world.kill_broker(victim)
            await asyncio.sleep(world.random.random() * 20)
            await world.join_broker(victim, **SETTINGS, **UPKEEP)
            await healed(world)
        await until(lambda: all(one.log.size < 5000 for one in replicas(world, 0)))
        found = [last_records(one) for one in replicas(world, 0)]
        assert {key: value for key, (_, value) in found[0].items()} == {
            b"%d" % (number % 7): b"2-%d" % number for number in range(143, 150)
        }
        assert found[0] == found[1] == found[2]

    world = World(3)
    configs = {"cleanup_policy": "compact", "segment_ms": 2000, "min_cleanable_dirty_ratio": 0.01}
    world.run(lambda world: play(world, scenario, **configs))
