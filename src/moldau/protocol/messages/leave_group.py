"""LeaveGroup (API key 13): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, message


@message
class MemberIdentity:
    member_id: str = STRING(since=3)
    group_instance_id: str | None = STRING(since=3, nullable=3, default=None)
    reason: str | None = STRING(since=5, nullable=5, default=None)


@message
class LeaveGroupRequest:
    group_id: str = STRING()
    member_id: str = STRING(until=2)
    members: list[MemberIdentity] = ARRAY(MemberIdentity, since=3)


@message
class MemberResponse:
    member_id: str = STRING(since=3)
    group_instance_id: str | None = STRING(since=3, nullable=3)
    error_code: int = INT16(since=3)


@message
class LeaveGroupResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16()
    members: list[MemberResponse] = ARRAY(MemberResponse, since=3)
