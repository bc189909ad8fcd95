"""What the coordinator needs of a kind of groups: classic groups and consumer groups are two, share groups will be a
third.

Every kind is a `GroupKind`. One whose members may use the classic protocol `SpeaksClassic` too, and one whose members
commit offsets `CommitsOffsets`: share groups do neither. A group belongs to one kind at a time. `conversions` says
which kind answers a request, also if that belongs to another kind, or if there is no such group.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from moldau.coordinators.classic.messages import Leaver, Sync
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, Now, Replies, Ticket
from moldau.coordinators.offsets.committed import SubscribedGroup
from moldau.coordinators.offsets.messages import OffsetsToCommit, TransactionalOffsetCommit
from moldau.errors import ErrorCode


class GroupKind(Protocol):
    """The groups of one kind in one partition of the offsets topic. Methods that take a `group_id` require that it is
    in `live`, except where None or an error says that it does not exist."""

    @property
    def name(self) -> str:
        """As ListGroups spells the type of these groups."""

    @property
    def live(self) -> Mapping[str, SubscribedGroup]:
        """The groups as decided so far."""

    # -- from the log

    def apply(self, record: Any, now: Now) -> Replies:
        """A record of this kind is committed, or read back. Returns the replies that waited for it."""

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        """Replay has ended: get ready for requests, in parts. Yields the size of each part in groups and members."""

    def stop(self, error: ErrorCode) -> Replies:
        """The coordinator resigns; returns the answers to members that wait."""

    # -- deadlines

    @property
    def deadlines(self) -> Deadlines[Any]:
        """The deadlines of all groups of this kind."""

    def tick(self, now: Now) -> Decision | None:
        """Handle the first deadline that has passed; None if none has."""

    # -- deletion

    def check_delete(self, group_id: str) -> ErrorCode: ...
    def is_unused(self, group_id: str) -> bool:
        """Whether nothing but offsets keeps the group."""

    def delete(self, group_id: str, out: Decision) -> None:
        """Delete a group that `check_delete` allows to; the decision still has to be concluded."""

    def conclude(self, out: Decision, now: Now) -> Decision:
        """The decision is complete. Makes it depend on earlier ones, if the kind needs that."""

    # -- for reading

    def group_ids(self) -> Iterable[str]: ...
    def listed(self, group_id: str) -> tuple[str, str] | None:
        """The group's protocol type and the name of its state; None if it does not exist."""


class SpeaksClassic(Protocol):
    """Groups whose members may use the classic protocol. They join by `conversions`."""

    def sync(self, ask: Sync, ticket: Ticket, now: Now) -> Decision: ...
    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now
    ) -> ErrorCode: ...
    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision: ...


class CommitsOffsets(Protocol):
    """Groups whose members commit offsets."""

    def check_commit(self, ask: OffsetsToCommit, now: Now) -> list[ErrorCode]:
        """One error or NONE for each offset."""

    def check_commit_in_transaction(self, ask: TransactionalOffsetCommit) -> list[ErrorCode]:
        """One error or NONE for each offset."""

    def check_delete_offsets(self, group_id: str) -> ErrorCode: ...
