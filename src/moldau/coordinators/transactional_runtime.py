"""Runs coordinators whose topic producers also write to in their transactions, as they do with offsets.

Such records, and the markers that end transactions, are appended in the order of the decisions, each in a batch of its
own. They are applied by the same steps as during replay. The log checks a producer's epoch, whether its transaction may
begin, and whether a marker comes from the current transaction coordinator.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from moldau.coordinators.batching import split_into_batches
from moldau.coordinators.coordinator_runtime import CoordinatorRuntime, LedPartition
from moldau.coordinators.decision import Decision, InternalRecord, InTransaction, Now, Replies, TransactionEnd
from moldau.coordinators.ports import InternalLog, StateMachine
from moldau.coordinators.replaying import ReplayStep
from moldau.names import VerificationGuard
from moldau.records.batch import NO_PRODUCER_ID, TRANSACTIONAL_BIT, Marker, encode_batch
from moldau.runtime import Clock


class TransactionalLog(InternalLog, Protocol):
    """The partitions of one internal topic to which producers write in transactions."""

    def begin(self, partition: int, producer_id: int, epoch: int) -> VerificationGuard | None:
        """What the first records of a transaction have to show when they are appended; None if they are not the first.
        It is void once the transaction has begun or ended. Raises `KafkaError`."""

    async def append_in_transaction(
        self, partition: int, batch: bytearray, guard: VerificationGuard | None, now_ms: int
    ) -> None:
        """As `append`, for a batch of a producer; also raises INVALID_TXN_STATE and INVALID_PRODUCER_EPOCH."""

    async def append_marker(
        self, partition: int, producer_id: int, epoch: int, marker: Marker, transaction_version: int
    ) -> None:
        """End a producer's transaction; returns once that is committed. Raises `KafkaError`: INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED and what `append` raises."""


class TransactionalStateMachine(StateMachine, Protocol):
    def apply_pending(self, producer_id: int, record: InternalRecord, now: Now) -> Replies:
        """The record waits for the end of the producer's transaction."""

    def end(self, producer_id: int, commits: bool, now: Now) -> Replies:
        """What waits for the producer's transaction counts from now on, or never."""


M = TypeVar("M", bound=TransactionalStateMachine)


class TransactionalRuntime(CoordinatorRuntime[M]):
    def __init__(self, internal: TransactionalLog, machine: Callable[[int], M], clock: Clock):
        super().__init__(internal, machine, clock)
        self._internal = internal

    async def _commit_in_transaction(self, led: LedPartition[M], decision: Decision) -> None:
        match decision.transaction:
            case InTransaction() as transaction:
                for records in split_into_batches(decision.records):
                    await self._commit_pending(led, records, transaction)
            case TransactionEnd(producer_id, epoch, coordinator_epoch, commits, version):
                marker = Marker(commits, coordinator_epoch)
                await self._internal.append_marker(led.partition, producer_id, epoch, marker, version)
                self._answer(led.machine.end(producer_id, commits, self.now()))

    async def _commit_pending(
        self, led: LedPartition[M], records: list[InternalRecord], transaction: InTransaction
    ) -> None:
        wall_ms, (producer_id, epoch, guard) = self._clock.now_ms(), transaction
        batch = encode_batch(
            [(record.key, record.value, wall_ms, []) for record in records],
            attributes=TRANSACTIONAL_BIT,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        await self._internal.append_in_transaction(led.partition, batch, guard, wall_ms)
        now = self.now()
        for record in records:
            self._answer(led.machine.apply_pending(producer_id, record, now))

    def _applying(self, machine: M, step: ReplayStep, now: Now) -> Callable[[InternalRecord, Now], Replies]:
        if step.producer_id == NO_PRODUCER_ID:
            return machine.apply
        if step.commits is not None:
            machine.end(step.producer_id, step.commits, now)
        return partial(machine.apply_pending, step.producer_id)
