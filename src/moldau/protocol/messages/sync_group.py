"""SyncGroup (API key 14): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BYTES, INT16, INT32, STRING, message


@message
class SyncGroupRequestAssignment:
    member_id: str = STRING()
    assignment: bytes = BYTES()


@message
class SyncGroupRequest:
    group_id: str = STRING()
    generation_id: int = INT32()
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=3, nullable=3, default=None)
    protocol_type: str | None = STRING(since=5, nullable=5, default=None)
    protocol_name: str | None = STRING(since=5, nullable=5, default=None)
    assignments: list[SyncGroupRequestAssignment] = ARRAY(SyncGroupRequestAssignment)


@message
class SyncGroupResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16()
    protocol_type: str | None = STRING(since=5, nullable=5, default=None)
    protocol_name: str | None = STRING(since=5, nullable=5, default=None)
    assignment: bytes = BYTES()
