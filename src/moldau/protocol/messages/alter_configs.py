"""AlterConfigs (API key 33): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, STRING, message


@message
class AlterableConfig:
    name: str = STRING()
    value: str | None = STRING(nullable=0)


@message
class AlterConfigsResource:
    resource_type: int = INT8()
    resource_name: str = STRING()
    configs: list[AlterableConfig] = ARRAY(AlterableConfig)


@message
class AlterConfigsRequest:
    resources: list[AlterConfigsResource] = ARRAY(AlterConfigsResource)
    validate_only: bool = BOOL()


@message
class AlterConfigsResourceResponse:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    resource_type: int = INT8()
    resource_name: str = STRING()


@message
class AlterConfigsResponse:
    throttle_time_ms: int = INT32()
    responses: list[AlterConfigsResourceResponse] = ARRAY(AlterConfigsResourceResponse)
