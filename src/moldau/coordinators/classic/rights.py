"""What members of a classic group may do, and what others may see of the group. Pure."""

from moldau.coordinators.classic.group import ClassicGroup, ClassicGroupState
from moldau.coordinators.classic.messages import DescribedClassicGroup, DescribedClassicMember, Sync
from moldau.coordinators.offsets.messages import OffsetsToCommit, TransactionalOffsetCommit
from moldau.errors import ErrorCode


def check_generation(group: ClassicGroup, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
    """Whether this is a member of the group's present generation."""
    if group.state is ClassicGroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(member_id, instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def check_sync(group: ClassicGroup | None, ask: Sync) -> ErrorCode:
    """Whether the member may wait for its assignment."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID if ask.group_id else ErrorCode.INVALID_GROUP_ID
    error = check_generation(group, ask.generation, ask.member_id, ask.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if ask.protocol_type not in (None, group.protocol_type) or ask.protocol not in (None, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_rebalancing = group.state is ClassicGroupState.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE


def check_commit(group: ClassicGroup | None, ask: OffsetsToCommit) -> ErrorCode:
    """Whether the offsets may be committed. A negative generation is a client that assigns partitions to itself: it
    needs no group, or an empty one."""
    if group is None:
        return ErrorCode.NONE if ask.generation < 0 else ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is ClassicGroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if ask.generation < 0 and group.state is ClassicGroupState.EMPTY:
        return ErrorCode.NONE
    error = check_generation(group, ask.generation, ask.member_id, ask.instance_id)
    if error is ErrorCode.NONE and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


def check_commit_in_transaction(group: ClassicGroup | None, ask: TransactionalOffsetCommit) -> ErrorCode:
    """Whether the offsets may be committed in a transaction. Also allowed: requests that name no member, and members
    whose rebalance has not finished."""
    if group is None:
        return ErrorCode.NONE if ask.generation < 0 else ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is ClassicGroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    names_no_member = not ask.member_id and ask.instance_id is None
    if ask.generation < 0 and (names_no_member or group.state is ClassicGroupState.EMPTY):
        return ErrorCode.NONE
    return check_generation(group, ask.generation, ask.member_id, ask.instance_id)


def described(group: ClassicGroup) -> DescribedClassicGroup:
    """The group as DescribeGroups shows it; members' metadata only while it is stable."""
    is_stable = group.state is ClassicGroupState.STABLE
    protocol = group.protocol if is_stable else None
    members = [
        DescribedClassicMember(
            m.member_id, m.instance_id, m.client_id, m.client_host, m.metadata(protocol), m.assignment
        )
        for m in group.members.values()
    ]
    return DescribedClassicGroup(group.state.value, group.protocol_type or "", protocol or "", members)
