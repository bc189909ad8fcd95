"""What members of classic groups ask of the coordinator, and what it answers. Handlers translate from and to the
protocol's messages.

A member's metadata and assignment are bytes that clients agree on. Only `ClassicGroup.begin_generation` reads
subscriptions, to know which topics a group consumes.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.coordinators.classic.group import Protocols
from moldau.coordinators.ports import MaySee
from moldau.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ClassicGroupSettings:
    """Kafka's settings for classic groups. Kafka has the last two as constants."""

    initial_rebalance_delay_ms: int = 0
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 0x7FFFFFFF
    new_member_join_timeout_ms: int = 300_000
    expected_members_max: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """JoinGroup. `can_wait_for_id`: a new member is given its id first, and joins again with it (KIP-394). `can_skip`:
    a static leader that is back can be told to skip the assignment (KIP-814). `may_see`: see `ConsumerHeartbeat`."""

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
    may_see: MaySee | None = None


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The answer to JoinGroup; only the leader gets `members`."""

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
    """SyncGroup. Only the leader's `assignments` are used. A protocol that is None is not compared."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Leaver(NamedTuple):
    """One member of a LeaveGroup. Without a member id, the member that holds the instance id is removed (a request of
    an administrator)."""

    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class Left:
    """The answer to LeaveGroup: an error for the whole request, or one for each member."""

    error: ErrorCode
    members: list[ErrorCode] = field(default_factory=list)


class DescribedClassicMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedClassicGroup:
    state: str
    protocol_type: str
    protocol: str
    members: list[DescribedClassicMember]
