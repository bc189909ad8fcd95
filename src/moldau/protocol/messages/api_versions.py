"""ApiVersions (API key 18): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, INT64, STRING, message


@message
class ApiVersionsRequest:
    client_software_name: str = STRING(since=3)
    client_software_version: str = STRING(since=3)
    cluster_id: str | None = STRING(since=5, nullable=5, default=None)
    node_id: int = INT32(since=5, default=-1)


@message
class ApiVersion:
    api_key: int = INT16()
    min_version: int = INT16()
    max_version: int = INT16()


@message
class SupportedFeatureKey:
    name: str = STRING(since=3)
    min_version: int = INT16(since=3)
    max_version: int = INT16(since=3)


@message
class FinalizedFeatureKey:
    name: str = STRING(since=3)
    max_version_level: int = INT16(since=3)
    min_version_level: int = INT16(since=3)


@message
class ApiVersionsResponse:
    error_code: int = INT16()
    api_keys: list[ApiVersion] = ARRAY(ApiVersion)
    throttle_time_ms: int = INT32(since=1)
    supported_features: list[SupportedFeatureKey] = ARRAY(SupportedFeatureKey, since=3, tag=0)
    finalized_features_epoch: int = INT64(since=3, tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = ARRAY(FinalizedFeatureKey, since=3, tag=2)
    zk_migration_ready: bool = BOOL(since=3, tag=3)
