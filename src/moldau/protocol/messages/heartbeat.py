"""Heartbeat (API key 12): request and response, in all versions."""

from moldau.protocol.schema import INT16, INT32, STRING, message


@message
class HeartbeatRequest:
    group_id: str = STRING()
    generation_id: int = INT32()
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=3, nullable=3, default=None)


@message
class HeartbeatResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16()
