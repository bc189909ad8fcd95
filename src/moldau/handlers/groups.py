"""JoinGroup (key 11), SyncGroup (14), Heartbeat (12), LeaveGroup (13): the life of a member, in all versions.

JoinGroup 0 has one timeout for session and rebalance; 4 and newer make newcomers join a second time with the id they
are given (KIP-394); 5 brings instance ids (KIP-345); 9 lets a returning static leader skip the assignment (KIP-814).
SyncGroup 5 must name the protocol it is part of. LeaveGroup 3 takes many members, earlier ones one.
"""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

from moldau.coordinators.classic.messages import Join, Joined, Leaver, Left, Sync, Synced
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.upgrades import downgrade_leave_group, upgrade_leave_group
from moldau.requests.session import Call
from moldau.turns import Steps

A = TypeVar("A")
R = TypeVar("R")

JOIN_NULLABLE_PROTOCOL = 7
SYNC_NAMES_PROTOCOL = 5


def answer(what: A | Awaitable[A], respond: Callable[[A], R]) -> R | Awaitable[R]:
    """The response to an answer that is here, or to one that will be."""
    if isawaitable(what):
        return _later(what, respond)
    return respond(what)


async def _later(what: Awaitable[A], respond: Callable[[A], R]) -> R:
    return respond(await what)


class GroupHandlers:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def join(
        self, request: JoinGroupRequest, call: Call
    ) -> Steps[JoinGroupResponse] | Awaitable[Steps[JoinGroupResponse]]:
        version = call.version
        ask = Join(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=call.client_id or "",
            client_host=f"/{call.client_host}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            can_wait_for_id=version >= 4,
            can_skip=version >= 9,
        )
        nobody = None if version >= JOIN_NULLABLE_PROTOCOL else ""

        def respond(joined: Joined) -> Steps[JoinGroupResponse]:
            members = []
            for m in joined.members:
                members.append(
                    JoinGroupResponseMember(member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata)
                )
                yield
            return JoinGroupResponse(
                error_code=joined.error,
                generation_id=joined.generation,
                protocol_type=joined.protocol_type,
                protocol_name=nobody if joined.protocol is None else joined.protocol,
                leader=joined.leader,
                skip_assignment=joined.skip_assignment,
                member_id=joined.member_id,
                members=members,
            )

        return answer(self._coordinator.join(ask), respond)

    def sync(self, request: SyncGroupRequest, call: Call) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        if call.version >= SYNC_NAMES_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
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

        return answer(self._coordinator.sync(ask), respond)

    def heartbeat(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        error = self._coordinator.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )
        return HeartbeatResponse(error_code=error)

    def leave(
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

        return answer(self._coordinator.leave(request.group_id, leavers), respond)
