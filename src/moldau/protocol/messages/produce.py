"""Produce (API key 0): request and response, in all versions."""

import uuid

from moldau.protocol.primitives import Detached
from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, RECORDS, STRING, STRUCT, UUID, message


@message
class PartitionProduceData:
    index: int = INT32()
    records: memoryview | bytes | Detached | None = RECORDS(nullable=0)


@message
class TopicProduceData:
    name: str = STRING(until=12)
    topic_id: uuid.UUID = UUID(since=13)
    partition_data: list[PartitionProduceData] = ARRAY(PartitionProduceData)


@message
class ProduceRequest:
    transactional_id: str | None = STRING(since=3, nullable=3, default=None)
    acks: int = INT16()
    timeout_ms: int = INT32()
    topic_data: list[TopicProduceData] = ARRAY(TopicProduceData)


@message
class BatchIndexAndErrorMessage:
    batch_index: int = INT32(since=8)
    batch_index_error_message: str | None = STRING(since=8, nullable=8, default=None)


@message
class LeaderIdAndEpoch:
    leader_id: int = INT32(since=10, default=-1)
    leader_epoch: int = INT32(since=10, default=-1)


@message
class PartitionProduceResponse:
    index: int = INT32()
    error_code: int = INT16()
    base_offset: int = INT64()
    log_append_time_ms: int = INT64(since=2, default=-1)
    log_start_offset: int = INT64(since=5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = ARRAY(BatchIndexAndErrorMessage, since=8)
    error_message: str | None = STRING(since=8, nullable=8, default=None)
    current_leader: LeaderIdAndEpoch = STRUCT(LeaderIdAndEpoch, since=10, tag=0)


@message
class TopicProduceResponse:
    name: str = STRING(until=12)
    topic_id: uuid.UUID = UUID(since=13)
    partition_responses: list[PartitionProduceResponse] = ARRAY(PartitionProduceResponse)


@message
class NodeEndpoint:
    node_id: int = INT32(since=10)
    host: str = STRING(since=10)
    port: int = INT32(since=10)
    rack: str | None = STRING(since=10, nullable=10, default=None)


@message
class ProduceResponse:
    responses: list[TopicProduceResponse] = ARRAY(TopicProduceResponse)
    throttle_time_ms: int = INT32(since=1)
    node_endpoints: list[NodeEndpoint] = ARRAY(NodeEndpoint, since=10, tag=0)
