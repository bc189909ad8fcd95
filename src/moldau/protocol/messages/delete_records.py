"""DeleteRecords (API key 21): what is asked and what is answered, in all versions."""

from dataclasses import dataclass

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartition:
    partition_index: int = INT32()
    offset: int = INT64()


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopic:
    name: str = STRING()
    partitions: list[DeleteRecordsPartition] = ARRAY(DeleteRecordsPartition)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = ARRAY(DeleteRecordsTopic)
    timeout_ms: int = INT32()


@dataclass(slots=True, kw_only=True)
class DeleteRecordsPartitionResult:
    partition_index: int = INT32()
    low_watermark: int = INT64()
    error_code: int = INT16()


@dataclass(slots=True, kw_only=True)
class DeleteRecordsTopicResult:
    name: str = STRING()
    partitions: list[DeleteRecordsPartitionResult] = ARRAY(DeleteRecordsPartitionResult)


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponse:
    throttle_time_ms: int = INT32()
    topics: list[DeleteRecordsTopicResult] = ARRAY(DeleteRecordsTopicResult)
