"""ListConfigResources (API key 74): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class ListConfigResourcesRequest:
    resource_types: list[int] = ARRAY(INT8, since=1)


@message
class ConfigResource:
    resource_name: str = STRING()
    resource_type: int = INT8(since=1, default=16)


@message
class ListConfigResourcesResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    config_resources: list[ConfigResource] = ARRAY(ConfigResource)
