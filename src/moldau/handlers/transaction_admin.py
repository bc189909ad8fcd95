"""What administrators ask about transactions, and markers by hand: DescribeProducers (key 61), ListTransactions (66),
DescribeTransactions (65) and WriteTxnMarkers (27), in all versions.

Durations are filtered from ListTransactions 1 on, names from version 2 on (KIP-1152), by an expression of RE2 that has
to match the whole name. An id without a transaction has begun nothing, so it lasts longer than any duration, as in
Kafka. States are told apart by case. What is asked for twice is answered once: a small request must not make a reply
that never ends.

WriteTxnMarkers is what brokers send to each other (ClusterAction), and a tool to end what hangs; it is held back by the
epochs of producer and coordinator alone. Version 2 says the transaction's version. Whatever can be no producer or
epoch is UNKNOWN_SERVER_ERROR, as from Kafka; the markers of one producer are answered as one.
"""

from collections.abc import Awaitable, Callable, Mapping

from moldau.cluster.controller import name_refusal
from moldau.cluster.image import Image
from moldau.coordinators.consumer.expressions import compiled
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import DescribedTransaction
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition, TransactionMarkers
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from moldau.protocol.messages.describe_transactions import TransactionState as Described
from moldau.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from moldau.protocol.messages.list_transactions import TransactionState as Listed
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.replication.replicas import Replicas
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)
Errors = Mapping[TopicPartition, ErrorCode]
Found = dict[int, dict[str, dict[int, ErrorCode]]]
"""By producer id, topic and partition."""
MARKERS_OF_A_TURN = 100


class DescribeProducers:
    def __init__(self, replicas: Replicas, image: Callable[[], Image]):
        self._replicas = replicas
        self._image = image

    def __call__(self, request: DescribeProducersRequest, call: Call) -> Steps[DescribeProducersResponse]:
        asked: dict[str, dict[int, None]] = {}
        for topic in request.topics:
            asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
            yield
        response = DescribeProducersResponse()
        for name, indexes in asked.items():
            topic_response = TopicResponse(name=name)
            for index in indexes:
                topic_response.partitions.append((yield from self._partition(name, index)))
            response.topics.append(topic_response)
        return response

    def _partition(self, topic: str, index: int) -> Steps[PartitionResponse]:
        yield
        refusal = name_refusal(topic)
        if refusal is not None:
            return PartitionResponse(partition_index=index, error_code=refusal.code, error_message=refusal.message)
        replica = self._replicas.find(topic, None, index)
        if replica is None:
            absence = self._replicas.absence(topic, None, index)
            message = absence.sentence if topic not in self._image().topics else None
            return PartitionResponse(partition_index=index, error_code=absence, error_message=message)
        if not replica.leadership.leads:
            return PartitionResponse(partition_index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        response = PartitionResponse(partition_index=index)
        for producer in replica.active_producers():
            response.active_producers.append(
                ProducerState(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp=producer.last_timestamp,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_start_offset=producer.transaction_start,
                )
            )
            yield
        return response


class TransactionLists:
    """DescribeTransactions and ListTransactions."""

    def __init__(self, coordinator: TransactionCoordinator, now_ms: Callable[[], int]):
        self._coordinator = coordinator
        self._now_ms = now_ms

    def describe(self, request: DescribeTransactionsRequest, call: Call) -> Steps[DescribeTransactionsResponse]:
        response = DescribeTransactionsResponse()
        for name in dict.fromkeys(request.transactional_ids):
            response.transaction_states.append((yield from self._describe(name)))
        return response

    def _describe(self, transactional_id: str) -> Steps[Described]:
        yield
        try:
            return (yield from _described(self._coordinator.describe(transactional_id)))
        except KafkaError as error:
            return Described(transactional_id=transactional_id, error_code=error.code)

    def list_transactions(self, request: ListTransactionsRequest, call: Call) -> Steps[ListTransactionsResponse]:
        asked = dict.fromkeys(request.state_filters)
        ids, pattern = set(request.producer_id_filters), request.transactional_id_pattern
        begun_before = self._now_ms() - request.duration_filter if request.duration_filter >= 0 else None
        try:
            matches = compiled(pattern).fullmatch if pattern else None
        except ValueError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        response = ListTransactionsResponse(unknown_state_filters=[state for state in asked if state not in STATES])
        try:
            for one in self._coordinator.listed():
                if (
                    (not asked or one.state in asked)
                    and (not ids or one.producer_id in ids)
                    and (begun_before is None or one.start_ms < begun_before)
                    and (matches is None or matches(one.transactional_id))
                ):
                    found = Listed(
                        transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state
                    )
                    response.transaction_states.append(found)
                yield
        except KafkaError as error:
            return ListTransactionsResponse(error_code=error.code)
        return response


def _described(one: DescribedTransaction) -> Steps[Described]:
    topics: dict[str, list[int]] = {}
    for tp in one.partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
        yield
    return Described(
        transactional_id=one.transactional_id,
        transaction_state=one.state,
        transaction_timeout_ms=one.timeout_ms,
        transaction_start_time_ms=one.start_ms,
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


class WriteTxnMarkers:
    def __init__(self, write: Callable[[TransactionMarkers], Awaitable[Errors]], image: Callable[[], Image]):
        self._write = write
        self._image = image

    async def __call__(self, request: WriteTxnMarkersRequest, call: Call) -> Steps[WriteTxnMarkersResponse]:
        found: Found = {}
        async for marker in in_turns(request.markers, MARKERS_OF_A_TURN):
            errors = await self._mark(marker)
            async for tp, error in in_turns(errors.items()):
                found.setdefault(marker.producer_id, {}).setdefault(tp.topic, {})[tp.partition] = error
        return _marked(found)

    async def _mark(self, marker: WritableTxnMarker) -> Errors:
        asked = (TopicPartition(topic.name, p) for topic in marker.topics for p in topic.partition_indexes)
        partitions = tuple({tp: None async for tp in in_turns(asked)})
        impossible = ErrorCode.UNKNOWN_SERVER_ERROR
        if marker.producer_id < 0:
            return dict.fromkeys(partitions, impossible)
        if marker.producer_epoch < 0 or marker.transaction_version < 0:
            image, absent = self._image(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return {tp: absent if image.partition(tp) is None else impossible for tp in partitions}
        return await self._write(
            TransactionMarkers(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
                partitions,
            )
        )


def _marked(found: Found) -> Steps[WriteTxnMarkersResponse]:
    response = WriteTxnMarkersResponse()
    for producer_id, topics in found.items():
        result = WritableTxnMarkerResult(producer_id=producer_id)
        for topic, partitions in topics.items():
            written = WritableTxnMarkerTopicResult(name=topic)
            for index, error in partitions.items():
                written.partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=error))
                yield
            result.topics.append(written)
            yield
        response.markers.append(result)
        yield
    return response
