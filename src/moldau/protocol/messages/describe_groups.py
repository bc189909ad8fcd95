"""DescribeGroups (API key 15): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, BYTES, INT16, INT32, STRING, message


@message
class DescribeGroupsRequest:
    groups: list[str] = ARRAY(STRING)
    include_authorized_operations: bool = BOOL(since=3)


@message
class DescribedGroupMember:
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=4, nullable=4, default=None)
    client_id: str = STRING()
    client_host: str = STRING()
    member_metadata: bytes = BYTES()
    member_assignment: bytes = BYTES()


@message
class DescribedGroup:
    error_code: int = INT16()
    error_message: str | None = STRING(since=6, nullable=6, default=None)
    group_id: str = STRING()
    group_state: str = STRING()
    protocol_type: str = STRING()
    protocol_data: str = STRING()
    members: list[DescribedGroupMember] = ARRAY(DescribedGroupMember)
    authorized_operations: int = INT32(since=3, default=-2147483648)


@message
class DescribeGroupsResponse:
    throttle_time_ms: int = INT32(since=1)
    groups: list[DescribedGroup] = ARRAY(DescribedGroup)
