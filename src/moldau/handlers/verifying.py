"""The first batch of a transaction in a partition: its coordinator is asked whether the transaction goes on there.

A client of version 1 of transactions has told the coordinator which partitions it writes to, and is only checked
(`transaction.partition.verification.enable`). For one of version 2 (Produce 12 and newer) the leader adds them; while
the coordinator still ends the producer's transaction before, it is asked again for a little while, since nearly every
transaction begins that way (`add.partitions.to.txn.retry.backoff.ms` and `.max.ms`).

What older clients do not understand they get as something they try again: NOT_ENOUGH_REPLICAS, which does not make
them ask for metadata. Source: KIP-890; what Kafka 4.3.1 answers.
"""

import asyncio
from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING

from moldau.config import BrokerConfig
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.transaction_errors import PRODUCE
from moldau.replication.replica import Begun, Replica

if TYPE_CHECKING:
    from moldau.coordinators.transactions.coordinator import TransactionCoordinator
    from moldau.coordinators.transactions.messages import AddPartitions

ADDS_PARTITIONS = 12
"""The first version of Produce that uses version 2 of transactions."""
TRY_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

Begins = dict[int, tuple[Replica, Begun]]
"""Transactions that are about to begin, by the position of the partition in the request."""


def error_in_version(error: ErrorCode, version: int) -> ErrorCode:
    """The coordinator's error, as that version of Produce knows it."""
    if error in TRY_AGAIN or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return PRODUCE.in_version(error, version)


def _is_late(replica: Replica, begun: Begun) -> bool:
    """The partition itself knows that the producer has gone on to another epoch: nobody has to be asked."""
    known = replica.log.producers.get(begun.producer_id)
    return known is not None and begun.epoch < known.epoch


def _are_of_several(begins: Mapping[int, tuple[Replica, Begun]]) -> bool:
    return len({(begun.producer_id, begun.epoch) for _, begun in begins.values()}) > 1


def why_refused(error: ErrorCode, begins: Mapping[int, tuple[Replica, Begun]]) -> str | None:
    """The sentence to a refusal, where Kafka has one."""
    if error is ErrorCode.INVALID_TXN_STATE:
        return "the partition was not added to the transaction"
    several = error is ErrorCode.INVALID_PRODUCER_ID_MAPPING and _are_of_several(begins)
    return "the request has batches of several producers" if several else None


class Verifying:
    """`config` are the settings in force; the coordinator is made when it is first asked."""

    def __init__(self, transactions: "Callable[[], TransactionCoordinator]", config: Callable[[], BrokerConfig]):
        self._transactions = transactions
        self._config = config

    async def ask(self, transactional_id: str, version: int, begins: Begins, count: int) -> Mapping[int, ErrorCode]:
        """Why a batch must not be appended, by its position among so many: whoever writes for two producers is refused
        everything."""
        adds = version >= ADDS_PARTITIONS
        if not adds and not self._config().transaction_partition_verification_enable:
            return {}
        from moldau.coordinators.transactions.messages import AddPartitions

        firsts = [begun for _, begun in begins.values()]
        if _are_of_several(begins):
            return dict.fromkeys(range(count), ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        late = {at for at, (replica, begun) in begins.items() if adds and _is_late(replica, begun)}
        if len(late) == len(begins):
            return dict.fromkeys(late, ErrorCode.INVALID_PRODUCER_EPOCH)
        partitions = tuple(dict.fromkeys(replica.tp for at, (replica, _) in begins.items() if at not in late))
        question = AddPartitions(
            transactional_id, firsts[0].producer_id, firsts[0].epoch, partitions, transaction_version=2 if adds else 0
        )
        if adds:
            error = await self._add(question)
            errors: Mapping[TopicPartition, ErrorCode] = dict.fromkeys(partitions, error)
        else:
            errors = self._transactions().verify_partitions(question)
        refusals = {tp: error_in_version(error, version) for tp, error in errors.items() if error}
        refused = {at: refusals[replica.tp] for at, (replica, _) in begins.items() if replica.tp in refusals}
        return {**refused, **dict.fromkeys(late, ErrorCode.INVALID_PRODUCER_EPOCH)}

    async def _add(self, question: "AddPartitions") -> ErrorCode:
        config, loop = self._config(), asyncio.get_running_loop()
        last = loop.time() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        while True:
            answer = self._transactions().add_partitions(question)
            error = await answer if isawaitable(answer) else answer
            if error is not ErrorCode.CONCURRENT_TRANSACTIONS or loop.time() >= last:
                return error
            await asyncio.sleep(config.add_partitions_to_txn_retry_backoff_ms / 1000)
