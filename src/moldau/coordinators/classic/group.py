"""One classic group in memory: its state, its members, and the counts that answer questions about it cheaply.

`ClassicGroupState` lists the states, and `NEXT` the changes of state that are allowed. This is the live group, with
parked replies and with members that no record mentions yet; only its last `GroupMetadataValue` outlives the broker.
Decisions are made in `groups`. Invariants: `joining` is the number of members with a parked JoinGroup; `offers` counts,
for each protocol name, the members that support it; `statics` maps every instance id to the member that holds it.
Members stay in the order in which they joined.
"""

import enum
from collections import Counter
from dataclasses import dataclass, field

from moldau.coordinators.decision import Ticket
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.protocol.consumer import read_subscription
from moldau.protocol.internal import GroupMetadataValue, MemberMetadata

CONSUMER_PROTOCOL = "consumer"


class ClassicGroupState(enum.Enum):
    """The state of a group; the value is Kafka's name for it."""

    meaning: str

    def __new__(cls, title: str, meaning: str) -> "ClassicGroupState":
        member = object.__new__(cls)
        member._value_ = title
        member.meaning = meaning
        return member

    EMPTY = (
        "Empty",
        "no members, perhaps offsets: members may join, any client may commit, and the group can be deleted",
    )
    PREPARING_REBALANCE = (
        "PreparingRebalance",
        "the join phase: heartbeats tell members to rejoin, and syncs are rejected",
    )
    COMPLETING_REBALANCE = (
        "CompletingRebalance",
        "the sync phase: all members have joined a new generation, and syncs wait for the leader's assignment",
    )
    STABLE = "Stable", "the assignment of this generation is in the log"
    DEAD = "Dead", "the group's tombstone is being committed: no request is accepted"


NEXT: dict[ClassicGroupState, tuple[ClassicGroupState, ...]] = {
    ClassicGroupState.EMPTY: (ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.DEAD),
    ClassicGroupState.PREPARING_REBALANCE: (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY),
    ClassicGroupState.COMPLETING_REBALANCE: (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE),
    ClassicGroupState.STABLE: (ClassicGroupState.PREPARING_REBALANCE,),
    ClassicGroupState.DEAD: (ClassicGroupState.EMPTY,),
}

Protocols = tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class ClassicMember:
    """One member; `new` until its first JoinGroup is answered, when it starts to send heartbeats. `join` and `sync` are
    the tickets of parked requests."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    new: bool = True
    join: Ticket | None = None
    sync: Ticket | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for that protocol; empty if it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


@dataclass(slots=True)
class ClassicGroup:
    """One group. `before` is the previous state; `since_ms` is when the state last changed, in milliseconds since
    1970."""

    group_id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    before: ClassicGroupState = ClassicGroupState.EMPTY
    since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)
    offers: Counter[str] = field(default_factory=Counter)
    joining: int = 0
    expected: dict[str, None] = field(default_factory=dict)  # ids that were given out and have not joined (KIP-394)
    unsynced: dict[str, None] = field(default_factory=dict)  # members of this generation that have not sent SyncGroup
    assigning: int = -1  # the generation whose assignment is being committed
    grew: bool = False  # a member joined during the delay of the first rebalance
    delay_left_ms: int = 0
    topics: frozenset[str] | None = None  # the topics of all members; None if unknown

    def move_to(self, state: ClassicGroupState, wall_ms: int) -> None:
        assert state in NEXT[self.state], f"group {self.group_id}: {self.state} -> {state}"
        self.before, self.state, self.since_ms = self.state, state, wall_ms

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    def add(self, member: ClassicMember) -> None:
        self.members[member.member_id] = member
        self.expected.pop(member.member_id, None)
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.member_id
        self._count(member.protocols, 1)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> ClassicMember:
        """Take a member out; its parked replies are the caller's to answer, and are no longer counted."""
        member = self.members.pop(member_id)
        self.unsynced.pop(member_id, None)
        self._count(member.protocols, -1)
        if member.join is not None:
            self.joining -= 1
        if member.instance_id is not None and self.statics.get(member.instance_id) == member_id:
            del self.statics[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def offer(self, member: ClassicMember, protocols: Protocols) -> None:
        """The member speaks these protocols from now on."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def _count(self, protocols: Protocols, by: int) -> None:
        for name in dict.fromkeys(name for name, _ in protocols):
            self.offers[name] += by
            if not self.offers[name]:
                del self.offers[name]

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """A static member came back and gets a new id; its place in the order, its role and its assignment stay."""
        assert member.instance_id is not None
        old, member.member_id = member.member_id, member_id
        self.members = {member_id if known == old else known: m for known, m in self.members.items()}
        self.unsynced = dict.fromkeys(member_id if known == old else known for known in self.unsynced)
        self.statics[member.instance_id] = member_id
        if self.leader == old:
            self.leader = member_id

    def park_join(self, member: ClassicMember, ticket: Ticket) -> Ticket | None:
        """Park the member's JoinGroup until the join phase ends; returns the ticket of an earlier one, if any."""
        before, member.join = member.join, ticket
        self.joining += before is None
        return before

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member that still holds its instance id (KIP-345)."""
        if instance_id is not None:
            holder = self.statics.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def take_join(self, member: ClassicMember) -> Ticket | None:
        ticket, member.join = member.join, None
        self.joining -= ticket is not None
        return ticket

    def all_joined(self) -> bool:
        return self.joining >= len(self.members) and not self.expected

    def speaks(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols may join: all members must have one protocol in common."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        return protocol_type == self.protocol_type and any(
            self.offers[name] == len(self.members) for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """The protocol with the most votes; each member votes for the first of its own that all members support."""
        everyone = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if self.offers[name] >= everyone)] += 1
        return max(votes, key=lambda name: votes[name])

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has rejoined, else take the first member that has; False if none has."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.join is not None:
            return True
        for member in self.members.values():
            if member.join is not None:
                self.leader = member.member_id
                return True
        return False

    def begin_generation(self, wall_ms: int) -> None:
        """The join phase is over: a protocol is elected and syncs are awaited; without members the group is empty."""
        self.generation = self.generation + 1 if self.generation < 0x7FFFFFFF else 1
        self.protocol = self.elected_protocol() if self.members else None
        self.topics = self._subscribed()
        self.unsynced.clear()
        self.move_to(ClassicGroupState.COMPLETING_REBALANCE if self.members else ClassicGroupState.EMPTY, wall_ms)

    def is_subscribed(self, topic: str) -> bool:
        """Whether members consume the topic; consumers with unreadable subscriptions may consume any."""
        return topic in self.topics if self.topics is not None else self.is_consumer and bool(self.members)

    @property
    def lets_offsets_expire(self) -> bool:
        """False while members hold the group, unless they are consumers whose subscriptions are known."""
        if self.protocol_type is None or self.state is ClassicGroupState.EMPTY:
            return True
        return self.is_consumer and self.state is ClassicGroupState.STABLE and self.topics is not None

    def retention_start_ms(self, commit_ms: int) -> int:
        """When the retention of an offset starts: at its commit, or once the members of its group had left."""
        became_empty = self.protocol_type is not None and self.state is ClassicGroupState.EMPTY
        return self.since_ms if became_empty and self.since_ms >= 0 else commit_ms

    def value(self) -> GroupMetadataValue:
        """The value of the group's record."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )

    @classmethod
    def revived(cls, group_id: str, value: GroupMetadataValue) -> "ClassicGroup":
        """The group of a record: stable with the recorded assignments if it has members, empty otherwise."""
        group = cls(group_id, since_ms=value.current_state_timestamp, generation=value.generation)
        group.protocol_type, group.protocol = value.protocol_type or None, value.protocol
        for m in value.members:
            protocols = ((value.protocol or "", m.subscription),)
            timeout_ms = m.rebalance_timeout if m.rebalance_timeout >= 0 else m.session_timeout
            member = ClassicMember(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                m.session_timeout,
                timeout_ms,
                protocols,
                m.assignment,
                new=False,
            )
            group.add(member)
        group.leader = value.leader
        group.state = group.before = ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY
        group.topics = group._subscribed()
        return group

    def _subscribed(self) -> frozenset[str] | None:
        """The topics of all members; None if they are not consumers or a subscription cannot be read. As Kafka does,
        this reads only the fields of version 0: the version that a member states may not be the one that it wrote."""
        if not self.is_consumer:
            return None
        topics: dict[str, None] = {}
        for member in self.members.values():
            try:
                metadata = member.metadata(self.protocol)
                subscription = read_subscription(metadata, as_version=0)
            except ProtocolViolation:
                return None
            topics.update(dict.fromkeys(subscription.topics))
        return frozenset(topics)
