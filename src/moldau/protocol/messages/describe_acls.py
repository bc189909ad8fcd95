"""DescribeAcls (API key 29): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class DescribeAclsRequest:
    resource_type_filter: int = INT8()
    resource_name_filter: str | None = STRING(nullable=0)
    pattern_type_filter: int = INT8(default=3)
    principal_filter: str | None = STRING(nullable=0)
    host_filter: str | None = STRING(nullable=0)
    operation: int = INT8()
    permission_type: int = INT8()


@message
class AclDescription:
    principal: str = STRING()
    host: str = STRING()
    operation: int = INT8()
    permission_type: int = INT8()


@message
class DescribeAclsResource:
    resource_type: int = INT8()
    resource_name: str = STRING()
    pattern_type: int = INT8(default=3)
    acls: list[AclDescription] = ARRAY(AclDescription)


@message
class DescribeAclsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    resources: list[DescribeAclsResource] = ARRAY(DescribeAclsResource)
