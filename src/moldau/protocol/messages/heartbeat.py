"""Heartbeat (API key 12): what is asked and what is answered, in all versions."""

from dataclasses import dataclass

from moldau.protocol.schema import INT16, INT32, STRING


@dataclass(slots=True, kw_only=True)
class HeartbeatRequest:
    group_id: str = STRING()
    generation_id: int = INT32()
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=3, nullable=3, default=None)


@dataclass(slots=True, kw_only=True)
class HeartbeatResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16()
