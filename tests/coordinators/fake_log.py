"""An internal topic in memory that commits when it is told to, or refuses; and a coordinator on it in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from moldau.coordinators.classic.messages import Join, Joined, Sync, Synced
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.log.producers import verification_guards
from moldau.log.producers.producers import Producers
from moldau.names import VerificationGuard
from moldau.records.batch import Marker, encode_marker, read_header
from moldau.records.validation import NO_HEADER
from moldau.runtime import Runtime
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import Network
from tests.coordinators.groups.scene import subscription
from tests.coordinators.held_log import YEAR_2013_MS
from tests.coordinators.settings import group_settings

R = TypeVar("R")
PARTITIONS = 50


def in_virtual_time(work: Coroutine[Any, Any, R]) -> R:
    loop = SimulatedLoop(Network(random.Random(0)))
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class LoopClock:
    def now_ms(self) -> int:
        return YEAR_2013_MS + int(asyncio.get_running_loop().time() * 1000)

    def elapsed_s(self) -> float:
        return asyncio.get_running_loop().time()


class FakeLog:
    """`batches` is what is committed, while `committed` is set. While `gate` is closed, appends wait; the next ones
    raise `refusals`. Of producers it knows what a log does."""

    name = "__of_tests"

    def __init__(self) -> None:
        self.batches: dict[int, list[bytes]] = {}
        self.producers: dict[int, Producers] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.refusals: list[ErrorCode] = []
        self.sizes_max = 0
        self.reading = asyncio.Event()
        self.reading.set()
        self.committed = asyncio.Event()
        self.committed.set()
        self.loads = 0

    async def read_all(self, partition: int) -> AsyncIterator[bytes]:
        self.loads += 1
        await self.reading.wait()
        for batch in self.batches.get(partition, []):
            yield batch

    def may_answer(self, partition: int) -> bool:
        return True

    async def until_committed(self, partition: int) -> None:
        await self.committed.wait()

    def begin(self, partition: int, producer_id: int, epoch: int) -> VerificationGuard | None:
        producers = self.producers.setdefault(partition, Producers())
        header = NO_HEADER._replace(producer_id=producer_id, producer_epoch=epoch)
        return (
            None if verification_guards.is_open(producers, header) else verification_guards.obtain(producers, header, 0)
        )

    async def append_in_transaction(
        self, partition: int, batch: bytearray, guard: VerificationGuard | None, now_ms: int
    ) -> None:
        producers, header = self.producers.setdefault(partition, Producers()), read_header(batch)
        refusal = verification_guards.check(producers, header, guard, 0) or producers.check(header)
        if refusal is not None:
            assert isinstance(refusal, ErrorCode)
            raise KafkaError(refusal)
        await self.append(partition, batch, now_ms)
        producers.appended(header, len(self.batches[partition]), 0)

    async def append_marker(
        self, partition: int, producer_id: int, epoch: int, marker: Marker, transaction_version: int
    ) -> None:
        producers = self.producers.setdefault(partition, Producers())
        refusal = producers.check_marker(producer_id, epoch, marker.coordinator_epoch, transaction_version)
        if refusal is not None:
            raise KafkaError(refusal)
        batch = encode_marker(producer_id, epoch, marker.commits, marker.coordinator_epoch, 0)
        await self.append(partition, batch, 0)
        producers.ended(read_header(batch), marker, len(self.batches[partition]), 0)

    async def append(self, partition: int, batch: bytearray, now_ms: int) -> None:
        await self.gate.wait()
        if self.sizes_max and len(batch) > self.sizes_max:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        if self.refusals:
            raise KafkaError(self.refusals.pop(0))
        self.batches.setdefault(partition, []).append(bytes(batch))


def coordinator(log: FakeLog, **settings: int) -> GroupCoordinator:
    everything = group_settings(**{"initial_rebalance_delay_ms": 0, **settings})
    return GroupCoordinator(everything, log, Runtime(clock=LoopClock()), PARTITIONS)


async def leading(log: FakeLog, *groups: str, **settings: int) -> GroupCoordinator:
    """A coordinator that has loaded the partitions of these groups."""
    groups_here = coordinator(log, **settings)
    for group in groups or ("g",):
        groups_here.lead(groups_here.partition_of(group), 0)
        await groups_here.loaded(group)
    return groups_here


def join(member: str = "", group: str = "g", *, wait_for_id: bool = False) -> Join:
    return Join(
        group_id=group,
        member_id=member,
        instance_id=None,
        client_id="c",
        client_host="/h",
        session_timeout_ms=6000,
        rebalance_timeout_ms=9000,
        protocol_type="consumer",
        protocols=(("range", subscription("t")),),
        can_wait_for_id=wait_for_id,
        can_skip=False,
    )


def sync(member: str, generation: int, **assignments: bytes) -> Sync:
    return Sync(
        group_id="g",
        generation=generation,
        member_id=member,
        instance_id=None,
        protocol_type=None,
        protocol=None,
        assignments=assignments or {member: b"all"},
    )


async def answered(what: Any) -> Any:
    return await what if isinstance(what, asyncio.Future) else what


async def stable_member(groups: GroupCoordinator) -> str:
    """One member, alone in group g, with everything assigned to it."""
    joined: Joined = await answered(groups.join(join()))
    synced: Synced = await answered(groups.sync(sync(joined.member_id, joined.generation)))
    assert synced.assignment == b"all"
    return joined.member_id
