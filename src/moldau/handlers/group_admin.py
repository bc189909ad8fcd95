"""ListGroups (key 16), DescribeGroups (15), DeleteGroups (42): groups as an administrator sees them, in all versions.

A group that is not there is described as Dead; from DescribeGroups 6 on it is an error as well (KIP-1043). Members'
metadata are shown of stable groups only, assignments always: members keep the last until there is a new one. States
and types are filtered without regard to case, and names nobody knows match nothing.
"""

from collections.abc import Awaitable, Mapping
from inspect import isawaitable

from moldau.coordinators.classic.group import ClassicGroupState
from moldau.coordinators.classic.messages import DescribedClassicGroup
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.repetitions import TOO_OFTEN, Repetitions
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

DESCRIBE_NOT_FOUND = 6
OF_A_DECISION = 500
"""The most groups deleted in one decision."""
OPERATIONS_OF_A_GROUP = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs as bits (KIP-430): what anybody may do without ACLs."""


class GroupAdminHandlers:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def list_groups(self, request: ListGroupsRequest, call: Call) -> Steps[ListGroupsResponse]:
        states = {state.lower() for state in request.states_filter}
        types = {group_type.lower() for group_type in request.types_filter}
        response = ListGroupsResponse()
        try:
            for g in self._coordinator.listed():
                if (not states or g.state.lower() in states) and (not types or g.group_type in types):
                    response.groups.append(
                        ListedGroup(
                            group_id=g.group_id,
                            protocol_type=g.protocol_type,
                            group_state=g.state,
                            group_type=g.group_type,
                        )
                    )
                yield
        except KafkaError as error:
            return ListGroupsResponse(error_code=error.code)
        return response

    def describe_groups(self, request: DescribeGroupsRequest, call: Call) -> Steps[DescribeGroupsResponse]:
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
            if version >= DESCRIBE_NOT_FOUND:
                dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                dead.error_message = f"Group {group_id} not found."
                return dead
            group = dead
        else:
            group = _described(group_id, described)
        if with_operations:
            group.authorized_operations = OPERATIONS_OF_A_GROUP
        return group

    def delete_groups(
        self, request: DeleteGroupsRequest, call: Call
    ) -> DeleteGroupsResponse | Awaitable[Steps[DeleteGroupsResponse]]:
        return self._delete(request.groups_names)

    async def _delete(self, group_ids: list[str]) -> Steps[DeleteGroupsResponse]:
        """Groups are deleted one by one, as far as an answer goes: many of them are several decisions."""
        found: dict[str, ErrorCode] = {}
        distinct = list(dict.fromkeys(group_ids))
        async for first in in_turns(range(0, len(distinct), OF_A_DECISION), 1):
            for lot, errors in self._coordinator.delete_groups(distinct[first : first + OF_A_DECISION]):
                found.update(zip(lot, await errors if isawaitable(errors) else errors, strict=True))
        return _deleted(distinct, found)


def _deleted(group_ids: list[str], errors: Mapping[str, ErrorCode]) -> Steps[DeleteGroupsResponse]:
    response = DeleteGroupsResponse()
    for group_id in group_ids:
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=errors[group_id]))
        yield
    return response


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
