"""DescribeGroups (key 15), all versions: classic groups as an administrator sees them.

A group that does not exist is described as Dead; from version 6 on it is also an error (KIP-1043). Members' metadata
are shown only while a group is stable. Assignments are always shown: members keep the last one until the next. Groups
that the client may not describe come first in answers, whether they exist or not.
"""

from moldau.coordinators.classic.group import ClassicGroupState
from moldau.coordinators.classic.messages import DescribedClassicGroup
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.partitioning import elements_of
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.repetitions import TOO_OFTEN, Repetitions
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.requests.access import DESCRIBE_GROUP, ResourceType
from moldau.requests.session import Call
from moldau.turns import Steps

NOT_FOUND_IS_ERROR = 6


class DescribeGroups:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: DescribeGroupsRequest, call: Call) -> Steps[DescribeGroupsResponse]:
        with_operations = request.include_authorized_operations
        refused: list[DescribedGroup] = []
        described: list[DescribedGroup] = []
        named = Repetitions()
        for group_id in request.groups:
            yield
            yield from elements_of(group_id)
            if not call.may(DESCRIBE_GROUP, group_id):
                refused.append(DescribedGroup(group_id=group_id, error_code=DESCRIBE_GROUP.denied))
                continue
            if named.exceed(group_id):
                group = DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_OFTEN)
            else:
                group = self._describe(group_id, call, with_operations)
            described.append(group)
            for _ in group.members:
                yield
        return DescribeGroupsResponse(groups=refused + described)

    def _describe(self, group_id: str, call: Call, with_operations: bool) -> DescribedGroup:
        try:
            described = self._coordinator.describe(group_id)
        except KafkaError as error:
            return DescribedGroup(error_code=error.code, group_id=group_id)
        if described is None:
            dead = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
            if call.version >= NOT_FOUND_IS_ERROR:
                dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                dead.error_message = f"Group {group_id} not found."
                return dead
            group = dead
        else:
            group = _described(group_id, described)
        if with_operations:
            group.authorized_operations = call.operations(ResourceType.GROUP, group_id)
        return group


def _described(group_id: str, described: DescribedClassicGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id,
        group_state=described.state,
        protocol_type=described.protocol_type,
        protocol_data=described.protocol,
        members=[
            DescribedGroupMember(
                member_id=m.member_id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                member_metadata=m.metadata,
                member_assignment=m.assignment,
            )
            for m in described.members
        ],
    )
