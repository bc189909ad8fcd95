"""Offsets in transactions on a disk that loses power: what was acknowledged is there, what was open is open, and what
the coordinator waits for is what the log says is undecided."""

import random
from collections.abc import Awaitable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.logs import config
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.errors import ErrorCode
from moldau.log.folders.folder import LogFolder
from moldau.names import OFFSETS_TOPIC, BrokerId, LeaderEpoch, TopicPartition
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk
from tests.coordinators.fake_log import LoopClock, answered, in_virtual_time
from tests.coordinators.groups.scene import TOPIC_ID

ROOT, TP = Path("/data"), TopicPartition(OFFSETS_TOPIC, 0)
ME, NONE = BrokerId(1), ErrorCode.NONE
SEEDS = range(12)
STEPS, GROUPS, PRODUCERS = 40, ("g", "h"), (1, 2, 3)
ALWAYS, NEVER = 1, 2**63 - 1
"""`flush.messages`."""

Key = tuple[str, TopicPartition]


class Place:
    """One partition of the offsets topic, and its coordinator, over power losses. `counts` and `waits` are what was
    acknowledged."""

    def __init__(self, seed: int, flush_messages: int):
        self.chance = random.Random(seed)
        self.disk = SimulatedDisk()
        self.flush_messages = flush_messages
        self.counts: dict[Key, int] = {}
        self.waits: dict[int, dict[Key, int]] = {producer: {} for producer in PRODUCERS}
        self.replica: Replica
        self.groups: GroupCoordinator

    async def start(self) -> None:
        runtime = Runtime(clock=LoopClock(), disk=self.disk)
        settings = config(segment_bytes=1000, flush_messages=self.flush_messages, cleanup_policy=("compact",))
        folder = LogFolder(ROOT, runtime)
        folder.load({OFFSETS_TOPIC: TOPIC_ID}, lambda _: settings, {})
        log = folder.logs[TP] if TP in folder.logs else folder.create(TP, TOPIC_ID, settings)
        self.replica = Replica(TP, TOPIC_ID, log, settings, Leadership(ME), log.log_start_offset, runtime)
        self.replica.take_roles(PartitionRoles(ME, LeaderEpoch(0), (ME,), (ME,)), 0)
        found = SimpleNamespace(hosted={TP: self.replica}, exchange=None)
        topic = InternalTopic(OFFSETS_TOPIC, cast(Replicas, found), 500, 5000, runtime)
        self.groups = GroupCoordinator(GroupCoordinatorSettings(), topic, runtime, 1)
        self.groups.lead(0, 0)
        await self.groups.loaded("g")

    async def lose_power(self) -> None:
        await self.groups.stop()
        self.disk = self.disk.after_crash(self.chance)
        await self.start()

    async def step(self, number: int) -> None:
        group, tp = self.chance.choice(GROUPS), TopicPartition("t", self.chance.randrange(2))
        producer, new = self.chance.choice(PRODUCERS), [NewOffset(tp, number, -1, "", TOPIC_ID)]
        who: dict[str, Any] = {"group_id": group, "member_id": "", "instance_id": None, "generation": -1}
        match self.chance.choices(["transaction", "plain", "end", "delete"], (5, 3, 3, 1))[0]:
            case "transaction":
                ask = TransactionalOffsetCommit(**who, producer_id=producer, epoch=0, offsets=new)
                assert await answered_list(self.groups.commit_in_transaction(ask, lambda: NONE)) == [NONE]
                self.waits[producer].pop((group, tp), None)
                self.waits[producer][group, tp] = number
            case "plain":
                ask_plain = OffsetsToCommit(**who, retention_ms=-1, offsets=new)
                assert await answered_list(self.groups.commit(ask_plain)) == [NONE]
                self.counts[group, tp] = number
            case "end":
                await self.end(producer, self.chance.random() < 0.5)
            case "delete":
                await answered(self.groups.delete_offsets(group, [tp]))
                for known in (self.counts, *self.waits.values()):
                    known.pop((group, tp), None)

    async def end(self, producer: int, commits: bool) -> None:
        answer = self.groups.end_transaction(0, producer, 0, 0, commits, 0)
        assert (answer if isinstance(answer, ErrorCode) else await answer) is NONE
        ended, self.waits[producer] = self.waits[producer], {}
        for key, offset in ended.items() if commits else ():  # numbers rise, so the later one is the larger one
            self.counts[key] = max(offset, self.counts.get(key, -1))

    def offsets(self) -> dict[Key, int]:
        return {(group, tp): value.offset for group in GROUPS for tp, value in self.groups.offsets(group).items()}

    def pending(self) -> set[Key]:
        return {(group, tp) for group in GROUPS for tp in self.groups.pending(group)}

    def open(self) -> set[int]:
        return {number for number, producer in self.replica.log.producers if producer.transaction_start >= 0}

    async def check_the_end(self) -> None:
        """Whatever is open can be ended, and then nothing is undecided, for the coordinator as for the log."""
        for producer in self.open():
            await self.end(producer, True)
        assert (self.pending(), self.replica.last_stable_offset) == (set(), self.replica.high_watermark)


async def answered_list(answer: list[ErrorCode] | Awaitable[list[ErrorCode]]) -> list[ErrorCode]:
    return answer if isinstance(answer, list) else await answer


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_flushed_and_acknowledged_survives(seed: int) -> None:
    async def play() -> None:
        place = Place(seed, ALWAYS)
        await place.start()
        for number in range(STEPS):
            await place.step(number)
            if place.chance.random() < 0.2:
                await place.lose_power()
            assert place.offsets() == place.counts
            assert place.pending() == {key for waiting in place.waits.values() for key in waiting}
            assert place.open() >= {producer for producer, waiting in place.waits.items() if waiting}
        await place.check_the_end()
        assert place.offsets() == place.counts
        await place.groups.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_lost_is_lost_for_the_coordinator_and_the_log_alike(seed: int) -> None:
    async def play() -> None:
        place = Place(seed, NEVER)
        await place.start()
        for number in range(STEPS):
            await place.step(number)
            if place.chance.random() < 0.2:
                await place.lose_power()
                assert not place.pending() or place.open()
        await place.check_the_end()
        await place.groups.stop()

    in_virtual_time(play())
