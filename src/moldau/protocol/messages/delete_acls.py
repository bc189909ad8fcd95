"""DeleteAcls (API key 31): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class DeleteAclsFilter:
    resource_type_filter: int = INT8()
    resource_name_filter: str | None = STRING(nullable=0)
    pattern_type_filter: int = INT8(default=3)
    principal_filter: str | None = STRING(nullable=0)
    host_filter: str | None = STRING(nullable=0)
    operation: int = INT8()
    permission_type: int = INT8()


@message
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter] = ARRAY(DeleteAclsFilter)


@message
class DeleteAclsMatchingAcl:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    resource_type: int = INT8()
    resource_name: str = STRING()
    pattern_type: int = INT8(default=3)
    principal: str = STRING()
    host: str = STRING()
    operation: int = INT8()
    permission_type: int = INT8()


@message
class DeleteAclsFilterResult:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    matching_acls: list[DeleteAclsMatchingAcl] = ARRAY(DeleteAclsMatchingAcl)


@message
class DeleteAclsResponse:
    throttle_time_ms: int = INT32()
    filter_results: list[DeleteAclsFilterResult] = ARRAY(DeleteAclsFilterResult)
