"""DescribeCluster (API key 60): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, STRING, message


@message
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = BOOL()
    endpoint_type: int = INT8(since=1, default=1)
    include_fenced_brokers: bool = BOOL(since=2)


@message
class DescribeClusterBroker:
    broker_id: int = INT32()
    host: str = STRING()
    port: int = INT32()
    rack: str | None = STRING(nullable=0, default=None)
    is_fenced: bool = BOOL(since=2)


@message
class DescribeClusterResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)
    endpoint_type: int = INT8(since=1, default=1)
    cluster_id: str = STRING()
    controller_id: int = INT32(default=-1)
    brokers: list[DescribeClusterBroker] = ARRAY(DescribeClusterBroker)
    cluster_authorized_operations: int = INT32(default=-2147483648)
