"""One consumer group (KIP-848), as its records describe it: epochs, members, target and current assignments.

Every change of members, subscriptions or topics bumps the group's epoch. The target assignment is computed for such an
epoch. Each member has a current assignment, and the epoch that it has reached. Only `apply` changes a group, and it
takes records; decisions are made by the other modules of this folder. Members are immutable, so copies of a group
share them. Invariants: `statics` maps every instance id to the member that holds it; `owners` maps each partition that
a member has, or still has to revoke, to that member.
"""

import enum
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType
from moldau.protocol.internal import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    OwnedTopicPartitions,
    TargetPartitions,
)

LEAVES, LEAVES_FOR_NOW = -1, -2
"""Member epochs of heartbeats that leave the group; the second is for a static member that will be back."""

Owned: TypeAlias = Mapping[uuid.UUID, Mapping[int, int]]
"""Topic -> partition -> the epoch at which the member was given it."""
TargetAssignment: TypeAlias = Mapping[uuid.UUID, frozenset[int]]


class ConsumerGroupState(enum.Enum):
    """The state of a group; the value is Kafka's name for it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Phase(enum.IntEnum):
    """How far a member has reconciled with the target; the value is Kafka's number in its record."""

    STABLE = 0
    """The member has the partitions of the target at its epoch."""
    UNREVOKED = 1
    """The member has to revoke partitions before it reaches a newer epoch."""
    UNRELEASED = 2
    """The member is at its epoch, and waits for partitions that other members have not revoked yet."""
    UNKNOWN = 127
    """A newer broker wrote another number: the member has to join again."""


def _phase_of(state: int, revoking: bool) -> Phase:
    """The phase in a record. Moldau up to 0.1 wrote 1, 2 and 3 instead of 0, 1 and 2, which `revoking` tells apart:
    only an UNREVOKED member has partitions to revoke."""
    if state not in range(4):
        return Phase.UNKNOWN
    if revoking:
        return Phase.UNREVOKED
    return Phase.UNRELEASED if state >= Phase.UNRELEASED else Phase.STABLE


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member subscribes to `topics`, which are sorted, and to the topics that `expression` matches, unless it is
    empty. `assigned` are the partitions that it has; `revoking` are those that it still has to give up."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    topics: tuple[str, ...] = ()
    expression: str = ""
    classic: ClassicMemberMetadata | None = None
    epoch: int = 0
    previous_epoch: int = 0
    phase: Phase = Phase.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)

    def at_epoch(self, epoch: int, phase: Phase, assigned: Owned, revoking: Owned) -> "ConsumerMember":
        return replace(self, epoch=epoch, previous_epoch=self.epoch, phase=phase, assigned=assigned, revoking=revoking)

    def given_at(self, topic: uuid.UUID, partition: int) -> int | None:
        """The epoch at which the partition was assigned to the member; None if the member does not hold it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.get(topic, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.phase is Phase.STABLE and self.epoch == epoch


@dataclass(slots=True)
class ConsumerGroup:
    """One group. `checked` is the image with which its subscriptions were last compared, and `resolved` the image with
    which each expression was. `is_behind`: some expressions have not been compared with the newest image."""

    group_id: str
    epoch: int = 1
    metadata_hash: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)
    targets: dict[str, TargetAssignment] = field(default_factory=dict)
    target_epoch: int = 0
    target_stamp_ms: int = 0
    expressions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    owners: dict[tuple[uuid.UUID, int], str] = field(default_factory=dict)
    has_topics_record: bool = False
    checked: object = None
    resolved: dict[str, object] = field(default_factory=dict, compare=False)
    is_behind: bool = field(default=False, compare=False)
    applied: int = field(default=0, compare=False)
    """How many records were."""

    def fork(self) -> "ConsumerGroup":
        """The same group, that can change by itself."""
        return replace(
            self,
            members=dict(self.members),
            statics=dict(self.statics),
            targets=dict(self.targets),
            expressions=dict(self.expressions),
            owners=dict(self.owners),
            resolved=dict(self.resolved),
        )

    def copy(self) -> "ConsumerGroup":
        """An equal group that can change by itself. Its `owners` do not depend on the order of the records."""
        group = replace(
            self,
            members=dict(self.members),
            statics=dict(self.statics),
            targets=dict(self.targets),
            expressions=dict(self.expressions),
            owners={},
            checked=None,
            resolved={},
            is_behind=False,
        )
        for member in group.members.values():
            group._own(member)
        return group

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def topics_of(self, member: ConsumerMember) -> Iterable[str]:
        """The names of all topics that the member subscribes to."""
        resolved = self.expressions.get(member.expression, ()) if member.expression else ()
        return dict.fromkeys((*member.topics, *resolved)) if resolved else member.topics

    def subscribed(self) -> list[str]:
        """The names of all topics that members subscribe to, sorted."""
        topics: set[str] = set()
        for member in self.members.values():
            topics.update(member.topics)
        for expression in {member.expression: None for member in self.members.values()}:
            topics.update(self.expressions.get(expression, ()))
        return sorted(topics)

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    @property
    def lets_offsets_expire(self) -> bool:
        return True

    def retention_start_ms(self, commit_ms: int) -> int:
        return commit_ms

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.statics.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def uses(self, expression: str) -> bool:
        return any(member.expression == expression for member in self.members.values())

    def assignor(self, default: str) -> str:
        """The assignor that most members ask for, or else the default."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(sorted(votes), key=lambda name: votes[name]) if votes else default

    # -- from records

    def apply(self, record: ConsumerGroupRecord) -> None:
        """Apply a record, except the tombstone of the group itself."""
        self.applied += 1
        value, name = record.value, record.name
        match record.kind:
            case ConsumerRecordType.EPOCH:
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerRecordType.TOPICS:
                self.has_topics_record = value is not None
            case ConsumerRecordType.MEMBER if value is None:
                self._remove(name)
            case ConsumerRecordType.MEMBER:
                self._update(name, value)
            case ConsumerRecordType.TARGET_EPOCH:
                self.target_epoch = 0 if value is None else value.assignment_epoch
                self.target_stamp_ms = 0 if value is None else value.assignment_timestamp
            case ConsumerRecordType.TARGET if value is None:
                self.targets.pop(name, None)
            case ConsumerRecordType.TARGET:
                self.targets[name] = {t.topic_id: frozenset(t.partitions) for t in value.topic_partitions}
            case ConsumerRecordType.CURRENT:
                self._reconcile(name, value)
            case ConsumerRecordType.EXPRESSION if value is None:
                self.expressions.pop(name, None)
                self.resolved.pop(name, None)
            case ConsumerRecordType.EXPRESSION:
                self.expressions[name] = tuple(value.topics)

    def _update(self, member_id: str, value: ConsumerGroupMemberMetadataValue) -> None:
        member = self.members.get(member_id) or ConsumerMember(member_id)
        self.members[member_id] = replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            topics=tuple(value.subscribed_topic_names),
            expression=value.subscribed_topic_regex or "",
            classic=value.classic_member_metadata,
        )
        if value.instance_id is not None:
            self.statics[value.instance_id] = member_id

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._disown(member)
        if member.instance_id is not None and self.statics.get(member.instance_id) == member_id:
            del self.statics[member.instance_id]

    def _reconcile(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        member = self.members.get(member_id)
        if member is None:
            if value is None:
                return
            member = ConsumerMember(member_id)
        self._disown(member)
        if value is None:
            member = replace(member, epoch=LEAVES, previous_epoch=LEAVES, phase=Phase.STABLE, assigned={}, revoking={})
        else:
            member = replace(
                member,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                phase=_phase_of(value.state, bool(value.partitions_pending_revocation)),
                assigned=_owned(value.assigned_partitions, value.member_epoch),
                revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
            )
        self.members[member_id] = member
        self._own(member)

    def _own(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic, partitions in owned.items():
                for partition in partitions:
                    self.owners[topic, partition] = member.member_id

    def _disown(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic, partitions in owned.items():
                for partition in partitions:
                    if self.owners.get((topic, partition)) == member.member_id:
                        del self.owners[topic, partition]


def _owned(given: Iterable[OwnedTopicPartitions], epoch: int) -> Owned:
    """Records from before Kafka 4.3 lack the epochs of assignment; the record's own epoch is the latest possible."""
    owned = {}
    for topic in given:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [epoch] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def metadata_of(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    """The value of the member's metadata record."""
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.expression,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=member.classic,
    )


def current_of(member: ConsumerMember) -> ConsumerGroupCurrentMemberAssignmentValue:
    """The value of the member's current assignment record."""
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.phase,
        assigned_partitions=_stored(member.assigned),
        partitions_pending_revocation=_stored(member.revoking),
    )


def _stored(owned: Owned) -> list[OwnedTopicPartitions]:
    return [
        OwnedTopicPartitions(topic_id=topic, partitions=list(partitions), assignment_epochs=list(partitions.values()))
        for topic, partitions in owned.items()
    ]


def target_of(target: TargetAssignment) -> ConsumerGroupTargetAssignmentMemberValue:
    """The value of a member's target assignment record."""
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetPartitions(topic_id=topic, partitions=sorted(partitions)) for topic, partitions in target.items()
        ]
    )


def expression_of(topics: Iterable[str], wall_ms: int) -> ConsumerGroupRegularExpressionValue:
    """The value of the record with the topics that an expression matched."""
    return ConsumerGroupRegularExpressionValue(topics=list(topics), version=0, timestamp=wall_ms)
