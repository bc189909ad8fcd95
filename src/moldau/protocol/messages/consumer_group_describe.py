"""ConsumerGroupDescribe (API key 69): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, STRING, STRUCT, UUID, message


@message
class ConsumerGroupDescribeRequest:
    group_ids: list[str] = ARRAY(STRING)
    include_authorized_operations: bool = BOOL()


@message
class TopicPartitions:
    topic_id: uuid.UUID = UUID()
    topic_name: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class Assignment:
    topic_partitions: list[TopicPartitions] = ARRAY(TopicPartitions)


@message
class Member:
    member_id: str = STRING()
    instance_id: str | None = STRING(nullable=0, default=None)
    rack_id: str | None = STRING(nullable=0, default=None)
    member_epoch: int = INT32()
    client_id: str = STRING()
    client_host: str = STRING()
    subscribed_topic_names: list[str] = ARRAY(STRING)
    subscribed_topic_regex: str | None = STRING(nullable=0, default=None)
    assignment: Assignment = STRUCT(Assignment)
    target_assignment: Assignment = STRUCT(Assignment)
    member_type: int = INT8(since=1, default=-1)


@message
class DescribedGroup:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)
    group_id: str = STRING()
    group_state: str = STRING()
    group_epoch: int = INT32()
    assignment_epoch: int = INT32()
    assignor_name: str = STRING()
    members: list[Member] = ARRAY(Member)
    authorized_operations: int = INT32(default=-2147483648)


@message
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = INT32()
    groups: list[DescribedGroup] = ARRAY(DescribedGroup)
