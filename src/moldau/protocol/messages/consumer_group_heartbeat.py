"""ConsumerGroupHeartbeat (API key 68): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, STRUCT, UUID, message


@message
class TopicPartitions:
    topic_id: uuid.UUID = UUID()
    partitions: list[int] = ARRAY(INT32)


@message
class ConsumerGroupHeartbeatRequest:
    group_id: str = STRING()
    member_id: str = STRING()
    member_epoch: int = INT32()
    instance_id: str | None = STRING(nullable=0, default=None)
    rack_id: str | None = STRING(nullable=0, default=None)
    rebalance_timeout_ms: int = INT32(default=-1)
    subscribed_topic_names: list[str] | None = ARRAY(STRING, nullable=0, default=None)
    subscribed_topic_regex: str | None = STRING(since=1, nullable=1, default=None)
    server_assignor: str | None = STRING(nullable=0, default=None)
    topic_partitions: list[TopicPartitions] | None = ARRAY(TopicPartitions, nullable=0, default=None)


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = ARRAY(TopicPartitions)


@message
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)
    member_id: str | None = STRING(nullable=0, default=None)
    member_epoch: int = INT32()
    heartbeat_interval_ms: int = INT32()
    assignment: Assignment | None = STRUCT(Assignment, nullable=0, default=None)
