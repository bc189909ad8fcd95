"""SyncGroup (key 14), all versions: a member gets its assignment, which the leader brings.

From version 5 on a request must name the protocol, which is checked before the right to read the group.
"""

from collections.abc import Awaitable

from moldau.coordinators.classic.messages import Sync, Synced
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode
from moldau.handlers.responding import respond_when_ready
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.requests.access import READ_GROUP
from moldau.requests.session import Call

NAMES_PROTOCOL = 5


class SyncGroup:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: SyncGroupRequest, call: Call) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        if call.version >= NAMES_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not call.may(READ_GROUP, request.group_id):
            return SyncGroupResponse(error_code=READ_GROUP.denied)
        ask = Sync(
            group_id=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignments={given.member_id: given.assignment for given in request.assignments},
        )

        def respond(synced: Synced) -> SyncGroupResponse:
            return SyncGroupResponse(
                error_code=synced.error,
                protocol_type=synced.protocol_type,
                protocol_name=synced.protocol,
                assignment=synced.assignment,
            )

        return respond_when_ready(self._coordinator.sync(ask), respond)
