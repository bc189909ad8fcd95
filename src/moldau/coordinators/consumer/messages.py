"""What members of consumer groups ask of the coordinator, and what it answers. Handlers translate from and to the
protocol's messages.

A field that is None in a `ConsumerHeartbeat` has not changed since the last heartbeat.
"""

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.config import GroupConfig
from moldau.coordinators.ports import MaySee
from moldau.errors import ErrorCode

_DEFAULTS = GroupConfig()


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Kafka's settings for consumer groups; `of_group` returns the settings that each group can override."""

    of_group: Callable[[str], GroupConfig] = lambda _: _DEFAULTS
    max_size: int = 0x7FFFFFFF
    assignors: tuple[str, ...] = ("uniform", "range")
    enabled: bool = True
    migration_policy: str = "bidirectional"
    classic_max_size: int = 0x7FFFFFFF

    @property
    def can_upgrade(self) -> bool:
        return self.migration_policy in ("bidirectional", "upgrade")

    @property
    def can_downgrade(self) -> bool:
        return self.migration_policy in ("bidirectional", "downgrade")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat. `owned` are the partitions that the member reports; epoch 0 joins, -1 leaves, and -2
    leaves for now (a static member). `may_see`: the topics that its sender may describe, None for all."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    expression: str | None = None
    assignor: str | None = None
    owned: Mapping[uuid.UUID, frozenset[int]] | None = None
    client_id: str = ""
    client_host: str = ""
    may_see: MaySee | None = None

    @property
    def is_full(self) -> bool:
        """Whether all optional fields are set: the answer then has the assignment even if it did not change."""
        subscribes = self.topics is not None or self.expression is not None
        return self.epoch == 0 or (self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None)


PartitionsByTopic = Mapping[uuid.UUID, Collection[int]]
"""Topics and their partitions, in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeatReply:
    """The answer to a heartbeat; `assignment` is None if it did not change."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[uuid.UUID, list[int]] | None = None


class DescribedConsumerMember(NamedTuple):
    """One member; `is_classic` if it speaks the classic protocol."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    expression: str
    assigned: PartitionsByTopic
    target: PartitionsByTopic
    is_classic: bool


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: list[DescribedConsumerMember] = field(default_factory=list)
