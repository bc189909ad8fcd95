"""TxnOffsetCommit (key 28): the offsets that a producer commits in its transaction, in all versions.

They go to the coordinator of the group, which compares the producer's consumer with the group from version 3 on
(KIP-447). Where the transaction has not begun in the group's partition of the offsets topic, the transaction
coordinator has a say: of version 5 it is told to add that partition, which saves the client an AddOffsetsToTxn; of an
older one it says whether that was done (KIP-890). What a fenced producer hears is INVALID_PRODUCER_EPOCH in every
version; TRANSACTION_ABORTABLE is known from version 4 on. In answers, partitions that are not there come first.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from moldau.cluster.image import Image
from moldau.config import BrokerConfig
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.messages import NewOffset, TransactionalOffsetCommit
from moldau.coordinators.transactions.messages import AddPartitions
from moldau.errors import ErrorCode
from moldau.handlers.groups import answer
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.requests.session import Call
from moldau.turns import Steps

if TYPE_CHECKING:
    from moldau.coordinators.transactions.coordinator import TransactionCoordinator

KNOWS_ABORTABLE, ADDS_PARTITIONS = 4, 5


def _spoken(error: ErrorCode, version: int) -> ErrorCode:
    """The transaction coordinator's word in that version."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < KNOWS_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error


class TransactionalOffsetHandler:
    """`config` are the settings in force; `transactions` is made when it is first asked."""

    def __init__(
        self,
        groups: GroupCoordinator,
        transactions: "Callable[[], TransactionCoordinator]",
        image: Callable[[], Image],
        config: Callable[[], BrokerConfig],
    ):
        self._groups = groups
        self._transactions = transactions
        self._image = image
        self._config = config

    def commit(
        self, request: TxnOffsetCommitRequest, call: Call
    ) -> Steps[Steps[TxnOffsetCommitResponse] | Awaitable[Steps[TxnOffsetCommitResponse]]]:
        image = self._image()
        errors: dict[str, list[tuple[int, ErrorCode]]] = {}
        offsets: list[NewOffset] = []
        for asked in request.topics:
            topic = image.topics.get(asked.name)
            for p in asked.partitions:
                yield
                if topic is None or not 0 <= p.partition_index < len(topic.partitions):
                    absent = (p.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    errors.setdefault(asked.name, []).append(absent)
                    continue
                partition = TopicPartition(asked.name, p.partition_index)
                metadata = p.committed_metadata or ""
                offsets.append(NewOffset(partition, p.committed_offset, p.committed_leader_epoch, metadata, topic.id))

        def respond(committed: list[ErrorCode]) -> Steps[TxnOffsetCommitResponse]:
            for new, error in zip(offsets, committed, strict=True):
                errors.setdefault(new.partition.topic, []).append((new.partition.partition, error))
                yield
            response = TxnOffsetCommitResponse()
            for name, found in errors.items():
                response.topics.append((yield from _answered(name, found)))
            return response

        if not offsets:
            return respond([])
        if request.group_id and OFFSETS_TOPIC not in image.topics:  # nobody has asked for a group's coordinator yet
            return respond([ErrorCode.COORDINATOR_NOT_AVAILABLE] * len(offsets))
        ask = TransactionalOffsetCommit(
            group_id=request.group_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
            offsets=offsets,
        )
        may_begin = self._may_begin(request, call.version)
        return answer(self._groups.commit_in_transaction(ask, may_begin), respond)

    def _may_begin(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> Callable[[], ErrorCode | Awaitable[ErrorCode]]:
        """Asks the transaction coordinator whether offsets of this group are, or may become, part of the
        transaction."""

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
                return answer(self._transactions().add_partitions(question), lambda error: _spoken(error, version))
            if not self._config().transaction_partition_verification_enable:
                return ErrorCode.NONE
            found = self._transactions().verify_partitions(question)
            return _spoken(found.get(partition, ErrorCode.NONE), version)

        return ask


def _answered(name: str, found: list[tuple[int, ErrorCode]]) -> Steps[TxnOffsetCommitResponseTopic]:
    topic = TxnOffsetCommitResponseTopic(name=name)
    yield
    for index, error in found:
        topic.partitions.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=error))
        yield
    return topic
