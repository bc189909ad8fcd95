"""A throttled move of partitions in a simulated world, in the middle of which the controller, the source, the target or
the tool is killed: it ends or is cancelled whole, nothing that was acknowledged is lost, no throttle stays.

The tool is one like Kafka's, which throttles by lists, begins everything at once and never comes back, or one like
ours, which throttles moves and begins one partition after the other.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from moldau.broker import Broker
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.producing.producer import AsyncProducer
from moldau.cluster.state.image import Image, PartitionImage
from moldau.cluster.state.move_throttles import FOLLOWERS, LEADERS, MOVE_RATES, RATES
from moldau.cluster.state.reassignment import is_under_way
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.simulation.world import World
from tests.testing.replicas import committed_bytes
from tests.worlds.replicated import PARTITIONS, RECORDS, SETTINGS, produce_slowly, read_all
from tests.worlds.test_clusters import controller
from tests.worlds.workload import Broken, History

NAMES = ("one", "two", "three", "four")
BOOTSTRAP = ",".join(f"{name}:9092" for name in NAMES)
TPS = [TopicPartition("events", number) for number in range(PARTITIONS)]
ENDS_WITHIN_S = 150
BEFORE, AFTER = (1, 2, 3), (2, 3, 4)
ALREADY, RECORD_BYTES, RATE = 40, 1000, 6000
"""The records of each partition that are there before, their size, and the rate of the throttle: it takes 20 s."""
ACKNOWLEDGED_WITHIN_S = 1.0
VICTIMS = ("controller", "source", "target", "tool")
SHARES = (0.1, 0.5, 0.9)


class Kill(NamedTuple):
    """Who is killed, and when: the share of the bytes that are copied by then."""

    victim: str
    at: float
    like_kafka: bool
    is_cancelled: bool = False

    def __str__(self) -> str:
        tool = "of Kafka's tool" if self.like_kafka else "of ours"
        return f"{self.victim} at {self.at:.0%} {tool}{', cancelled' if self.is_cancelled else ''}"


KILLS = [
    Kill(victim, at, like_kafka, is_cancelled)
    for is_cancelled in (False, True)
    for at in SHARES
    for like_kafka in (True, False)
    for victim in VICTIMS
]


def brokers(world: World) -> list[Broker]:
    """Those that are up, in the order of their ids."""
    return [broker for name in NAMES if (broker := world.host(name).broker) is not None]


def partition(broker: Broker, tp: TopicPartition) -> PartitionImage:
    part = broker.cluster.image.partition(tp)
    assert part is not None
    return part


def has_moved(part: PartitionImage, *target: int) -> bool:
    return part.replicas == target and {*part.isr} == {*target} and not is_under_way(part)


def throttles(image: Image) -> list[str]:
    """The settings that throttle something."""
    topics = [(f"topic {name}", topic.overrides) for name, topic in image.topics.items()]
    own = [(f"broker {name}", overrides) for name, overrides in image.broker_overrides.items()]
    return [f"{name} of {owner}" for owner, of in [*topics, *own] for name in of if "throttled" in name]


def check_hosted(world: World, tps: Iterable[TopicPartition], *target: int) -> None:
    """Target brokers have the same bytes; the others neither serve the partitions nor follow their leaders."""
    for tp in tps:
        found = {broker.config.node_id: broker.replicas.hosted.get(tp) for broker in brokers(world)}
        serving = [replica for replica in found.values() if replica is not None]
        if {one for one, replica in found.items() if replica is not None} != {*target}:
            raise Broken(f"{tp} is served by {found}")
        end = min(one.high_watermark for one in serving)
        if len({committed_bytes(one, end) for one in serving}) > 1:
            raise Broken(f"the replicas of {tp} differ")
        for broker in brokers(world):
            absence = broker.replicas.absence(tp.topic, None, tp.partition)
            if broker.config.node_id not in target and absence is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                raise Broken(f"broker {broker.config.node_id} answers {absence.name} for {tp}")


async def write(world: World, history: History, name: str, count: int, size: int) -> None:
    """Records of that size in each partition, one after the other."""
    async with AsyncProducer(BOOTSTRAP, runtime=world.runtime(world.host(name))) as producer:
        for tp in TPS:
            for number in range(count):
                value = f"{name}:{tp.partition}:{number}".encode().ljust(size, b".")
                history.sent[value] = tp
                at = await (await producer.send(tp.topic, value, partition=tp.partition))
                history.acknowledged[value] = tp, at.offset


async def check_followers_in_sync(world: World, history: History) -> None:
    """What waits for all replicas in sync is acknowledged at once while others are throttled."""
    began_s = world.loop.time()
    await world.on("meanwhile", write(world, history, "meanwhile", 2, 10))
    if (took_s := world.loop.time() - began_s) > ACKNOWLEDGED_WITHIN_S:
        raise Broken(f"the throttle has slowed followers that are in sync: six records took {took_s:.1f} s")


async def kafkas_tool(world: World) -> None:
    """Does what `kafka-reassign-partitions --execute --throttle` does, and never runs again."""
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("tool"))) as admin:
        lists = {LEADERS: [(tp, one) for tp in TPS for one in BEFORE], FOLLOWERS: [(tp, 4) for tp in TPS]}
        texts = {name: ",".join(f"{tp.partition}:{one}" for tp, one in pairs) for name, pairs in lists.items()}
        await admin.configs.alter("topic", "events", texts)
        for broker in (1, 2, 3, 4):
            await admin.configs.alter("broker", str(broker), dict.fromkeys(RATES, RATE))
        outcome = await admin.alter_reassignments(dict.fromkeys(TPS, AFTER))
        assert not any(outcome.values()), outcome


async def our_tool(world: World) -> None:
    """Does what `moldau cluster reassign --throttle --at-a-time 1` does."""
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("tool"))) as admin:
        for tp in TPS:
            # Brokers that are down get no rate; the controller may be the one that is.
            for broker in (await admin.describe_cluster()).racks:
                try:
                    await admin.configs.alter("broker", str(broker), dict.fromkeys(MOVE_RATES, RATE))
                except KafkaError:
                    await asyncio.sleep(1)
            outcome = await admin.alter_reassignments({tp: AFTER})
            assert not any(outcome.values()), outcome
            while await admin.list_reassignments([tp]):
                await asyncio.sleep(1)


async def cancel(world: World) -> None:
    """Cancel all that is under way, until a controller has done it."""
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        while under_way := await admin.list_reassignments():
            await admin.alter_reassignments(dict.fromkeys(under_way))


def copied(world: World) -> float:
    """The share of the records that the target has."""
    four = world.host("four").broker
    found = [four.replicas.hosted.get(tp) for tp in TPS] if four is not None else []
    return sum(one.log.log_end_offset for one in found if one is not None) / (PARTITIONS * ALREADY)


async def killed_while_moving(kill: Kill, world: World) -> None:
    """Raises `Broken` if an invariant does not hold."""
    settings = SETTINGS | {"replica_fetch_max_bytes": 2 * RECORD_BYTES, "replica_fetch_response_max_bytes": 4000}
    for name in NAMES:
        await world.join_broker(name, **settings)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        await admin.create_topic("events", assignment={tp.partition: BEFORE for tp in TPS})
    history = History()
    await world.on("before", write(world, history, "before", ALREADY, RECORD_BYTES))
    producing = world.loop.create_task(produce_slowly(world, history))
    tool = world.loop.create_task(world.on("tool", kafkas_tool(world) if kill.like_kafka else our_tool(world)))
    async with asyncio.timeout(ENDS_WITHIN_S):
        while copied(world) < kill.at:
            await asyncio.sleep(0.1)
    await check_followers_in_sync(world, history)
    await harmed(world, kill, tool, settings)
    if kill.is_cancelled:
        tool.cancel()
        await cancel(world)
    elif kill.victim != "tool":
        async with asyncio.timeout(ENDS_WITHIN_S):
            await tool
    await asyncio.gather(tool, return_exceptions=True)
    await until_at_rest(world)
    moved = [tp for tp in TPS if partition(brokers(world)[0], tp).replicas == AFTER]
    if len(moved) < PARTITIONS and not kill.is_cancelled and (kill.like_kafka or kill.victim != "tool"):
        raise Broken(f"only {moved} have moved")
    check_hosted(world, moved, *AFTER)
    check_hosted(world, [tp for tp in TPS if tp not in moved], *BEFORE)
    async with asyncio.timeout(600):
        await producing
    await world.on("reader", read_all(world, history))
    history.check()
    assert len(history.acknowledged) == len(history.sent) > RECORDS
    for name in NAMES:
        await world.stop_broker(name)


async def harmed(world: World, kill: Kill, tool: "asyncio.Task[None]", settings: dict[str, object]) -> None:
    if kill.victim == "tool":
        world.kill("tool")
        tool.cancel()
        return
    victim = {"source": "one", "target": "four"}.get(kill.victim) or await controller(world)
    world.kill_broker(victim)
    await asyncio.sleep(world.random.random() * 15)
    await world.join_broker(victim, **settings)


async def until_at_rest(world: World) -> None:
    """Every partition is where it was or where it should be, with all replicas in sync; and nothing is throttled."""

    def is_at_rest() -> bool:
        each = [broker.cluster.image for broker in brokers(world)]
        parts = [part for image in each for tp in TPS if (part := image.partition(tp)) is not None]
        wholes = (partial(has_moved, part) for part in parts)
        return all(
            whole(*AFTER) or {*part.isr} == {*BEFORE} == {*part.replicas}
            for part, whole in zip(parts, wholes, strict=True)
        ) and not any(map(throttles, each))

    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            while not is_at_rest():
                await asyncio.sleep(0.1)
    except TimeoutError:
        image = brokers(world)[0].cluster.image
        shown = [image.partition(tp) for tp in TPS]
        raise Broken(f"the move does not end within {ENDS_WITHIN_S} s: {shown}; set are {throttles(image)}") from None
