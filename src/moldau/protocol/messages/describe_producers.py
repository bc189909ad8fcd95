"""DescribeProducers (API key 61): request and response."""

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, message


@message
class TopicRequest:
    name: str = STRING()
    partition_indexes: list[int] = ARRAY(INT32)


@message
class DescribeProducersRequest:
    topics: list[TopicRequest] = ARRAY(TopicRequest)


@message
class ProducerState:
    producer_id: int = INT64()
    producer_epoch: int = INT32()
    last_sequence: int = INT32(default=-1)
    last_timestamp: int = INT64(default=-1)
    coordinator_epoch: int = INT32()
    current_txn_start_offset: int = INT64(default=-1)


@message
class PartitionResponse:
    partition_index: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)
    active_producers: list[ProducerState] = ARRAY(ProducerState)


@message
class TopicResponse:
    name: str = STRING()
    partitions: list[PartitionResponse] = ARRAY(PartitionResponse)


@message
class DescribeProducersResponse:
    throttle_time_ms: int = INT32()
    topics: list[TopicResponse] = ARRAY(TopicResponse)
