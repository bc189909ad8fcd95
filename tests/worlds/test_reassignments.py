"""Partitions that move to other simulated brokers under a producer: the controller that began it is killed in the
middle, the next one ends it, and nothing that was acknowledged is lost."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from moldau.broker import Broker
from moldau.client.administration.admin import AsyncAdmin
from moldau.cluster.state.image import PartitionImage
from moldau.cluster.state.reassignment import is_under_way
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.simulation.world import World
from tests.replacing import Instead, nothing, replaced
from tests.testing.replicas import committed_bytes
from tests.unlogged import unlogged
from tests.worlds.brokers import ENSEMBLE
from tests.worlds.replicated import PARTITIONS, RECORDS, SETTINGS, produce_slowly, read_all
from tests.worlds.test_clusters import controller
from tests.worlds.workload import Broken, History

NAMES = ("one", "two", "three", "four")
ENDS_WITHIN_S = 120
TPS = [TopicPartition("events", number) for number in range(PARTITIONS)]


def brokers(world: World) -> list[Broker]:
    """Those that are up, in the order of their ids."""
    return [broker for name in NAMES if (broker := world.host(name).broker) is not None]


def partition(broker: Broker, tp: TopicPartition) -> PartitionImage:
    part = broker.cluster.image.partition(tp)
    assert part is not None
    return part


async def begin(world: World, *target: int) -> None:
    """The controller takes a plan for all partitions."""
    await asked(world, target, 0)


async def asked(world: World, target: tuple[int, ...] | None, *refusals: int) -> None:
    """Ask for a plan for all partitions, None to cancel one, until a controller answers with one of these codes."""
    bootstrap = ",".join(f"{name}:9092" for name in NAMES)
    async with AsyncAdmin(bootstrap, runtime=world.runtime(world.host("admin"))) as admin:
        outcome = await admin.alter_reassignments(dict.fromkeys(TPS, target))
        assert {0 if error is None else error.code for error in outcome.values()} <= {*refusals}, outcome


async def until(world: World, condition: Callable[[PartitionImage], bool]) -> None:
    """Every broker shows every partition like that. Raises `Broken` if it takes long."""
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            while not all(condition(partition(broker, tp)) for broker in brokers(world) for tp in TPS):
                await asyncio.sleep(0.1)
    except TimeoutError:
        shown = [partition(broker, tp) for broker in brokers(world) for tp in TPS]
        raise Broken(f"the partitions do not get there within {ENDS_WITHIN_S} s: {shown}") from None


def has_moved(part: PartitionImage, *target: int) -> bool:
    return part.replicas == target and {*part.isr} == {*target} and not is_under_way(part)


def check_hosted(world: World, *target: int) -> None:
    """Target brokers have the same bytes; the others neither serve the partitions nor follow their leaders."""
    for tp in TPS:
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


async def moved(world: World) -> None:
    """Three replicas on 1, 2 and 3 become two on 3 and 4, and then three again, of which one has an old log."""
    for name in NAMES:
        await world.join_broker(name, **SETTINGS)
    async with AsyncAdmin(",".join(f"{name}:9092" for name in NAMES), runtime=world.runtime(world.host("admin"))) as a:
        await a.create_topic("events", assignment={tp.partition: [1, 2, 3] for tp in TPS})
    history = History()
    producing = world.loop.create_task(produce_slowly(world, history))
    await asyncio.sleep(world.random.random() * 4)
    world.kill_broker("four")
    await begin(world, 3, 4)
    await until(world, lambda part: part.adding_replicas == (4,) and part.removing_replicas == (1, 2))
    victim = await controller(world)
    world.kill_broker(victim)
    await asyncio.sleep(world.random.random() * 10)
    await world.join_broker("four", **SETTINGS)
    await asyncio.sleep(world.random.random() * 10)
    await world.join_broker(victim, **SETTINGS)
    await until(world, lambda part: has_moved(part, 3, 4))
    check_hosted(world, 3, 4)
    world.kill_broker("two")
    await world.join_broker("two", **SETTINGS)
    check_hosted(world, 3, 4)
    await begin(world, 1, 4, 3)
    async with asyncio.timeout(600):
        await producing
    await until(world, lambda part: has_moved(part, 1, 4, 3))
    check_hosted(world, 1, 3, 4)
    await world.on("reader", read_all(world, history))
    history.check()
    assert len(history.acknowledged) == RECORDS
    for name in NAMES:
        await world.stop_broker(name)


@pytest.mark.parametrize("seed", range(900, 904))
def test_nothing_is_lost_when_the_controller_is_killed_while_partitions_move(seed: int) -> None:
    World(seed, manners=ENSEMBLE).run(moved)


@pytest.mark.bug
def test_a_move_that_no_controller_ends_is_found() -> None:
    bug = Instead("moldau.cluster.controlling.lasting:LastingWork.go_on", nothing)
    with unlogged(logging.CRITICAL), replaced([bug]), pytest.raises(Broken, match="do not get there"):
        World(900, manners=ENSEMBLE).run(moved)
