"""Fetch (API key 1): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, INT64, RECORDS, STRING, STRUCT, UUID, message


@message
class ReplicaState:
    replica_id: int = INT32(since=15, default=-1)
    replica_epoch: int = INT64(since=15, default=-1)


@message
class FetchPartition:
    partition: int = INT32()
    current_leader_epoch: int = INT32(since=9, default=-1)
    fetch_offset: int = INT64()
    last_fetched_epoch: int = INT32(since=12, default=-1)
    log_start_offset: int = INT64(since=5, default=-1)
    partition_max_bytes: int = INT32()
    replica_directory_id: uuid.UUID = UUID(since=17, tag=0)
    high_watermark: int = INT64(since=18, tag=1, default=9223372036854775807)


@message
class FetchTopic:
    topic: str = STRING(until=12)
    topic_id: uuid.UUID = UUID(since=13)
    partitions: list[FetchPartition] = ARRAY(FetchPartition)


@message
class ForgottenTopic:
    topic: str = STRING(since=7, until=12)
    topic_id: uuid.UUID = UUID(since=13)
    partitions: list[int] = ARRAY(INT32, since=7)


@message
class FetchRequest:
    cluster_id: str | None = STRING(since=12, nullable=12, tag=0, default=None)
    replica_id: int = INT32(until=14, default=-1)
    replica_state: ReplicaState = STRUCT(ReplicaState, since=15, tag=1)
    max_wait_ms: int = INT32()
    min_bytes: int = INT32()
    max_bytes: int = INT32(since=3, default=2147483647)
    isolation_level: int = INT8(since=4)
    session_id: int = INT32(since=7)
    session_epoch: int = INT32(since=7, default=-1)
    topics: list[FetchTopic] = ARRAY(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = ARRAY(ForgottenTopic, since=7)
    rack_id: str = STRING(since=11)


@message
class EpochEndOffset:
    epoch: int = INT32(since=12, default=-1)
    end_offset: int = INT64(since=12, default=-1)


@message
class LeaderIdAndEpoch:
    leader_id: int = INT32(since=12, default=-1)
    leader_epoch: int = INT32(since=12, default=-1)


@message
class SnapshotId:
    end_offset: int = INT64(default=-1)
    epoch: int = INT32(default=-1)


@message
class AbortedTransaction:
    producer_id: int = INT64(since=4)
    first_offset: int = INT64(since=4)


@message
class PartitionData:
    partition_index: int = INT32()
    error_code: int = INT16()
    high_watermark: int = INT64()
    last_stable_offset: int = INT64(since=4, default=-1)
    log_start_offset: int = INT64(since=5, default=-1)
    diverging_epoch: EpochEndOffset = STRUCT(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = STRUCT(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = STRUCT(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = ARRAY(AbortedTransaction, since=4, nullable=4)
    preferred_read_replica: int = INT32(since=11, default=-1)
    records: memoryview | bytes | None = RECORDS(nullable=0)


@message
class FetchableTopicResponse:
    topic: str = STRING(until=12)
    topic_id: uuid.UUID = UUID(since=13)
    partitions: list[PartitionData] = ARRAY(PartitionData)


@message
class NodeEndpoint:
    node_id: int = INT32(since=16)
    host: str = STRING(since=16)
    port: int = INT32(since=16)
    rack: str | None = STRING(since=16, nullable=16, default=None)


@message
class FetchResponse:
    throttle_time_ms: int = INT32(since=1)
    error_code: int = INT16(since=7)
    session_id: int = INT32(since=7)
    responses: list[FetchableTopicResponse] = ARRAY(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = ARRAY(NodeEndpoint, since=16, tag=0)
