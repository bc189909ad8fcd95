"""FindCoordinator (API key 10): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class FindCoordinatorRequest:
    key: str = STRING(until=3)
    key_type: int = INT8(since=1)
    coordinator_keys: list[str] = ARRAY(STRING, since=4)


@message
class Coordinator:
    key: str = STRING(since=4)
    node_id: int = INT32(since=4)
    host: str = STRING(since=4)
    port: int = INT32(since=4)
    error_code: int = INT16(since=4)
    error_message: str | None = STRING(since=4, nullable=4)


@message
class FindCoordinatorResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16(until=3)
    error_message: str | None = STRING(since=1, until=3, nullable=1)
    node_id: int = INT32(until=3)
    host: str = STRING(until=3)
    port: int = INT32(until=3)
    coordinators: list[Coordinator] = ARRAY(Coordinator, since=4)
