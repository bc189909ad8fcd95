"""OffsetDelete (API key 47): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, message


@message
class OffsetDeleteRequestPartition:
    partition_index: int = INT32()


@message
class OffsetDeleteRequestTopic:
    name: str = STRING()
    partitions: list[OffsetDeleteRequestPartition] = ARRAY(OffsetDeleteRequestPartition)


@message
class OffsetDeleteRequest:
    group_id: str = STRING()
    topics: list[OffsetDeleteRequestTopic] = ARRAY(OffsetDeleteRequestTopic)


@message
class OffsetDeleteResponsePartition:
    partition_index: int = INT32()
    error_code: int = INT16()


@message
class OffsetDeleteResponseTopic:
    name: str = STRING()
    partitions: list[OffsetDeleteResponsePartition] = ARRAY(OffsetDeleteResponsePartition)


@message
class OffsetDeleteResponse:
    error_code: int = INT16()
    throttle_time_ms: int = INT32()
    topics: list[OffsetDeleteResponseTopic] = ARRAY(OffsetDeleteResponseTopic)
