"""DescribeGroups (key 15), all versions: classic groups as an administrator sees them.

A group that does not exist is described as Dead; from version 6 on it is also an error (KIP-1043). Members' metadata
are shown only while a group is stable. Assignments are always shown: members keep the last one until the next.
"""

from moldau.coordinators.classic.group import ClassicGroupState
from moldau.coordinators.classic.messages import DescribedClassicGroup
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.repetitions import TOO_OFTEN, Repetitions
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.requests.session import Call
from moldau.turns import Steps

NOT_FOUND_IS_ERROR = 6
OPERATIONS_OF_A_GROUP = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, Delete, Describe, DescribeConfigs and AlterConfigs as bits (KIP-430): without ACLs all are allowed."""


class DescribeGroups:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: DescribeGroupsRequest, call: Call) -> Steps[DescribeGroupsResponse]:
        with_operations = request.include_authorized_operations
        response, named = DescribeGroupsResponse(), Repetitions()
        for group_id in request.groups:
            if named.exceed(group_id):
                group = DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_OFTEN)
            else:
                group = self._describe(group_id, call.version, with_operations)
            response.groups.append(group)
            yield
            for _ in group.members:
                yield
        return response

    def _describe(self, group_id: str, version: int, with_operations: bool) -> DescribedGroup:
        try:
            described = self._coordinator.describe(group_id)
        except KafkaError as error:
            return DescribedGroup(error_code=error.code, group_id=group_id)
        if described is None:
            dead = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
            if version >= NOT_FOUND_IS_ERROR:
                dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                dead.error_message = f"Group {group_id} not found."
                return dead
            group = dead
        else:
            group = _described(group_id, described)
        if with_operations:
            group.authorized_operations = OPERATIONS_OF_A_GROUP
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
