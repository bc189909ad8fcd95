"""TxnOffsetCommit (key 28), all versions: a producer commits offsets in its transaction.

The group's coordinator takes the offsets, and from version 3 on compares the producer's consumer with the group
(KIP-447). If the transaction has not begun in the group's partition of the offsets topic, the transaction coordinator
decides: from version 5 on it adds that partition, which saves the client an AddOffsetsToTxn; for older versions it
checks whether the client has added it (KIP-890). Version 6 names topics by id, earlier ones by name, and it knows the
errors GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319). A fenced producer gets INVALID_PRODUCER_EPOCH in every
version. In answers, partitions that do not exist or may not be read come first.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from moldau.cluster.state.image import Image
from moldau.config import BrokerConfig
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.messages import TransactionalOffsetCommit
from moldau.coordinators.transactions.messages import AddPartitions
from moldau.errors import ErrorCode
from moldau.handlers.groups.committing import Place, asked_offsets
from moldau.handlers.responding import respond_when_ready
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.protocol.transaction_errors import TXN_OFFSET_COMMIT
from moldau.requests.session import Call
from moldau.turns import Steps

if TYPE_CHECKING:
    from moldau.coordinators.transactions.messages import AddsPartitions


ADDS_PARTITIONS = 5
BY_ID = 6


class TxnOffsetCommit:
    """`config` returns the current settings; `transactions` makes the coordinator on first use."""

    def __init__(
        self,
        groups: GroupCoordinator,
        transactions: "Callable[[], AddsPartitions]",
        image: Callable[[], Image],
        config: Callable[[], BrokerConfig],
    ):
        self._groups = groups
        self._transactions = transactions
        self._image = image
        self._config = config

    def __call__(
        self, request: TxnOffsetCommitRequest, call: Call
    ) -> Steps[Steps[TxnOffsetCommitResponse] | Awaitable[Steps[TxnOffsetCommitResponse]]]:
        image = self._image()
        asked = yield from asked_offsets(request.topics, image, call.version >= BY_ID, call)

        def add(topic: TxnOffsetCommitResponseTopic, index: int, error: ErrorCode) -> None:
            known = TXN_OFFSET_COMMIT.in_version(error, call.version)
            topic.partitions.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=known))

        def respond(committed: list[ErrorCode]) -> Steps[TxnOffsetCommitResponse]:
            return TxnOffsetCommitResponse(topics=(yield from asked.answered(committed, _topic, add)))

        if not asked.offsets:
            return respond([])
        if request.group_id and OFFSETS_TOPIC not in image.topics:  # no client has looked up a group coordinator yet
            return respond([ErrorCode.COORDINATOR_NOT_AVAILABLE] * len(asked.offsets))
        ask = TransactionalOffsetCommit(
            group_id=request.group_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            offsets=asked.offsets,
        )
        may_begin = self._may_begin(request, call.version)
        return respond_when_ready(self._groups.commit_in_transaction(ask, may_begin), respond)

    def _may_begin(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> Callable[[], ErrorCode | Awaitable[ErrorCode]]:
        """A function that asks the transaction coordinator whether the transaction may begin in the group's
        partition."""

        def ask() -> ErrorCode | Awaitable[ErrorCode]:
            adds = version >= ADDS_PARTITIONS
            partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_of(request.group_id))
            question = AddPartitions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                (partition,),
                transaction_version=2 if adds else 0,
            )
            if adds:
                return self._transactions().add_partitions(question)
            if not self._config().transaction_partition_verification_enable:
                return ErrorCode.NONE
            return respond_when_ready(
                self._transactions().verify_partitions(question),
                lambda verified: verified.get(partition, ErrorCode.NONE),
            )

        return ask


def _topic(place: Place) -> TxnOffsetCommitResponseTopic:
    if isinstance(place, uuid.UUID):
        return TxnOffsetCommitResponseTopic(topic_id=place)
    return TxnOffsetCommitResponseTopic(name=place)
