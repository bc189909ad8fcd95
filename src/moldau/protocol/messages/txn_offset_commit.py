"""TxnOffsetCommit (API key 28): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, UUID, message


@message
class TxnOffsetCommitRequestPartition:
    partition_index: int = INT32()
    committed_offset: int = INT64()
    committed_leader_epoch: int = INT32(since=2, default=-1)
    committed_metadata: str | None = STRING(nullable=0)


@message
class TxnOffsetCommitRequestTopic:
    name: str = STRING(until=5)
    topic_id: uuid.UUID = UUID(since=6)
    partitions: list[TxnOffsetCommitRequestPartition] = ARRAY(TxnOffsetCommitRequestPartition)


@message
class TxnOffsetCommitRequest:
    transactional_id: str = STRING()
    group_id: str = STRING()
    producer_id: int = INT64()
    producer_epoch: int = INT16()
    generation_id_or_member_epoch: int = INT32(since=3, default=-1)
    member_id: str = STRING(since=3)
    group_instance_id: str | None = STRING(since=3, nullable=3, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = ARRAY(TxnOffsetCommitRequestTopic)


@message
class TxnOffsetCommitResponsePartition:
    partition_index: int = INT32()
    error_code: int = INT16()


@message
class TxnOffsetCommitResponseTopic:
    name: str = STRING(until=5)
    topic_id: uuid.UUID = UUID(since=6)
    partitions: list[TxnOffsetCommitResponsePartition] = ARRAY(TxnOffsetCommitResponsePartition)


@message
class TxnOffsetCommitResponse:
    throttle_time_ms: int = INT32()
    topics: list[TxnOffsetCommitResponseTopic] = ARRAY(TxnOffsetCommitResponseTopic)
