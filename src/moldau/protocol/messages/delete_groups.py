"""DeleteGroups (API key 42): what is asked and what is answered, in all versions."""

from dataclasses import dataclass

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest:
    groups_names: list[str] = ARRAY(STRING)


@dataclass(slots=True, kw_only=True)
class DeletableGroupResult:
    group_id: str = STRING()
    error_code: int = INT16()


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse:
    throttle_time_ms: int = INT32()
    results: list[DeletableGroupResult] = ARRAY(DeletableGroupResult)
