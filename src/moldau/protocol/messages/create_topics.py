"""CreateTopics (API key 19): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, STRING, UUID, message


@message
class CreatableReplicaAssignment:
    partition_index: int = INT32()
    broker_ids: list[int] = ARRAY(INT32)


@message
class CreatableTopicConfig:
    name: str = STRING()
    value: str | None = STRING(nullable=0)


@message
class CreatableTopic:
    name: str = STRING()
    num_partitions: int = INT32()
    replication_factor: int = INT16()
    assignments: list[CreatableReplicaAssignment] = ARRAY(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = ARRAY(CreatableTopicConfig)


@message
class CreateTopicsRequest:
    topics: list[CreatableTopic] = ARRAY(CreatableTopic)
    timeout_ms: int = INT32(default=60000)
    validate_only: bool = BOOL(since=1)


@message
class CreatableTopicConfigs:
    name: str = STRING(since=5)
    value: str | None = STRING(since=5, nullable=5)
    read_only: bool = BOOL(since=5)
    config_source: int = INT8(since=5, default=-1)
    is_sensitive: bool = BOOL(since=5)


@message
class CreatableTopicResult:
    name: str = STRING()
    topic_id: uuid.UUID = UUID(since=7)
    error_code: int = INT16()
    error_message: str | None = STRING(since=1, nullable=0)
    topic_config_error_code: int = INT16(since=5, tag=0)
    num_partitions: int = INT32(since=5, default=-1)
    replication_factor: int = INT16(since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = ARRAY(CreatableTopicConfigs, since=5, nullable=5)


@message
class CreateTopicsResponse:
    throttle_time_ms: int = INT32(since=2)
    topics: list[CreatableTopicResult] = ARRAY(CreatableTopicResult)
