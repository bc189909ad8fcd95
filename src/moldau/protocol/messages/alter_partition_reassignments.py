"""AlterPartitionReassignments (API key 45): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, STRING, message


@message
class ReassignablePartition:
    partition_index: int = INT32()
    replicas: list[int] | None = ARRAY(INT32, nullable=0, default=None)


@message
class ReassignableTopic:
    name: str = STRING()
    partitions: list[ReassignablePartition] = ARRAY(ReassignablePartition)


@message
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = INT32(default=60000)
    allow_replication_factor_change: bool = BOOL(since=1, default=True)
    topics: list[ReassignableTopic] = ARRAY(ReassignableTopic)


@message
class ReassignablePartitionResponse:
    partition_index: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)


@message
class ReassignableTopicResponse:
    name: str = STRING()
    partitions: list[ReassignablePartitionResponse] = ARRAY(ReassignablePartitionResponse)


@message
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = INT32()
    allow_replication_factor_change: bool = BOOL(since=1, default=True)
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    responses: list[ReassignableTopicResponse] = ARRAY(ReassignableTopicResponse)
