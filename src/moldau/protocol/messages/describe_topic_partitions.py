"""DescribeTopicPartitions (API key 75): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, STRING, STRUCT, UUID, message


@message
class TopicRequest:
    name: str = STRING()


@message
class Cursor:
    topic_name: str = STRING()
    partition_index: int = INT32()


@message
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = ARRAY(TopicRequest)
    response_partition_limit: int = INT32(default=2000)
    cursor: Cursor | None = STRUCT(Cursor, nullable=0, default=None)


@message
class DescribeTopicPartitionsResponsePartition:
    error_code: int = INT16()
    partition_index: int = INT32()
    leader_id: int = INT32()
    leader_epoch: int = INT32(default=-1)
    replica_nodes: list[int] = ARRAY(INT32)
    isr_nodes: list[int] = ARRAY(INT32)
    eligible_leader_replicas: list[int] | None = ARRAY(INT32, nullable=0, default=None)
    last_known_elr: list[int] | None = ARRAY(INT32, nullable=0, default=None)
    offline_replicas: list[int] = ARRAY(INT32)


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: int = INT16()
    name: str | None = STRING(nullable=0)
    topic_id: uuid.UUID = UUID()
    is_internal: bool = BOOL()
    partitions: list[DescribeTopicPartitionsResponsePartition] = ARRAY(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = INT32(default=-2147483648)


@message
class NextCursor:
    topic_name: str = STRING()
    partition_index: int = INT32()


@message
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = INT32()
    topics: list[DescribeTopicPartitionsResponseTopic] = ARRAY(DescribeTopicPartitionsResponseTopic)
    next_cursor: NextCursor | None = STRUCT(NextCursor, nullable=0, default=None)
