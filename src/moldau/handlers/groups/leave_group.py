"""LeaveGroup (key 13), all versions: members leave, or an administrator removes them.

Before version 3 a request names one member.
"""

from collections.abc import Awaitable

from moldau.coordinators.classic.messages import Leaver, Left
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.handlers.responding import respond_when_ready
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from moldau.protocol.upgrades import downgrade_leave_group, upgrade_leave_group
from moldau.requests.session import Call
from moldau.turns import Steps


class LeaveGroup:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(
        self, request: LeaveGroupRequest, call: Call
    ) -> Steps[Steps[LeaveGroupResponse] | Awaitable[Steps[LeaveGroupResponse]]]:
        upgrade_leave_group(request, call.version)
        leavers = []
        for member in request.members:
            leavers.append(Leaver(member.member_id, member.group_instance_id))
            yield

        def respond(left: Left) -> Steps[LeaveGroupResponse]:
            response = LeaveGroupResponse(error_code=left.error)
            for leaver, error in zip(leavers, left.members, strict=False):
                response.members.append(
                    MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=error)
                )
                yield
            downgrade_leave_group(response, call.version)
            return response

        return respond_when_ready(self._coordinator.leave(request.group_id, leavers), respond)
