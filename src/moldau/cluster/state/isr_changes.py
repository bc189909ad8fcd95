"""The ISRs that leaders propose for their partitions with AlterPartition, judged by the controller's image. Pure.

A proposal is accepted only if the sender leads in that leader epoch and has seen the latest state of the partition, and
if every member is a replica that is up and has not registered again since the leader saw it fetch (KIP-497, 841, 903).
Brokers that are about to stop, and replicas whose log folder is offline, do not join: the leader of an idle partition
may remember them as caught up. For a member of the committed ISR the broker epoch may be -1: the leader may not have
seen a fetch of it yet, and a broker that registers again leaves the ISR. The codes and their order are those of Kafka
4.3.1.
"""

import uuid
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, TypeAlias

from moldau.cluster.state.eligibility import with_isr
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ProposedPartition,
    ProposedReplica,
    ProposedTopic,
)

UNSEEN: Final = -1
"""The broker epoch of a member that the leader has not seen fetch in this leader epoch."""


class ProposedIsr(NamedTuple):
    """An ISR: its members, each with the broker epoch of its latest Fetch. Valid at this leader epoch and partition
    epoch only."""

    topic_id: uuid.UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


JudgedIsr: TypeAlias = tuple[TopicPartition, PartitionImage] | ErrorCode


def is_stale(image: Image, broker_id: int, broker_epoch: int) -> bool:
    """Whether the sender is not registered, or has registered again: then none of its proposals is judged."""
    broker = image.brokers.get(broker_id)
    return broker is None or broker.epoch != broker_epoch


def judged(image: Image, sender: int, proposal: ProposedIsr, least: int, away: Collection[int] = ()) -> JudgedIsr:
    """The partition with the proposed ISR, or why it stays as it is. `least` is its `min.insync.replicas`, `away` are
    brokers that are registered, but silent."""
    topic = image.topics_by_id.get(proposal.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= proposal.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    part = topic.partitions[proposal.partition]
    refusal = _outdated(part, sender, proposal) or _invalid(part, sender, proposal)
    if refusal is not None:
        return refusal
    if not all(_is_eligible(image.brokers.get(one), epoch, away, part, one) for one, epoch in proposal.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    proposed = {one for one, _ in proposal.isr}
    isr = tuple(one for one in part.replicas if one in proposed)
    after = part if set(part.isr) == proposed else with_isr(part, isr, least)
    return TopicPartition(topic.name, proposal.partition), after


def _outdated(part: PartitionImage, sender: int, proposal: ProposedIsr) -> ErrorCode | None:
    if proposal.leader_epoch > part.leader_epoch or proposal.partition_epoch > part.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the sender knows more than this controller, which was replaced
    if proposal.leader_epoch < part.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != part.leader:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_UPDATE_VERSION if proposal.partition_epoch < part.partition_epoch else None


def _invalid(part: PartitionImage, sender: int, proposal: ProposedIsr) -> ErrorCode | None:
    proposed = {one for one, _ in proposal.isr}
    is_valid = len(proposed) == len(proposal.isr) and sender in proposed and proposed <= {*part.replicas}
    return None if is_valid else ErrorCode.INVALID_REQUEST


def _is_eligible(
    broker: BrokerImage | None, epoch: int, away: Collection[int], part: PartitionImage, replica: int
) -> bool:
    is_in_sync = replica in part.isr
    if broker is None or broker.id in away:
        return False
    if not is_in_sync and (broker.leaving or not broker.serves(part.directory_of(replica))):
        return False
    return broker.epoch == epoch or (is_in_sync and epoch == UNSEEN)


def request_of(broker_id: int, broker_epoch: int, proposals: Sequence[ProposedIsr]) -> AlterPartitionRequest:
    by_topic: dict[uuid.UUID, list[ProposedPartition]] = {}
    for topic_id, number, leader_epoch, partition_epoch, isr in proposals:
        members = [ProposedReplica(broker_id=one, broker_epoch=epoch) for one, epoch in isr]
        by_topic.setdefault(topic_id, []).append(
            ProposedPartition(
                partition_index=number,
                leader_epoch=leader_epoch,
                new_isr_with_epochs=members,
                partition_epoch=partition_epoch,
            )
        )
    topics = [ProposedTopic(topic_id=topic_id, partitions=parts) for topic_id, parts in by_topic.items()]
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)


def proposals_of(request: AlterPartitionRequest) -> list[ProposedIsr]:
    return [
        ProposedIsr(
            topic.topic_id,
            part.partition_index,
            part.leader_epoch,
            part.partition_epoch,
            tuple((one.broker_id, one.broker_epoch) for one in part.new_isr_with_epochs),
        )
        for topic in request.topics
        for part in topic.partitions
    ]


def response_of(
    proposals: Sequence[ProposedIsr], results: Sequence[PartitionImage | ErrorCode]
) -> AlterPartitionResponse:
    """The answer to these proposals, with the new state of each partition or the reason why it has none."""
    by_topic: dict[uuid.UUID, list[AlteredPartition]] = {}
    for proposal, result in zip(proposals, results, strict=True):
        answer = AlteredPartition(partition_index=proposal.partition)
        if isinstance(result, ErrorCode):
            answer.error_code = result
        else:
            answer.leader_id, answer.leader_epoch = result.leader, result.leader_epoch
            answer.isr, answer.partition_epoch = list(result.isr), result.partition_epoch
        by_topic.setdefault(proposal.topic_id, []).append(answer)
    topics = [AlteredTopic(topic_id=topic_id, partitions=parts) for topic_id, parts in by_topic.items()]
    return AlterPartitionResponse(topics=topics)


def codes_of(proposals: Sequence[ProposedIsr], response: AlterPartitionResponse) -> list[ErrorCode]:
    """The controller's answer to each proposal. Raises `KafkaError` if it has judged none of them."""
    if response.error_code:
        raise KafkaError(error_of(response.error_code))
    code_of = {
        (topic.topic_id, part.partition_index): error_of(part.error_code)
        for topic in response.topics
        for part in topic.partitions
    }
    return [code_of.get((one.topic_id, one.partition), ErrorCode.UNKNOWN_SERVER_ERROR) for one in proposals]
