"""What is asked of the group coordinator and what it answers, in its own words: handlers translate from and to the
protocol's.

Byte strings (a member's metadata and assignment) are opaque here; only `group.Group.begin_generation` looks into
them.
"""

import uuid
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.coordinators.classic.group import Protocols
from moldau.coordinators.consumer.exchange import ConsumerSettings
from moldau.errors import ErrorCode
from moldau.names import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's settings for groups; two are constants in Kafka, and `consumer` is for those of the newer protocol."""

    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 0x7FFFFFFF
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 10080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    new_member_join_timeout_ms: int = 300_000
    expected_members_max: int = 10_000
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """`can_wait_for_id`: a newcomer is told its id first and joins with it (KIP-394); `can_skip`: KIP-814."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    can_wait_for_id: bool
    can_skip: bool


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    error: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """`assignments` counts only from the leader. A protocol that is None is not compared."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Leaver(NamedTuple):
    """Without a member id, whoever holds the instance id is taken out (an administrator's request)."""

    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class Left:
    error: ErrorCode
    members: list[ErrorCode] = field(default_factory=list)


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Described:
    state: str
    protocol_type: str
    protocol: str
    members: list[DescribedMember]


class Listed(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    group_type: str


class NewOffset(NamedTuple):
    """One offset to be committed; `topic_id` is zero where it is not known."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`retention_ms` is -1 unless the client asks for an expiry of its own (OffsetCommit 2 to 4); `generation` is an
    epoch in a group of the newer protocol, whose members must say so (`knows_epochs`: OffsetCommit 9)."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    retention_ms: int
    offsets: list[NewOffset]
    knows_epochs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalCommit:
    """Offsets that count once the producer's transaction is committed. Who names no member and no generation is not
    compared with the group (KIP-447: TxnOffsetCommit before 3)."""

    group_id: str
    producer_id: int
    epoch: int
    member_id: str
    instance_id: str | None
    generation: int
    offsets: list[NewOffset]
