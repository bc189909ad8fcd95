"""The records inside `__consumer_offsets`"""

import uuid

from moldau.protocol.schema import ARRAY, BYTES, INT32, INT64, STRING, UUID, message


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
