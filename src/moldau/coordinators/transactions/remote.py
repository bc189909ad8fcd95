"""Transactions across the brokers of a cluster: markers for partitions that other brokers lead, and questions to the
coordinator of a transaction where another broker coordinates it.

What cannot be asked or has no answer gets an error that is tried again: a marker in the coordinator's next round, a
question by the client.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from moldau.cluster.state.image import NO_LEADER, Image
from moldau.coordinators.partitioning import partition_of
from moldau.coordinators.transactions.messages import AddPartitions, AddsPartitions, WriteMarkers
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TRANSACTIONS_TOPIC, TopicPartition, TransactionMarkers, by_topic
from moldau.protocol.apis import ADD_PARTITIONS_TO_TXN, WRITE_TXN_MARKERS, Api
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

TIMEOUT_MS = 30_000
Errors = Mapping[TopicPartition, ErrorCode]
AskBroker = Callable[[int, Api, Any, int], Awaitable[Any]]
"""Sends a request to a broker by its id, with a time-out in milliseconds. Raises `KafkaError`."""


class MarkersForAll:
    """Writes each marker where its partition is led. `here` writes those of this broker."""

    def __init__(self, broker_id: int, image: Callable[[], Image], here: WriteMarkers, ask: AskBroker):
        self._broker_id = broker_id
        self._image = image
        self._here = here
        self._ask = ask

    async def __call__(self, markers: TransactionMarkers) -> Errors:
        image = self._image()
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp in markers.partitions:
            part = image.partition(tp)
            by_leader.setdefault(self._broker_id if part is None else part.leader, []).append(tp)
        answers = await asyncio.gather(
            *(self._write(leader, markers._replace(partitions=tuple(tps))) for leader, tps in by_leader.items())
        )
        return {tp: error for answer in answers for tp, error in answer.items()}

    async def _write(self, leader: int, markers: TransactionMarkers) -> Errors:
        if leader == self._broker_id:
            return await self._here(markers)
        errors = dict.fromkeys(markers.partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if leader == NO_LEADER:
            return errors
        topics = [
            WritableTxnMarkerTopic(name=name, partition_indexes=of) for name, of in by_topic(markers.partitions).items()
        ]
        marker = WritableTxnMarker(
            producer_id=markers.producer_id,
            producer_epoch=markers.epoch,
            transaction_result=markers.commits,
            topics=topics,
            coordinator_epoch=markers.coordinator_epoch,
            transaction_version=markers.transaction_version,
        )
        try:
            answer = await self._ask(leader, WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]), TIMEOUT_MS)
        except KafkaError as failure:
            return dict.fromkeys(markers.partitions, failure.code)
        for result in answer.markers:
            for topic in result.topics:
                for part in topic.partitions:
                    errors[TopicPartition(topic.name, part.partition_index)] = error_of(part.error_code)
        return errors


class CoordinatorAnywhere:
    """Asks the coordinator of a transaction, on this broker (`here`) or on another one."""

    def __init__(self, broker_id: int, image: Callable[[], Image], here: Callable[[], AddsPartitions], ask: AskBroker):
        self._broker_id = broker_id
        self._image = image
        self._here = here
        self._ask = ask

    def add_partitions(self, ask: AddPartitions) -> ErrorCode | Awaitable[ErrorCode]:
        """As `TransactionCoordinator.add_partitions`."""
        leader = self._leader(ask)
        return self._here().add_partitions(ask) if leader == self._broker_id else self._added(leader, ask)

    def verify_partitions(self, ask: AddPartitions) -> Errors | Awaitable[Errors]:
        """As `TransactionCoordinator.verify_partitions`."""
        leader = self._leader(ask)
        return self._here().verify_partitions(ask) if leader == self._broker_id else self._asked(leader, ask, True)

    def _leader(self, ask: AddPartitions) -> int:
        """The broker that coordinates this transaction; this one if nobody does, which says so."""
        image = self._image()
        topic = image.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return self._broker_id
        leader = topic.partitions[partition_of(ask.transactional_id, len(topic.partitions))].leader
        return self._broker_id if leader == NO_LEADER else leader

    async def _added(self, leader: int, ask: AddPartitions) -> ErrorCode:
        answer = await self._asked(leader, ask, False)
        return next((error for error in answer.values() if error), ErrorCode.NONE)

    async def _asked(self, leader: int, ask: AddPartitions, verify_only: bool) -> Errors:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=ask.transactional_id,
            producer_id=ask.producer_id,
            producer_epoch=ask.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=of) for name, of in by_topic(ask.partitions).items()],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        try:
            answer = await self._ask(leader, ADD_PARTITIONS_TO_TXN, request, TIMEOUT_MS)
        except KafkaError as failure:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if failure.retriable else failure.code
            return dict.fromkeys(ask.partitions, code)
        if answer.error_code:
            return dict.fromkeys(ask.partitions, error_of(answer.error_code))
        errors = dict.fromkeys(ask.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for result in answer.results_by_transaction:
            for topic in result.topic_results:
                for part in topic.results_by_partition:
                    errors[TopicPartition(topic.name, part.partition_index)] = error_of(part.partition_error_code)
        return errors
