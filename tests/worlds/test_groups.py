"""Worlds of consumer groups: what members, administrators and the broker's deaths do breaks nothing that must hold."""

import asyncio
import os
import subprocess
import sys

import pytest

from harness.patience import stretched
from harness.tiers import seeds_or, sized
from moldau.client.administration.admin import AsyncAdmin
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.records.batch import encode_batch
from moldau.records.validation import check_produce
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.replica import Replica
from moldau.simulation.world import World
from tests.worlds.groups.ledger import UNKNOWN_IN_A_ROW_MAX, GroupLedger
from tests.worlds.groups.register import OffsetRegister
from tests.worlds.scenarios import live, run_groups
from tests.worlds.workload import Broken

SEEDS = range(1, 1 + sized(3, 6, 8))
FRESH = sized(2, 4, 2000)
PLACE = TopicPartition("t", 0)

REPLAY = """
import random, sys
held = [bytearray(random.randrange(1, 5000)) for _ in range(int(sys.argv[2]))]
held = held[::3]
from tests.worlds.scenarios import run_groups
print(run_groups(int(sys.argv[1]), power_loss=True).digest)
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_keep_their_promises_when_the_broker_is_killed(seed: int) -> None:
    world = run_groups(seed)
    assert world.network.delivered > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_keep_their_promises_when_the_power_fails(seed: int) -> None:
    run_groups(seed, power_loss=True)


def test_fresh_seeds_hold_for_long_in_the_long_mode() -> None:
    for seed in seeds_or(7000, FRESH):
        lived = live(seed, "groups", seed % 2 == 0)
        assert lived.failure is None, f"seed {seed}, power loss {seed % 2 == 0}: {lived.failure}"


def test_a_seed_of_groups_has_one_history_whatever_the_heap_and_the_hashes_are() -> None:
    digests = set()
    for hash_seed, garbage in (("0", "0"), ("4242", "20011")):
        ran = subprocess.run(
            [sys.executable, "-c", REPLAY, "11", garbage],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=stretched(100),
            check=True,
        )
        digests.add(ran.stdout.strip())
    assert len(digests) == 1, digests


def test_an_offset_is_the_last_that_was_acknowledged_or_one_under_way() -> None:
    register = OffsetRegister(retention_s=60)
    assert register.read(None, 0, 1) is None
    first = register.write(1, 1)
    register.taken(first, 2)
    assert register.read(1, 3, 4) is None
    second = register.write(2, 5)
    assert register.read(1, 6, 7) is None
    assert register.read(2, 7, 8) is None
    assert register.read(1, 9, 10) is not None, "two was read before"
    assert register.read(3, 9, 10) is not None, "nobody wrote it"
    assert register.read(None, 11, 12) is not None, "too early to be forgotten"
    assert register.read(None, 90, 91) is None, "forgotten after its retention"
    assert register.read(2, 92, 93) is not None, "what was forgotten does not come back"
    register.refused(second)


def test_a_refused_commit_is_never_read() -> None:
    register = OffsetRegister()
    register.refused(register.write(1, 1))
    assert register.read(1, 2, 3) is not None


def test_two_owners_are_noticed() -> None:
    now = [0.0]
    ledger = GroupLedger(lambda: now[0], 60)
    ledger.given("g", 0, 3, "a", "a#1", [PLACE])
    with pytest.raises(Broken, match="two owners in generation 3"):
        ledger.given("g", 0, 3, "b", "b#1", [PLACE])
    ledger.holds("g", "a", "a#1", [PLACE], until_s=5)
    with pytest.raises(Broken, match="is worked on by a and b"):
        ledger.holds("g", "b", "b#1", [PLACE], until_s=7)
    now[0] = 6
    ledger.holds("g", "b", "b#1", [PLACE], until_s=7)


def _joined(ledger: GroupLedger, process: str, sent_s: float) -> None:
    ledger.claims("g", "i", process).done_s = sent_s
    ledger.joined_as("g", "i", process, sent_s)
    ledger.given("g", 0, 3, "i", process, [PLACE])


def test_only_the_process_that_lost_its_place_is_excused_for_not_knowing() -> None:
    ledger = GroupLedger(lambda: 1.0, 60)
    _joined(ledger, "i#1", 0.0)
    ledger.holds("g", "i", "i#1", [PLACE], until_s=5)
    _joined(ledger, "i#2", 0.5)
    ledger.holds("g", "b", "b#1", [PLACE], until_s=5)
    with pytest.raises(Broken, match="is worked on by b and i"):
        ledger.holds("g", "i", "i#2", [PLACE], until_s=5)


def test_who_is_fenced_is_fenced_by_somebody() -> None:
    ledger = GroupLedger(lambda: 100.0, 60)
    _joined(ledger, "i#1", 90.0)
    with pytest.raises(Broken, match="nobody else has i"):
        ledger.fenced("g", "i", "i#1", 99.0)
    ledger.claims("g", "i", "i#2")
    ledger.fenced("g", "i", "i#1", 99.0)


def test_who_was_thrown_out_is_not_heard_until_it_has_joined_again() -> None:
    now = [1.0]
    ledger = GroupLedger(lambda: now[0], 60)
    _joined(ledger, "i#1", 1.0)
    now[0] = 2.0
    ledger.is_out("g", "i", 1.5, heard_s=2.0)
    ledger.accepted("g", "i", "i#1", 1.9)
    with pytest.raises(Broken, match="thrown out and is heard"):
        ledger.accepted("g", "i", "i#1", 2.1)
    ledger.claims("g", "i", "i#1")
    ledger.accepted("g", "i", "i#1", 2.3)
    ledger.is_out("g", "i", 2.2, heard_s=2.3)
    ledger.accepted("g", "i", "i#1", 2.4)  # it may have joined after that


def test_a_member_is_told_again_and_again_only_if_one_coordinator_does_it() -> None:
    ledger = GroupLedger(lambda: 0.0, 60)
    for _ in range(3 * UNKNOWN_IN_A_ROW_MAX):
        ledger.refused("g", "a#1", ErrorCode.UNKNOWN_MEMBER_ID, 0.0)
        ledger.coordinator_goes("g")
    for _ in range(UNKNOWN_IN_A_ROW_MAX):
        ledger.refused("g", "a#1", ErrorCode.UNKNOWN_MEMBER_ID, 0.0)
    ledger.coordinator_goes("another")
    with pytest.raises(Broken, match="again and again"):
        ledger.refused("g", "a#1", ErrorCode.UNKNOWN_MEMBER_ID, 0.0)


async def _begin(world: World) -> tuple[Replica, InternalTopic]:
    """A broker that flushes what it writes, and a topic of it."""
    broker = await world.start_broker("broker", log_flush_interval_messages=1)
    if "t" not in broker.cluster.image.topics:
        async with AsyncAdmin("broker:9092", runtime=world.runtime(world.host("admin"))) as admin:
            await admin.create_topic("t", partitions=1)
    replica = broker.replicas.find("t", None, 0)
    assert replica is not None
    return replica, InternalTopic("t", broker.replicas, 1 << 20, 5000, broker.runtime)


def _batch(world: World) -> bytearray:
    return encode_batch([(b"key", b"value", world.host("broker").clock.now_ms(), [])])


def test_what_was_not_flushed_before_a_crash_is_flushed_before_it_is_seen() -> None:
    async def scenario(world: World) -> None:
        replica, _ = await _begin(world)
        batch, now_ms = memoryview(_batch(world)), world.host("broker").clock.now_ms()
        replica.append(batch, check_produce(batch, replica.rules, now_ms), now_ms)
        assert replica.high_watermark == 0
        world.kill_broker("broker")
        again, _ = await _begin(world)
        assert (again.high_watermark, again.log.recovery_point) == (1, 1)
        await world.stop_broker("broker")

    World(1).run(scenario)


def test_a_coordinator_that_begins_anew_knows_what_the_one_before_it_was_about_to_commit() -> None:
    async def scenario(world: World) -> None:
        replica, topic = await _begin(world)
        world.loop.work_s = lambda: 0.5
        append = world.loop.create_task(topic.append(0, _batch(world), world.host("broker").clock.now_ms()))
        await asyncio.sleep(0.1)
        append.cancel()
        assert (replica.high_watermark, replica.log.log_end_offset) == (0, 1)
        assert b"value" in b"".join([chunk async for chunk in topic.read_all(0)])
        assert replica.high_watermark == 1
        await world.stop_broker("broker")

    World(1).run(scenario)
