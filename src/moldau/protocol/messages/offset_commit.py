"""OffsetCommit (API key 8): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, UUID, message


@message
class OffsetCommitRequestPartition:
    partition_index: int = INT32()
    committed_offset: int = INT64()
    committed_leader_epoch: int = INT32(since=6, default=-1)
    committed_metadata: str | None = STRING(nullable=0)


@message
class OffsetCommitRequestTopic:
    name: str = STRING(until=9)
    topic_id: uuid.UUID = UUID(since=10)
    partitions: list[OffsetCommitRequestPartition] = ARRAY(OffsetCommitRequestPartition)


@message
class OffsetCommitRequest:
    group_id: str = STRING()
    generation_id_or_member_epoch: int = INT32(since=1, default=-1)
    member_id: str = STRING(since=1)
    group_instance_id: str | None = STRING(since=7, nullable=7, default=None)
    retention_time_ms: int = INT64(since=2, until=4, default=-1)
    topics: list[OffsetCommitRequestTopic] = ARRAY(OffsetCommitRequestTopic)


@message
class OffsetCommitResponsePartition:
    partition_index: int = INT32()
    error_code: int = INT16()


@message
class OffsetCommitResponseTopic:
    name: str = STRING(until=9)
    topic_id: uuid.UUID = UUID(since=10)
    partitions: list[OffsetCommitResponsePartition] = ARRAY(OffsetCommitResponsePartition)


@message
class OffsetCommitResponse:
    throttle_time_ms: int = INT32(since=3)
    topics: list[OffsetCommitResponseTopic] = ARRAY(OffsetCommitResponseTopic)
