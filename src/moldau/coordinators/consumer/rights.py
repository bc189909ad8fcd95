"""What members of a consumer group may do with its offsets, and what others may see of the group. Pure.

A commit is accepted at the member's epoch. At an earlier epoch it is accepted for partitions that were assigned to the
member at that epoch or before (KIP-1251), so that a commit during a rebalance is not lost.
"""

import uuid

from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember
from moldau.coordinators.consumer.messages import DescribedConsumerGroup, DescribedConsumerMember
from moldau.coordinators.offsets.messages import OffsetsToCommit, TransactionalOffsetCommit
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
    errors = []
    for new in ask.offsets:
        given = member.given_at(new.topic_id, new.partition.partition)
        fine = ask.generation < member.epoch and given is not None and ask.generation >= given
        errors.append(ErrorCode.NONE if fine else _stale(member))
    return errors


def check_commit_in_transaction(group: ConsumerGroup, ask: TransactionalOffsetCommit) -> list[ErrorCode]:
    """One error or NONE for each offset. Producers know only the errors of classic groups, so these are used."""
    if ask.generation < 0 and not ask.member_id and ask.instance_id is None:
        return [ErrorCode.NONE] * len(ask.offsets)
    commit = OffsetsToCommit(
        group_id=ask.group_id,
        member_id=ask.member_id,
        instance_id=ask.instance_id,
        generation=ask.generation,
        retention_ms=-1,
        offsets=ask.offsets,
    )
    errors = check_commit(group, commit)
    return [ErrorCode.ILLEGAL_GENERATION if e is ErrorCode.STALE_MEMBER_EPOCH else e for e in errors]


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
            {topic: sorted(parts) for topic, parts in group.targets.get(m.member_id, {}).items()},
            m.classic is not None,
        )
        for m in group.members.values()
    ]
    return DescribedConsumerGroup(group.state.value, group.epoch, group.target_epoch, assignor, members)


def _held(member: ConsumerMember) -> dict[uuid.UUID, list[int]]:
    """The member's partitions, including those that it still has to revoke."""
    topics = dict.fromkeys((*member.assigned, *member.revoking))
    return {t: sorted({*member.assigned.get(t, ()), *member.revoking.get(t, ())}) for t in topics}


def partitions_of(member: ConsumerMember) -> dict[uuid.UUID, list[int]]:
    """The member's partitions, without those that it has to revoke."""
    return {topic: sorted(partitions) for topic, partitions in member.assigned.items()}
