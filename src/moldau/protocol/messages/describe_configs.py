"""DescribeConfigs (API key 32): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, STRING, message


@message
class DescribeConfigsResource:
    resource_type: int = INT8()
    resource_name: str = STRING()
    configuration_keys: list[str] | None = ARRAY(STRING, nullable=0)


@message
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = ARRAY(DescribeConfigsResource)
    include_synonyms: bool = BOOL(since=1)
    include_documentation: bool = BOOL(since=3)


@message
class DescribeConfigsSynonym:
    name: str = STRING(since=1)
    value: str | None = STRING(since=1, nullable=0)
    source: int = INT8(since=1)


@message
class DescribeConfigsResourceResult:
    name: str = STRING()
    value: str | None = STRING(nullable=0)
    read_only: bool = BOOL()
    config_source: int = INT8(since=1, default=-1)
    is_sensitive: bool = BOOL()
    synonyms: list[DescribeConfigsSynonym] = ARRAY(DescribeConfigsSynonym, since=1)
    config_type: int = INT8(since=3)
    documentation: str | None = STRING(since=3, nullable=0)


@message
class DescribeConfigsResult:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    resource_type: int = INT8()
    resource_name: str = STRING()
    configs: list[DescribeConfigsResourceResult] = ARRAY(DescribeConfigsResourceResult)


@message
class DescribeConfigsResponse:
    throttle_time_ms: int = INT32()
    results: list[DescribeConfigsResult] = ARRAY(DescribeConfigsResult)
