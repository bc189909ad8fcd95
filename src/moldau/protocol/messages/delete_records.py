"""DeleteRecords (API key 21): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, message


@message
class DeleteRecordsPartition:
    partition_index: int = INT32()
    offset: int = INT64()


@message
class DeleteRecordsTopic:
    name: str = STRING()
    partitions: list[DeleteRecordsPartition] = ARRAY(DeleteRecordsPartition)


@message
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = ARRAY(DeleteRecordsTopic)
    timeout_ms: int = INT32()


@message
class DeleteRecordsPartitionResult:
    partition_index: int = INT32()
    low_watermark: int = INT64()
    error_code: int = INT16()


@message
class DeleteRecordsTopicResult:
    name: str = STRING()
    partitions: list[DeleteRecordsPartitionResult] = ARRAY(DeleteRecordsPartitionResult)


@message
class DeleteRecordsResponse:
    throttle_time_ms: int = INT32()
    topics: list[DeleteRecordsTopicResult] = ARRAY(DeleteRecordsTopicResult)
