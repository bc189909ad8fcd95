"""ListOffsets (API key 2): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, INT64, STRING, message


@message
class ListOffsetsPartition:
    partition_index: int = INT32()
    current_leader_epoch: int = INT32(since=4, default=-1)
    timestamp: int = INT64()


@message
class ListOffsetsTopic:
    name: str = STRING()
    partitions: list[ListOffsetsPartition] = ARRAY(ListOffsetsPartition)


@message
class ListOffsetsRequest:
    replica_id: int = INT32()
    isolation_level: int = INT8(since=2)
    topics: list[ListOffsetsTopic] = ARRAY(ListOffsetsTopic)
    timeout_ms: int = INT32(since=10)


@message
class ListOffsetsPartitionResponse:
    partition_index: int = INT32()
    error_code: int = INT16()
    timestamp: int = INT64(since=1, default=-1)
    offset: int = INT64(since=1, default=-1)
    leader_epoch: int = INT32(since=4, default=-1)


@message
class ListOffsetsTopicResponse:
    name: str = STRING()
    partitions: list[ListOffsetsPartitionResponse] = ARRAY(ListOffsetsPartitionResponse)


@message
class ListOffsetsResponse:
    throttle_time_ms: int = INT32(since=2)
    topics: list[ListOffsetsTopicResponse] = ARRAY(ListOffsetsTopicResponse)
