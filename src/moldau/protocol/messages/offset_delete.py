"""OffsetDelete (API key 47): what is asked and what is answered, in all versions."""

from dataclasses import dataclass

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int = INT32()


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str = STRING()
    partitions: list[OffsetDeleteRequestPartition] = ARRAY(OffsetDeleteRequestPartition)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest:
    group_id: str = STRING()
    topics: list[OffsetDeleteRequestTopic] = ARRAY(OffsetDeleteRequestTopic)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int = INT32()
    error_code: int = INT16()


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: str = STRING()
    partitions: list[OffsetDeleteResponsePartition] = ARRAY(OffsetDeleteResponsePartition)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse:
    error_code: int = INT16()
    throttle_time_ms: int = INT32()
    topics: list[OffsetDeleteResponseTopic] = ARRAY(OffsetDeleteResponseTopic)
