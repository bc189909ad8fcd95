"""Metadata (API key 3): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, STRING, UUID, message


@message
class MetadataRequestTopic:
    topic_id: uuid.UUID = UUID(since=10)
    name: str | None = STRING(nullable=10)


@message
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = ARRAY(MetadataRequestTopic, nullable=1)
    allow_auto_topic_creation: bool = BOOL(since=4, default=True)
    include_cluster_authorized_operations: bool = BOOL(since=8, until=10)
    include_topic_authorized_operations: bool = BOOL(since=8)


@message
class MetadataResponseBroker:
    node_id: int = INT32()
    host: str = STRING()
    port: int = INT32()
    rack: str | None = STRING(since=1, nullable=1, default=None)


@message
class MetadataResponsePartition:
    error_code: int = INT16()
    partition_index: int = INT32()
    leader_id: int = INT32()
    leader_epoch: int = INT32(since=7, default=-1)
    replica_nodes: list[int] = ARRAY(INT32)
    isr_nodes: list[int] = ARRAY(INT32)
    offline_replicas: list[int] = ARRAY(INT32, since=5)


@message
class MetadataResponseTopic:
    error_code: int = INT16()
    name: str | None = STRING(nullable=12)
    topic_id: uuid.UUID = UUID(since=10)
    is_internal: bool = BOOL(since=1)
    partitions: list[MetadataResponsePartition] = ARRAY(MetadataResponsePartition)
    topic_authorized_operations: int = INT32(since=8, default=-2147483648)


@message
class MetadataResponse:
    throttle_time_ms: int = INT32(since=3)
    brokers: list[MetadataResponseBroker] = ARRAY(MetadataResponseBroker)
    cluster_id: str | None = STRING(since=2, nullable=2, default=None)
    controller_id: int = INT32(since=1, default=-1)
    topics: list[MetadataResponseTopic] = ARRAY(MetadataResponseTopic)
    cluster_authorized_operations: int = INT32(since=8, until=10, default=-2147483648)
    error_code: int = INT16(since=13)
