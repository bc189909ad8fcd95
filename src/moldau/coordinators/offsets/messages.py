"""What members and producers ask of committed offsets. Handlers translate from and to the protocol's messages."""

import uuid
from dataclasses import dataclass
from typing import NamedTuple

from moldau.names import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetSettings:
    """Kafka's settings for committed offsets."""

    metadata_max_bytes: int = 4096
    retention_ms: int = 10080 * 60_000
    retention_check_interval_ms: int = 600_000


class NewOffset(NamedTuple):
    """One offset to commit; `topic_id` is zero if it is unknown."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsToCommit:
    """`retention_ms` is -1 unless the client sets a retention of its own (OffsetCommit 2 to 4). In a consumer group
    `generation` is the member's epoch, for which the client must use OffsetCommit 9 (`knows_epochs`)."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    retention_ms: int
    offsets: list[NewOffset]
    knows_epochs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalOffsetCommit:
    """Offsets that take effect once the producer's transaction commits. Without a member and a generation
    (TxnOffsetCommit before 3, KIP-447) the membership is not checked."""

    group_id: str
    producer_id: int
    epoch: int
    member_id: str
    instance_id: str | None
    generation: int
    offsets: list[NewOffset]
