"""The records inside `__consumer_offsets` and `__transaction_state`, from which coordinators rebuild their state.

`stored` maps the type numbers of keys to these classes.
"""

import uuid

from moldau.protocol.schema import ARRAY, BYTES, INT8, INT16, INT32, INT64, STRING, STRUCT, UUID, message


@message
class OffsetCommitKey:
    group: str = STRING(until=0)
    topic: str = STRING(until=0)
    partition: int = INT32(until=0)


@message
class OffsetCommitValue:
    offset: int = INT64()
    leader_epoch: int = INT32(since=3, default=-1)
    metadata: str = STRING()
    commit_timestamp: int = INT64()
    expire_timestamp: int = INT64(since=1, until=1, default=-1)
    topic_id: uuid.UUID = UUID(since=4, tag=0)


@message
class GroupMetadataKey:
    group: str = STRING(until=0)


@message
class MemberMetadata:
    member_id: str = STRING()
    group_instance_id: str | None = STRING(since=3, nullable=3, default=None)
    client_id: str = STRING()
    client_host: str = STRING()
    rebalance_timeout: int = INT32(since=1, default=-1)
    session_timeout: int = INT32()
    subscription: bytes = BYTES()
    assignment: bytes = BYTES()


@message
class GroupMetadataValue:
    protocol_type: str = STRING()
    generation: int = INT32()
    protocol: str | None = STRING(nullable=0)
    leader: str | None = STRING(nullable=0)
    current_state_timestamp: int = INT64(since=2, default=-1)
    members: list[MemberMetadata] = ARRAY(MemberMetadata)


@message
class ConsumerGroupKey:
    """The key of the records that a consumer group (KIP-848) has once: metadata, topics, target epoch."""

    group: str = STRING(until=0)


@message
class ConsumerGroupMemberKey:
    """The key of records of which each member has one; for a resolved regular expression, `member_id` is the
    expression."""

    group: str = STRING(until=0)
    member_id: str = STRING(until=0)


@message
class ConsumerGroupMetadataValue:
    epoch: int = INT32()
    metadata_hash: int = INT64(tag=0)


@message
class PartitionRacks:
    partition: int = INT32()
    racks: list[str] = ARRAY(STRING)


@message
class TopicSize:
    topic_id: uuid.UUID = UUID()
    topic: str = STRING()
    num_partitions: int = INT32()
    partition_racks: list[PartitionRacks] = ARRAY(PartitionRacks)


@message
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicSize] = ARRAY(TopicSize)


@message
class ClassicProtocol:
    name: str = STRING()
    metadata: bytes = BYTES()


@message
class ClassicMemberMetadata:
    session_timeout_ms: int = INT32()
    supported_protocols: list[ClassicProtocol] = ARRAY(ClassicProtocol)


@message
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = STRING(nullable=0)
    rack_id: str | None = STRING(nullable=0)
    client_id: str = STRING()
    client_host: str = STRING()
    subscribed_topic_names: list[str] = ARRAY(STRING)
    subscribed_topic_regex: str | None = STRING(nullable=0)
    rebalance_timeout_ms: int = INT32(default=-1)
    server_assignor: str | None = STRING(nullable=0)
    classic_member_metadata: ClassicMemberMetadata | None = STRUCT(
        ClassicMemberMetadata, nullable=0, default=None, tag=0
    )


@message
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = INT32()
    assignment_timestamp: int = INT64(tag=0)


@message
class TargetPartitions:
    topic_id: uuid.UUID = UUID()
    partitions: list[int] = ARRAY(INT32)


@message
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TargetPartitions] = ARRAY(TargetPartitions)


@message
class OwnedTopicPartitions:
    topic_id: uuid.UUID = UUID()
    partitions: list[int] = ARRAY(INT32)
    assignment_epochs: list[int] | None = ARRAY(INT32, nullable=0, default=None, tag=0)


@message
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = INT32()
    previous_member_epoch: int = INT32()
    state: int = INT8()
    assigned_partitions: list[OwnedTopicPartitions] = ARRAY(OwnedTopicPartitions)
    partitions_pending_revocation: list[OwnedTopicPartitions] = ARRAY(OwnedTopicPartitions)


@message
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = ARRAY(STRING)
    version: int = INT64()
    timestamp: int = INT64()


@message
class TransactionLogKey:
    transactional_id: str = STRING(until=0)


@message
class TransactionPartitions:
    topic: str = STRING()
    partition_ids: list[int] = ARRAY(INT32)


@message
class TransactionLogValue:
    """`transaction_status`: see `stored.TRANSACTION_STATES`."""

    producer_id: int = INT64()
    previous_producer_id: int = INT64(since=1, tag=0, default=-1)
    next_producer_id: int = INT64(since=1, tag=1, default=-1)
    producer_epoch: int = INT16()
    next_producer_epoch: int = INT16(since=1, tag=3, default=-1)
    last_producer_epoch: int = INT16(since=1, tag=4, default=-1)
    transaction_timeout_ms: int = INT32()
    transaction_status: int = INT8()
    transaction_partitions: list[TransactionPartitions] | None = ARRAY(TransactionPartitions, nullable=0)
    transaction_last_update_timestamp_ms: int = INT64()
    transaction_start_timestamp_ms: int = INT64()
    client_transaction_version: int = INT16(since=1, tag=2)
