"""ListOffsets (API key 2): what is asked and what is answered, in all versions."""

from dataclasses import dataclass

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, INT64, STRING


@dataclass(slots=True, kw_only=True)
class ListOffsetsPartition:
    partition_index: int = INT32()
    current_leader_epoch: int = INT32(since=4, default=-1)
    timestamp: int = INT64()


@dataclass(slots=True, kw_only=True)
class ListOffsetsTopic:
    name: str = STRING()
    partitions: list[ListOffsetsPartition] = ARRAY(ListOffsetsPartition)


@dataclass(slots=True, kw_only=True)
class ListOffsetsRequest:
    replica_id: int = INT32()
    isolation_level: int = INT8(since=2)
    topics: list[ListOffsetsTopic] = ARRAY(ListOffsetsTopic)
    timeout_ms: int = INT32(since=10)


@dataclass(slots=True, kw_only=True)
class ListOffsetsPartitionResponse:
    partition_index: int = INT32()
    error_code: int = INT16()
    timestamp: int = INT64(since=1, default=-1)
    offset: int = INT64(since=1, default=-1)
    leader_epoch: int = INT32(since=4, default=-1)


@dataclass(slots=True, kw_only=True)
class ListOffsetsTopicResponse:
    name: str = STRING()
    partitions: list[ListOffsetsPartitionResponse] = ARRAY(ListOffsetsPartitionResponse)


@dataclass(slots=True, kw_only=True)
class ListOffsetsResponse:
    throttle_time_ms: int = INT32(since=2)
    topics: list[ListOffsetsTopicResponse] = ARRAY(ListOffsetsTopicResponse)
