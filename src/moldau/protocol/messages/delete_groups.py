"""DeleteGroups (API key 42): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, message


@message
class DeleteGroupsRequest:
    groups_names: list[str] = ARRAY(STRING)


@message
class DeletableGroupResult:
    group_id: str = STRING()
    error_code: int = INT16()
    error_message: str | None = STRING(since=3, nullable=3, default=None)


@message
class DeleteGroupsResponse:
    throttle_time_ms: int = INT32()
    results: list[DeletableGroupResult] = ARRAY(DeletableGroupResult)
