"""What members of a consumer group may do with its offsets, and what others may see of the group. Pure.

A commit is accepted at the member's epoch. At an earlier epoch it is accepted for partitions that were assigned to the
member at that epoch or before (KIP-1251), so that a commit during a rebalance is not lost.

In a transaction it is accepted only for such partitions, whatever the epoch. Kafka (4.3.1, 4.4.0) accepts any partition
at the member's epoch there. Java's consumer joins again in the background after its session has ended: a program that
was stopped meanwhile then commits at the new epoch what it had read before, and sets back the offset of the member that
now has the partition, which copies those records again.
"""

import uuid

from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember
from moldau.coordinators.consumer.messages import DescribedConsumerGroup, DescribedConsumerMember, PartitionsByTopic
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.errors import ErrorCode


def check_commit(group: ConsumerGroup, ask: OffsetsToCommit) -> list[ErrorCode]:
    """One error or NONE for each offset."""
    if ask.generation < 0 and not group.members:
        return [ErrorCode.NONE] * len(ask.offsets)
    member = group.members.get(ask.member_id)
    if member is None:
        return [ErrorCode.UNKNOWN_MEMBER_ID] * len(ask.offsets)
    if not ask.knows_epochs and member.classic is None:
        return [ErrorCode.UNSUPPORTED_VERSION] * len(ask.offsets)
    if ask.generation == member.epoch:
        return [ErrorCode.NONE] * len(ask.offsets)
    return [ErrorCode.NONE if _held_at(member, ask.generation, new) else _stale(member) for new in ask.offsets]


def check_commit_in_transaction(group: ConsumerGroup, ask: TransactionalOffsetCommit) -> list[ErrorCode]:
    """One error or NONE for each offset."""
    if ask.generation < 0 and not ask.member_id and ask.instance_id is None:
        return [ErrorCode.NONE] * len(ask.offsets)
    member = group.members.get(ask.member_id)
    if member is None:
        return [ErrorCode.UNKNOWN_MEMBER_ID] * len(ask.offsets)
    return [ErrorCode.NONE if _held_at(member, ask.generation, new) else _stale(member) for new in ask.offsets]


def _held_at(member: ConsumerMember, epoch: int, offset: NewOffset) -> bool:
    """Whether the member has the partition, and had it at this epoch."""
    given = member.given_at(offset.topic_id, offset.partition.partition)
    return given is not None and given <= epoch <= member.epoch


def check_fetch(group: ConsumerGroup | None, member_id: str | None, epoch: int) -> ErrorCode:
    """Whether the offsets of the group may be read. Requests that name no member always may."""
    if group is None or (member_id is None and epoch < 0):
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else _stale(member)


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def described(group: ConsumerGroup, assignor: str) -> DescribedConsumerGroup:
    """The group as ConsumerGroupDescribe shows it."""
    members = [
        DescribedConsumerMember(
            m.member_id,
            m.instance_id,
            m.rack_id,
            m.epoch,
            m.client_id,
            m.client_host,
            m.topics,
            m.expression,
            _held(m),
            group.targets.get(m.member_id, {}),
            m.classic is not None,
        )
        for m in group.members.values()
    ]
    return DescribedConsumerGroup(group.state.value, group.epoch, group.target_epoch, assignor, members)


def _held(member: ConsumerMember) -> PartitionsByTopic:
    """The member's partitions, including those that it still has to revoke."""
    if not member.revoking:
        return member.assigned
    topics = dict.fromkeys((*member.assigned, *member.revoking))
    return {t: {*member.assigned.get(t, ()), *member.revoking.get(t, ())} for t in topics}


def partitions_of(member: ConsumerMember) -> dict[uuid.UUID, list[int]]:
    """The member's partitions, without those that it has to revoke."""
    return {topic: sorted(partitions) for topic, partitions in member.assigned.items()}
