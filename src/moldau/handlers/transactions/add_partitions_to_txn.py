"""AddPartitionsToTxn (key 24), all versions: partitions that a transaction writes to.

Versions 0 to 3 are a client's, for one transaction, and it needs rights on the id and on each topic. Versions 4 and 5
are a broker's, for many transactions; some of them are only verified (KIP-890). All partitions of a transaction are
added, or none: if one does not exist or is not allowed, the others get OPERATION_NOT_ATTEMPTED. A client cannot add
partitions of internal topics (TOPIC_AUTHORIZATION_FAILED). Versions 0 and 1 get INVALID_PRODUCER_EPOCH for
PRODUCER_FENCED.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import cast

from moldau.cluster.state.image import Image
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import AddPartitions
from moldau.errors import ErrorCode
from moldau.handlers.responding import respond_when_ready
from moldau.names import INTERNAL_TOPICS, TopicPartition
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.transaction_errors import ADD_PARTITIONS_TO_TXN
from moldau.protocol.upgrades import ADD_PARTITIONS_BATCHES, downgrade_add_partitions, upgrade_add_partitions
from moldau.requests.access import CLUSTER_ACTION, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

Errors = Mapping[TopicPartition, ErrorCode]


class AddPartitionsToTxn:
    def __init__(self, coordinator: TransactionCoordinator, image: Callable[[], Image]):
        self._coordinator = coordinator
        self._image = image

    def __call__(
        self, request: AddPartitionsToTxnRequest, call: Call
    ) -> Steps[
        AddPartitionsToTxnResponse | Steps[AddPartitionsToTxnResponse] | Awaitable[Steps[AddPartitionsToTxnResponse]]
    ]:
        version = call.version
        if version >= ADD_PARTITIONS_BATCHES and not call.may(CLUSTER_ACTION):
            return AddPartitionsToTxnResponse(error_code=CLUSTER_ACTION.denied)
        upgrade_add_partitions(request, version)
        answers, waits = [], False
        for transaction in request.transactions:
            answers.append((yield from self._add(transaction, call)))
            waits = waits or isawaitable(answers[-1])
        if waits:
            return self._added_later(request, answers, version)
        return _added(request, cast(list[Errors], answers), version)

    async def _added_later(
        self, request: AddPartitionsToTxnRequest, answers: list[Errors | Awaitable[Errors]], version: int
    ) -> Steps[AddPartitionsToTxnResponse]:
        errors_of = [await errors if isawaitable(errors) else errors async for errors in in_turns(answers)]
        return _added(request, errors_of, version)

    def _add(self, transaction: AddPartitionsToTxnTransaction, call: Call) -> Steps[Errors | Awaitable[Errors]]:
        image, version = self._image(), call.version
        is_clients = version < ADD_PARTITIONS_BATCHES
        may = not is_clients or call.may(WRITE_TRANSACTIONAL_ID, transaction.transactional_id)
        errors: dict[TopicPartition, ErrorCode] = {}
        wrong = False
        yield
        for topic in transaction.topics:
            refusal = ErrorCode.NONE
            if not may:
                refusal = WRITE_TRANSACTIONAL_ID.denied
            elif is_clients and (topic.name in INTERNAL_TOPICS or not call.may(WRITE_TOPIC, topic.name)):
                refusal = WRITE_TOPIC.denied
            yield
            for p in topic.partitions:
                tp, error = TopicPartition(topic.name, p), refusal
                if not refusal and image.partition(tp) is None:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                errors[tp] = error
                wrong = wrong or error is not ErrorCode.NONE
                yield
        if wrong:
            return {tp: error or ErrorCode.OPERATION_NOT_ATTEMPTED for tp, error in errors.items()}
        partitions = tuple(errors)
        ask = AddPartitions(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
            transaction_version=2 if version >= ADD_PARTITIONS_BATCHES else 0,
        )
        if transaction.verify_only:
            return self._coordinator.verify_partitions(ask)
        return respond_when_ready(
            self._coordinator.add_partitions(ask),
            lambda error: dict.fromkeys(partitions, ADD_PARTITIONS_TO_TXN.in_version(error, version)),
        )


def _added(
    request: AddPartitionsToTxnRequest, answers: list[Errors], version: int
) -> Steps[AddPartitionsToTxnResponse]:
    """The response; `answers` has the errors of each transaction of the request, in its order."""
    results = []
    for transaction, errors in zip(request.transactions, answers, strict=True):
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
