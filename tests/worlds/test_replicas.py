"""Three simulated brokers with three replicas of every partition: they are killed, cut off and lose power, and nothing
that acks=all has acknowledged is lost, moved or doubled; the replicas are the same bytes."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from harness.tiers import sized
from moldau.client.administration.admin import AsyncAdmin
from moldau.cluster.controlling import acting
from moldau.errors import ErrorCode, StorageError
from moldau.handlers.following.follower_sessions import FollowerSession
from moldau.log import truncation
from moldau.protocol.fetch_request import Fetch
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from moldau.simulation.world import World
from tests.replacing import Instead, nothing, replaced, returns
from tests.unlogged import unlogged
from tests.worlds.brokers import ENSEMBLE
from tests.worlds.folder_moves import FOLDER_MOVES
from tests.worlds.replicated import (
    BOOTSTRAP,
    FLUSHED,
    HARMS,
    NAMES,
    PARTITIONS,
    POWER_LOSSES,
    RECORDS,
    SESSIONS,
    SETTINGS,
    Harm,
    are_equal,
    healed,
    live_replicated,
)
from tests.worlds.workload import Broken, History, produce

EVERY = HARMS | POWER_LOSSES | SESSIONS | FOLDER_MOVES
SEEDS = {name: range(100 * number, 100 * number + sized(1, 2, 5)) for number, name in enumerate(EVERY)}


def live(seed: int, harm: Harm) -> None:
    World(seed, manners=ENSEMBLE).run(lambda world: live_replicated(world, harm))


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_nothing_acknowledged_is_lost_doubled_or_moved_by(name: str, seed: int) -> None:
    live(seed, EVERY[name])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.check] * (name != "anything")) for name in [*HARMS, *POWER_LOSSES]]
)
def test_nor_if_followers_fetch_little_at_a_time_and_ask_ahead(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ahead = 0

    def counted(original: Callable[..., object], *given: object) -> object:
        nonlocal ahead
        found = original(*given)
        ahead += found is not None
        return found

    for settings in (SETTINGS, FLUSHED):
        monkeypatch.setitem(settings, "replica_fetch_max_bytes", 400)
    with replaced([Instead("moldau.replication.follower:position_behind", counted)]):
        for seed in SEEDS[name][: sized(2, 2, 5)]:
            live(seed, EVERY[name])
    assert ahead


@pytest.mark.bug
def test_without_the_boot_id_the_last_one_would_lead_without_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "kept_folders", lambda broker, noted, since: {*broker.directories, ""})
    with pytest.raises(Broken, match=r"was acknowledged .* and is lost"):
        live(300, POWER_LOSSES["power losses of the last one in sync"])


@pytest.mark.bug
def test_without_the_flushes_all_would_lose_records() -> None:
    bug = Instead("moldau.replication.replica:Replica.is_flush_due", returns(False))
    with replaced([bug]), pytest.raises(Broken, match=r"was acknowledged .* and is lost"):
        live(400, POWER_LOSSES["power losses of all that flush every record"])


def _cuts_at_the_watermark(original: Callable[..., None], replica: Replica, roles: PartitionRoles, now_ms: int) -> None:
    original(replica, roles, now_ms)
    if not replica.leadership.leads and replica.high_watermark < replica.log.log_end_offset:
        truncation.truncate_to(replica.log, replica.high_watermark, 0, now_ms)


@pytest.mark.bug
def test_a_log_that_stays_in_the_folder_it_has_left_is_found() -> None:
    bug = Instead("moldau.log.folders.folder:LogFolder.retire", nothing)
    kills, *_ = FOLDER_MOVES.values()
    with unlogged(logging.CRITICAL), replaced([bug]), pytest.raises(StorageError, match="is both in"):
        live(900, kills)


BUGS = {
    "acks=all is answered at the append": Instead(
        "moldau.replication.replica:Replica.acknowledged", returns(ErrorCode.NONE)
    ),
    "a follower truncates to its high watermark": Instead(
        "moldau.replication.replica:Replica.take_roles", _cuts_at_the_watermark
    ),
    "a leader compares no epochs": Instead("moldau.replication.for_followers:divergence", returns(None)),
}
SEEDS_MAX = 12


def _keeps_an_old_epoch(
    original: Callable[..., None], session: FollowerSession, request: Fetch, is_shown: bool
) -> None:
    assert request.follower is not None
    session.broker_epoch = request.follower.broker_epoch
    original(session, request, is_shown)


@pytest.mark.bug
def test_a_session_that_keeps_an_old_broker_epoch_leaves_an_idle_partition_behind() -> None:
    bug = Instead("moldau.handlers.following.follower_sessions:FollowerSession.change", _keeps_an_old_epoch)
    with unlogged(logging.CRITICAL), replaced([bug]), pytest.raises(Broken, match="not all replicas are in sync"):
        live(800, next(iter(SESSIONS.values())))


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found_within_a_few_seeds(name: str) -> None:
    with unlogged(logging.CRITICAL), replaced([BUGS[name]]):
        assert found_after(SEEDS_MAX, HARMS["anything"]) is not None


def found_after(seeds: int, harm: Harm) -> int | None:
    """The number of seeds after which something does not hold, None if all does."""
    for number in range(seeds):
        try:
            live(400 + number, harm)
        except AssertionError:
            return number + 1
    return None


@pytest.mark.parametrize("seed", range(400, 402))
def test_the_longest_logs_lead_when_all_machines_have_lost_power(seed: int) -> None:
    async def scenario(world: World) -> None:
        for name in NAMES:
            await world.join_broker(name, **SETTINGS)
        async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
            await admin.create_topic("events", partitions=PARTITIONS)
        produced = produce(world, History(), BOOTSTRAP, "events", "producer", RECORDS)
        producing = world.loop.create_task(world.on("producer", produced))
        await asyncio.sleep(5)
        for name in NAMES:
            world.kill_broker(name, power_loss=True)
        for name in NAMES:
            await asyncio.sleep(3)
            await world.join_broker(name, **SETTINGS)
        await healed(world)
        async with asyncio.timeout(600):
            await producing
        await healed(world)
        assert are_equal(world)
        for name in NAMES:
            await world.stop_broker(name)

    World(seed).run(scenario)
