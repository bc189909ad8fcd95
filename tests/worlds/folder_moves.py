"""Replicas move between the log folders of their simulated brokers, which die or lose power at any change of a disk
meanwhile: nothing that was acknowledged is lost, each replica is in one folder, and every move ends."""

import asyncio
from collections.abc import Sequence
from functools import partial

from moldau.client.administration.admin import AsyncAdmin
from moldau.simulation.world import World
from tests.worlds.replicated import BOOTSTRAP, FLUSHED, HEALED_S, NAMES, SETTINGS, TOPICS, Harm
from tests.worlds.workload import Broken

FOLDERS = ("/data", "/more")
BOTH = {"log_dirs": ",".join(FOLDERS)}
CALLS_MAX = 80
"""About the changes of the disk that the moves of two small replicas make."""


async def ask_for_moves(world: World, name: str) -> None:
    """Some replicas of this broker are to be in the folder in which they are not, or in the one in which they are."""
    broker = world.host(name).broker
    assert broker is not None
    replicas = sorted(replica.tp for replica in broker.replicas if replica.tp.topic in TOPICS)
    chosen = world.random.sample(replicas, world.random.randint(1, len(replicas)))
    wanted = {(broker.config.node_id, tp): world.random.choice(FOLDERS) for tp in chosen}
    async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
        outcome = await admin.alter_replica_log_dirs(wanted)
    assert not any(outcome.values()), outcome


async def die_while_logs_move(
    world: World, victims: Sequence[str], settings: dict[str, object], *, power_loss: bool
) -> None:
    killed: dict[str, None] = {}
    for name in victims:
        await ask_for_moves(world, name)
    for name in victims:
        calls = world.random.randint(1, CALLS_MAX)
        world.kill_broker_at_call(name, calls, power_loss, partial(killed.setdefault, name))
    await asyncio.sleep(world.random.random() * 5)
    for name in victims:
        if name not in killed:
            killed[name] = None
            world.host(name).disk.faults = None
            world.kill_broker(name, power_loss)
    for name in world.random.sample(victims, len(victims)):
        await asyncio.sleep(world.random.random() * 10)
        await world.join_broker(name, **settings)
    await at_rest(world)


async def at_rest(world: World) -> None:
    """Every move has ended. Raises `Broken` if that takes long, or if a replica is not in exactly one folder."""
    up = [broker for name in NAMES if (broker := world.host(name).broker) is not None]
    try:
        async with asyncio.timeout(HEALED_S):
            while any(broker.replicas.moves.copies() for broker in up):
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise Broken(f"replicas still move between log folders after {HEALED_S} s") from None
    for broker in up:
        disk = broker.runtime.disk
        names = [name for folder in broker.folders.folders for name in disk.list(folder.path)]
        served = sorted(str(replica.tp) for replica in broker.replicas)
        found = sorted(name for name in names if _is_of_a_replica(name) and not name.endswith("-delete"))
        if found != served:
            raise Broken(f"broker {broker.config.node_id} serves {served} and has {found} in its log folders")


def _is_of_a_replica(name: str) -> bool:
    return name.startswith(tuple(f"{topic}-" for topic in TOPICS)) or name.endswith("-future")


async def one_dies(world: World, *, power_loss: bool) -> None:
    await die_while_logs_move(world, [world.random.choice(NAMES)], SETTINGS | BOTH, power_loss=power_loss)


async def all_lose_power(world: World) -> None:
    """Nothing is lost because everything was flushed, and the copies before they count."""
    await die_while_logs_move(world, NAMES, FLUSHED | BOTH, power_loss=True)


FOLDER_MOVES = {
    "kills while logs move between log folders": Harm(partial(one_dies, power_loss=False), 3, SETTINGS | BOTH),
    "power losses of any one while logs move between log folders": Harm(
        partial(one_dies, power_loss=True), 3, SETTINGS | BOTH
    ),
    "power losses of all that flush every record while logs move between log folders": Harm(
        all_lose_power, 3, FLUSHED | BOTH
    ),
}
"""What happens to brokers that have two log folders."""
