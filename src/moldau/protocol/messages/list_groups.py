"""ListGroups (API key 16): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, message


@message
class ListGroupsRequest:
    states_filter: list[str] = ARRAY(STRING, since=4)
    types_filter: list[str] = ARRAY(STRING, since=5)


@message
class ListedGroup:
    group_id: str = STRING()
    protocol_type: str = STRING()
    group_state: str = STRING(since=4)
    group_type: str = STRING(since=5)


@message
class ListGroupsResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16()
    groups: list[ListedGroup] = ARRAY(ListedGroup)
