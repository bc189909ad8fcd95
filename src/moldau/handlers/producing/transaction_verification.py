"""Asks a transaction's coordinator about the first batches that the transaction has in partitions of this broker.

A client of transaction version 1 has told the coordinator which partitions it writes to; here that is only checked
(`transaction.partition.verification.enable`). For a client of version 2 (Produce 12 and newer) the leader adds the
partitions. While the coordinator still ends the producer's previous transaction, it is asked again for a short time
(`add.partitions.to.txn.retry.backoff.ms` and `.max.ms`): nearly every transaction begins that way.

Errors that an older client does not know become errors that it retries: NOT_ENOUGH_REPLICAS, after which it does not
ask for metadata. Source: KIP-890; what Kafka 4.3.1 answers.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, TypeAlias

from moldau.config import BrokerConfig
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.transaction_errors import PRODUCE
from moldau.replication.client_appends import PlannedAppend
from moldau.replication.results import AppendRefusal

if TYPE_CHECKING:
    from moldau.coordinators.transactions.messages import AddPartitions, AddsPartitions

ADDS_PARTITIONS: Final = 12
"""The first version of Produce that uses version 2 of transactions."""
RETRIABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
NOT_ADDED: Final = "the partition was not added to the transaction"
SEVERAL_PRODUCERS: Final = "the request has batches of several producers"

AppendStep: TypeAlias = PlannedAppend | AppendRefusal


def begins_transaction(plan: Iterable[AppendStep]) -> bool:
    """Whether a batch among these would be the first of a transaction in its partition."""
    return any(isinstance(step, PlannedAppend) and step.guard is not None for step in plan)


def error_in_version(error: ErrorCode, version: int) -> ErrorCode:
    """A coordinator's error as clients of that version of Produce know it."""
    if error in RETRIABLE or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return PRODUCE.in_version(error, version)


class TransactionVerifier:
    """`config` returns the settings in force; `transactions` that of whom to ask, made when first asked."""

    def __init__(self, transactions: "Callable[[], AddsPartitions]", config: Callable[[], BrokerConfig]):
        self._transactions = transactions
        self._config = config

    async def verified(self, transactional_id: str, version: int, plan: Sequence[AppendStep]) -> Sequence[AppendStep]:
        """The plan with a refusal in the place of each batch that must not begin the transaction. A request that has
        first batches of several producers is refused as a whole."""
        adds = version >= ADDS_PARTITIONS
        if not adds and not self._config().transaction_partition_verification_enable:
            return plan
        firsts = [step for step in plan if isinstance(step, PlannedAppend) and step.guard is not None]
        producers = {step.producer for step in firsts}
        if len(producers) > 1:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
            return [_refused(step, error, SEVERAL_PRODUCERS) for step in plan]
        ((producer_id, epoch),) = producers
        partitions = tuple(dict.fromkeys(step.replica.tp for step in firsts))
        errors: dict[TopicPartition, ErrorCode] = {}
        if adds:  # a partition that knows a newer epoch of the producer need not ask
            outdated = [step.replica.tp for step in firsts if step.replica.knows_newer_epoch(producer_id, epoch)]
            errors = dict.fromkeys(outdated, ErrorCode.INVALID_PRODUCER_EPOCH)
            partitions = tuple(tp for tp in partitions if tp not in errors)
        if partitions:
            answers = await self._ask(transactional_id, producer_id, epoch, partitions, adds)
            errors |= {tp: error_in_version(error, version) for tp, error in answers.items() if error}
        return [_verified(step, errors) for step in plan] if errors else plan

    async def _ask(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: tuple[TopicPartition, ...], adds: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Have the coordinator add the partitions to the transaction, or only check that they were added."""
        from moldau.coordinators.transactions.messages import AddPartitions

        version = 2 if adds else 0
        ask = AddPartitions(transactional_id, producer_id, epoch, partitions, transaction_version=version)
        if adds:
            return dict.fromkeys(partitions, await self._add(ask))
        verified = self._transactions().verify_partitions(ask)
        return await verified if isawaitable(verified) else verified

    async def _add(self, ask: "AddPartitions") -> ErrorCode:
        config, loop = self._config(), asyncio.get_running_loop()
        deadline = loop.time() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        while True:
            answer = self._transactions().add_partitions(ask)
            error = await answer if isawaitable(answer) else answer
            if error is not ErrorCode.CONCURRENT_TRANSACTIONS or loop.time() >= deadline:
                return error
            await asyncio.sleep(config.add_partitions_to_txn_retry_backoff_ms / 1000)


def _verified(step: AppendStep, errors: Mapping[TopicPartition, ErrorCode]) -> AppendStep:
    """The step, or its refusal if it begins a transaction and its partition has an error."""
    if isinstance(step, AppendRefusal) or step.guard is None or step.replica.tp not in errors:
        return step
    error = errors[step.replica.tp]
    return _refused(step, error, NOT_ADDED if error is ErrorCode.INVALID_TXN_STATE else None)


def _refused(step: AppendStep, error: ErrorCode, message: str | None) -> AppendRefusal:
    """A refusal in the place of the step, unless it is one already."""
    return step if isinstance(step, AppendRefusal) else AppendRefusal(step.partition, error, message=message)
