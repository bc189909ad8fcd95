"""OffsetFetch (API key 9): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, INT64, STRING, UUID, message


@message
class OffsetFetchRequestTopic:
    name: str = STRING(until=7)
    partition_indexes: list[int] = ARRAY(INT32, until=7)


@message
class OffsetFetchRequestTopics:
    name: str = STRING(since=8, until=9)
    topic_id: uuid.UUID = UUID(since=10)
    partition_indexes: list[int] = ARRAY(INT32, since=8)


@message
class OffsetFetchRequestGroup:
    group_id: str = STRING(since=8)
    member_id: str | None = STRING(since=9, nullable=9, default=None)
    member_epoch: int = INT32(since=9, default=-1)
    topics: list[OffsetFetchRequestTopics] | None = ARRAY(OffsetFetchRequestTopics, since=8, nullable=8)


@message
class OffsetFetchRequest:
    group_id: str = STRING(until=7)
    topics: list[OffsetFetchRequestTopic] | None = ARRAY(OffsetFetchRequestTopic, until=7, nullable=2)
    groups: list[OffsetFetchRequestGroup] = ARRAY(OffsetFetchRequestGroup, since=8)
    require_stable: bool = BOOL(since=7)


@message
class OffsetFetchResponsePartition:
    partition_index: int = INT32(until=7)
    committed_offset: int = INT64(until=7)
    committed_leader_epoch: int = INT32(since=5, until=7, default=-1)
    metadata: str | None = STRING(until=7, nullable=0)
    error_code: int = INT16(until=7)


@message
class OffsetFetchResponseTopic:
    name: str = STRING(until=7)
    partitions: list[OffsetFetchResponsePartition] = ARRAY(OffsetFetchResponsePartition, until=7)


@message
class OffsetFetchResponsePartitions:
    partition_index: int = INT32(since=8)
    committed_offset: int = INT64(since=8)
    committed_leader_epoch: int = INT32(since=8, default=-1)
    metadata: str | None = STRING(since=8, nullable=8)
    error_code: int = INT16(since=8)


@message
class OffsetFetchResponseTopics:
    name: str = STRING(since=8, until=9)
    topic_id: uuid.UUID = UUID(since=10)
    partitions: list[OffsetFetchResponsePartitions] = ARRAY(OffsetFetchResponsePartitions, since=8)


@message
class OffsetFetchResponseGroup:
    group_id: str = STRING(since=8)
    topics: list[OffsetFetchResponseTopics] = ARRAY(OffsetFetchResponseTopics, since=8)
    error_code: int = INT16(since=8)


@message
class OffsetFetchResponse:
    throttle_time_ms: int = INT32(since=3)
    topics: list[OffsetFetchResponseTopic] = ARRAY(OffsetFetchResponseTopic, until=7)
    error_code: int = INT16(since=2, until=7)
    groups: list[OffsetFetchResponseGroup] = ARRAY(OffsetFetchResponseGroup, since=8)
