"""A transaction coordinator in virtual time, on a log that can be crashed at named points, and the partitions that its
markers go to.

A point is passed before and after each append of the coordinator and each marker: `before PrepareCommit of committing`
is where what a story calls "committing" is about to decide. At the armed one the process is gone: nothing that it was
about to do happens any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from moldau.cluster.state.image import Image
from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import (
    AddPartitions,
    Ended,
    EndTransaction,
    Initialized,
    InitProducer,
    TransactionSettings,
)
from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers
from moldau.records import rows
from moldau.runtime import Runtime
from tests.coordinators.consumer.scene import with_topic
from tests.coordinators.fake_log import FakeLog, LoopClock
from tests.coordinators.transactions.scene import transaction_of

PARTITIONS = 50
COORDINATOR_EPOCH = 5
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Points:
    """`passed` are those that were reached; at `armed` the process stops for ever."""

    def __init__(self, armed: str = ""):
        self.armed = armed
        self.step = ""
        self.passed: list[str] = []
        self.crashed = asyncio.Event()

    async def at(self, name: str) -> None:
        if self.crashed.is_set():
            await asyncio.Event().wait()
        self.passed.append(f"{name} of {self.step}")
        if self.passed[-1] == self.armed:
            self.crashed.set()
            await asyncio.Event().wait()


class PointedLog(FakeLog):
    def __init__(self) -> None:
        super().__init__()
        self.points = Points()

    async def append(self, partition: int, batch: bytearray, now_ms: int) -> None:
        names = [one.state.label if one else "Gone" for _, one in map(transaction_of, records_of(batch))]
        for name in names:
            await self.points.at(f"before {name}")
        await super().append(partition, batch, now_ms)
        for name in names:
            await self.points.at(f"after {name}")

    def records(self) -> list[InternalRecord]:
        return [record for batches in self.batches.values() for batch in batches for record in records_of(batch)]


class World:
    """`markers` are what the partitions hold; `errors` what a partition answers the next times instead of taking
    one."""

    def __init__(self) -> None:
        self.log = PointedLog()
        self.markers: dict[TopicPartition, list[TransactionMarkers]] = {}
        self.errors: dict[TopicPartition, list[ErrorCode]] = {}
        self.image = with_topic(with_topic(Image(""), "t", 10), "u", 10)
        self.tries: list[tuple[float, TopicPartition]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._producer_ids = 999
        self.producer_id_fails = False

    async def write(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
        await self.gate.wait()
        answers: dict[TopicPartition, ErrorCode] = {}
        for tp in markers.partitions:
            await self.log.points.at(f"before marker in {tp}")
            self.tries.append((asyncio.get_running_loop().time(), tp))
            answers[tp] = self.errors[tp].pop(0) if self.errors.get(tp) else ErrorCode.NONE
            if answers[tp] is ErrorCode.NONE:
                self.markers.setdefault(tp, []).append(markers)
            await self.log.points.at(f"after marker in {tp}")
        return answers

    def next_producer_id(self) -> int | Awaitable[int]:
        self._producer_ids += 1
        return self._later(self._producer_ids) if self._producer_ids % 3 == 0 else self._producer_ids

    async def _later(self, producer_id: int) -> int:
        await asyncio.sleep(0.01)
        return producer_id

    def coordinator(
        self, next_producer_id: Callable[[], int | Awaitable[int]] | None = None, **settings: int
    ) -> TransactionCoordinator:
        return TransactionCoordinator(
            TransactionSettings(**settings),
            self.log,
            Runtime(clock=LoopClock()),
            PARTITIONS,
            next_producer_id or self.next_producer_id,
            self.write,
            lambda: self.image,
        )

    async def leading(self, *ids: str, epoch: int = COORDINATOR_EPOCH, **settings: int) -> TransactionCoordinator:
        """A coordinator that has loaded the partitions of these ids."""
        coordinator = self.coordinator(**settings)
        for one in ids or ("x",):
            coordinator.lead(coordinator.partition_of(one), epoch)
            await coordinator.loaded(one)
        return coordinator


def records_of(batch: bytes | bytearray) -> list[InternalRecord]:
    return [InternalRecord(row.key, row.value) for row in rows.iterate(batch)]


async def answered(what: Any) -> Any:
    return await what if isawaitable(what) else what


class Producer:
    """A client of version 2 that tries again as long as it is told to."""

    def __init__(self, coordinator: TransactionCoordinator, transactional_id: str = "x", timeout_ms: int = 60_000):
        self.coordinator = coordinator
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id, self.epoch = -1, -1
        self.told: list[tuple[str, int, int]] = []

    async def start(self) -> None:
        ask = InitProducer(self.transactional_id, self.timeout_ms)
        answer: Initialized = await self._until_taken(lambda: self.coordinator.init_producer_id(ask))
        assert answer.error is ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.epoch

    async def add(self, *partitions: TopicPartition) -> ErrorCode:
        ask = AddPartitions(self.transactional_id, self.producer_id, self.epoch, partitions, 2)
        error: ErrorCode = await self._until_taken(lambda: self.coordinator.add_partitions(ask))
        return error

    async def end(self, *, commits: bool) -> ErrorCode:
        ask = EndTransaction(self.transactional_id, self.producer_id, self.epoch, commits, 2)
        answer: Ended = await self._until_taken(lambda: self.coordinator.end(ask))
        if answer.error is ErrorCode.NONE:
            self.told.append(("commit" if commits else "abort", self.producer_id, self.epoch))
            self.producer_id, self.epoch = answer.producer_id, answer.epoch
        return answer.error

    async def _until_taken(self, ask: Callable[[], Any]) -> Any:
        while True:
            answer = await answered(ask())
            error = answer if isinstance(answer, ErrorCode) else answer.error
            if error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return answer
            await asyncio.sleep(0.02)
