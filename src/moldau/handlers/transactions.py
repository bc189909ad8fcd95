"""AddPartitionsToTxn (key 24), AddOffsetsToTxn (25), EndTxn (26): the life of a transaction, in all versions.

AddPartitionsToTxn 0 to 3 is a client's, of one transaction; 4 and 5 are a broker's, of many, some of which are only
verified (KIP-890). All partitions of a transaction are added or none: where one does not exist, the others are
answered with OPERATION_NOT_ATTEMPTED; those of internal topics are none that a client may add
(TOPIC_AUTHORIZATION_FAILED). AddOffsetsToTxn adds the partition that a group's offsets are kept in. From EndTxn 5 on
every transaction has an epoch of its own, and the answer brings that of the next.

Until version 2 (each of them) PRODUCER_FENCED is not known, and INVALID_PRODUCER_EPOCH says it.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable

from moldau.cluster.image import Image
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import (
    FENCED_SINCE_ADD,
    FENCED_SINCE_END,
    AddPartitions,
    Ended,
    EndTransaction,
    spoken,
)
from moldau.errors import ErrorCode
from moldau.handlers.groups import answer
from moldau.names import INTERNAL_TOPICS, OFFSETS_TOPIC, TopicPartition
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.protocol.upgrades import ADD_PARTITIONS_BATCHES, downgrade_add_partitions, upgrade_add_partitions
from moldau.requests.session import Call
from moldau.turns import Steps

END_HAS_NEXT = 5
"""The version of EndTxn whose transactions have an epoch each."""
Errors = Mapping[TopicPartition, ErrorCode]


class TransactionHandlers:
    def __init__(
        self, coordinator: TransactionCoordinator, groups: Callable[[], GroupCoordinator], image: Callable[[], Image]
    ):
        self._coordinator = coordinator
        self._groups = groups
        self._image = image

    def add_partitions(
        self, request: AddPartitionsToTxnRequest, call: Call
    ) -> Steps[Steps[AddPartitionsToTxnResponse] | Awaitable[Steps[AddPartitionsToTxnResponse]]]:
        version = call.version
        upgrade_add_partitions(request, version)
        answers, waits = [], False
        for transaction in request.transactions:
            answers.append((yield from self._add(transaction, version)))
            waits = waits or isawaitable(answers[-1])
        if waits:
            return self._added_later(request, answers, version)
        return _added(request, [errors for errors in answers if not isawaitable(errors)], version)

    async def _added_later(
        self, request: AddPartitionsToTxnRequest, answers: list[Errors | Awaitable[Errors]], version: int
    ) -> Steps[AddPartitionsToTxnResponse]:
        return _added(request, [await errors if isawaitable(errors) else errors for errors in answers], version)

    def _add(self, transaction: AddPartitionsToTxnTransaction, version: int) -> Steps[Errors | Awaitable[Errors]]:
        image = self._image()
        found: dict[TopicPartition, ErrorCode] = {}
        wrong = False
        yield
        for topic in transaction.topics:
            for p in topic.partitions:
                tp, error = TopicPartition(topic.name, p), ErrorCode.NONE
                if version < ADD_PARTITIONS_BATCHES and topic.name in INTERNAL_TOPICS:
                    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                elif image.partition(tp) is None:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                found[tp] = error
                wrong = wrong or error is not ErrorCode.NONE
                yield
        if wrong:
            return {tp: error or ErrorCode.OPERATION_NOT_ATTEMPTED for tp, error in found.items()}
        partitions = tuple(found)
        ask = AddPartitions(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
            transaction_version=2 if version >= ADD_PARTITIONS_BATCHES else 0,
        )
        if transaction.verify_only:
            return self._coordinator.verify_partitions(ask)
        return answer(
            self._coordinator.add_partitions(ask),
            lambda error: dict.fromkeys(partitions, spoken(error, version, FENCED_SINCE_ADD)),
        )

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, call: Call
    ) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
        partition = TopicPartition(OFFSETS_TOPIC, self._groups().partition_of(request.group_id))
        ask = AddPartitions(request.transactional_id, request.producer_id, request.producer_epoch, (partition,))
        return answer(
            self._coordinator.add_partitions(ask),
            lambda error: AddOffsetsToTxnResponse(error_code=spoken(error, call.version, FENCED_SINCE_ADD)),
        )

    def end(self, request: EndTxnRequest, call: Call) -> EndTxnResponse | Awaitable[EndTxnResponse]:
        ask = EndTransaction(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            transaction_version=2 if call.version >= END_HAS_NEXT else 0,
        )

        def respond(ended: Ended) -> EndTxnResponse:
            return EndTxnResponse(
                error_code=spoken(ended.error, call.version, FENCED_SINCE_END),
                producer_id=ended.producer_id,
                producer_epoch=ended.epoch,
            )

        return answer(self._coordinator.end(ask), respond)


def _added(request: AddPartitionsToTxnRequest, found: list[Errors], version: int) -> Steps[AddPartitionsToTxnResponse]:
    """`found`: the errors of each transaction of the request, in its order."""
    results = []
    for transaction, errors in zip(request.transactions, found, strict=True):
        result = AddPartitionsToTxnResult(transactional_id=transaction.transactional_id)
        for topic in transaction.topics:
            added = AddPartitionsToTxnTopicResult(name=topic.name)
            for index in topic.partitions:
                error = errors[TopicPartition(topic.name, index)]
                added.results_by_partition.append(
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
                )
                yield
            result.topic_results.append(added)
            yield
        results.append(result)
        yield
    response = AddPartitionsToTxnResponse(results_by_transaction=results)
    downgrade_add_partitions(response, version)
    return response
