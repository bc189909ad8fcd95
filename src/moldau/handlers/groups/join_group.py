"""JoinGroup (key 11), all versions: a member joins a group, and waits for its next generation.

Version 0 has one timeout for session and rebalance. From version 4 on a new member joins a second time with the id that
it is given (KIP-394); 5 adds instance ids (KIP-345); 9 lets a static leader that is back skip the assignment (KIP-814).
"""

from collections.abc import Awaitable

from moldau.coordinators.classic.messages import Join, Joined
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.handlers.denied_topics import may_see
from moldau.handlers.responding import respond_when_ready
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from moldau.requests.session import Call
from moldau.turns import Steps

NULLABLE_PROTOCOL = 7
"""The first version in which the protocol's name can be null."""


class JoinGroup:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(
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
            may_see=may_see(call),
        )
        no_protocol = None if version >= NULLABLE_PROTOCOL else ""

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
                protocol_name=no_protocol if joined.protocol is None else joined.protocol,
                leader=joined.leader,
                skip_assignment=joined.skip_assignment,
                member_id=joined.member_id,
                members=members,
            )

        return respond_when_ready(self._coordinator.join(ask), respond)
