"""Partitions that move to other simulated brokers under a producer: the controller that began it is killed in the
middle, the next one ends it, and nothing that was acknowledged is lost."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from moldau.client.administration.admin import AsyncAdmin
from moldau.cluster.state.image import PartitionImage
from moldau.simulation.world import World
from tests.replacing import Instead, nothing, replaced
from tests.unlogged import unlogged
from tests.worlds.brokers import ENSEMBLE
from tests.worlds.moves import BOOTSTRAP, NAMES, TPS, brokers, check_hosted, has_moved, partition
from tests.worlds.replicated import RECORDS, SETTINGS, produce_slowly, read_all
from tests.worlds.test_clusters import controller
from tests.worlds.workload import Broken, History

ENDS_WITHIN_S = 120


async def begin(world: World, *target: int) -> None:
    """The controller takes a plan for all partitions."""
    await asked(world, target, 0)


async def asked(world: World, target: tuple[int, ...] | None, *refusals: int) -> None:
    """Ask for a plan for all partitions, None to cancel one, until a controller answers with one of these codes."""
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
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


async def moved(world: World) -> None:
    """Three replicas on 1, 2 and 3 become two on 3 and 4, and then three again, of which one has an old log."""
    for name in NAMES:
        await world.join_broker(name, **SETTINGS)
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as a:
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
    check_hosted(world, TPS, 3, 4)
    world.kill_broker("two")
    await world.join_broker("two", **SETTINGS)
    check_hosted(world, TPS, 3, 4)
    await begin(world, 1, 4, 3)
    async with asyncio.timeout(600):
        await producing
    await until(world, lambda part: has_moved(part, 1, 4, 3))
    check_hosted(world, TPS, 1, 3, 4)
    await world.on("reader", read_all(world, history))
    history.check()
    assert len(history.acknowledged) == RECORDS
    for name in NAMES:
        await world.stop_broker(name)


@pytest.mark.parametrize("seed", range(900, 902))
def test_nothing_is_lost_when_the_controller_is_killed_while_partitions_move(seed: int) -> None:
    World(seed, manners=ENSEMBLE).run(moved)


@pytest.mark.bug
def test_a_move_that_no_controller_ends_is_found() -> None:
    bug = Instead("moldau.cluster.controlling.lasting:LastingWork.go_on", nothing)
    with unlogged(logging.CRITICAL), replaced([bug]), pytest.raises(Broken, match="do not get there"):
        World(900, manners=ENSEMBLE).run(moved)
