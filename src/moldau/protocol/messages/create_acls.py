"""CreateAcls (API key 30): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class AclCreation:
    resource_type: int = INT8()
    resource_name: str = STRING()
    resource_pattern_type: int = INT8(default=3)
    principal: str = STRING()
    host: str = STRING()
    operation: int = INT8()
    permission_type: int = INT8()


@message
class CreateAclsRequest:
    creations: list[AclCreation] = ARRAY(AclCreation)


@message
class AclCreationResult:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)


@message
class CreateAclsResponse:
    throttle_time_ms: int = INT32()
    results: list[AclCreationResult] = ARRAY(AclCreationResult)
