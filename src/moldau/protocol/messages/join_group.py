"""JoinGroup (API key 11): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, BYTES, INT16, INT32, STRING, message


@message
class JoinGroupRequestProtocol:
    name: str = STRING()
    metadata: bytes = BYTES()


@message
class JoinGroupRequest:
    group_id: str = STRING()
    session_timeout_ms: int = INT32()
    rebalance_timeout_ms: int = INT32(since=1, default=-1)
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=5, nullable=5, default=None)
    protocol_type: str = STRING()
    protocols: list[JoinGroupRequestProtocol] = ARRAY(JoinGroupRequestProtocol)
    reason: str | None = STRING(since=8, nullable=8, default=None)


@message
class JoinGroupResponseMember:
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=5, nullable=5, default=None)
    metadata: bytes = BYTES()


@message
class JoinGroupResponse:
    throttle_time_ms: int = INT32(since=2)
    error_code: int = INT16()
    generation_id: int = INT32(default=-1)
    protocol_type: str | None = STRING(since=7, nullable=7, default=None)
    protocol_name: str | None = STRING(nullable=7)
    leader: str = STRING()
    skip_assignment: bool = BOOL(since=9)
    member_id: str = STRING()
    members: list[JoinGroupResponseMember] = ARRAY(JoinGroupResponseMember)
