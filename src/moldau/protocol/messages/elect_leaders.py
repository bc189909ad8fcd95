"""ElectLeaders (API key 43): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class TopicPartitions:
    topic: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class ElectLeadersRequest:
    election_type: int = INT8(since=1)
    topic_partitions: list[TopicPartitions] | None = ARRAY(TopicPartitions, nullable=0)
    timeout_ms: int = INT32(default=60000)


@message
class PartitionResult:
    partition_id: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)


@message
class ReplicaElectionResult:
    topic: str = STRING()
    partition_result: list[PartitionResult] = ARRAY(PartitionResult)


@message
class ElectLeadersResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16(since=1)
    replica_election_results: list[ReplicaElectionResult] = ARRAY(ReplicaElectionResult)
