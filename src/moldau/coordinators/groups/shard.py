"""One partition of the offsets topic: its groups of every kind, and their committed offsets. Pure.

Made here are the decisions that concern groups and offsets: a commit needs the member's right and the offset's value,
and a group is deleted together with its offsets. A group without members lives as long as it has offsets, or until the
next round of expiry.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.groups import ClassicGroups
from moldau.coordinators.classic.messages import Join, Leaver, Sync
from moldau.coordinators.classic.records import ClassicGroupRecord
from moldau.coordinators.consumer.changes import Match
from moldau.coordinators.consumer.groups import ConsumerGroups
from moldau.coordinators.consumer.large_heartbeats import LargeHeartbeat
from moldau.coordinators.consumer.messages import ConsumerHeartbeat
from moldau.coordinators.consumer.records import ConsumerGroupRecord
from moldau.coordinators.deadlines import Deadlines, earliest_ms
from moldau.coordinators.decision import Decision, InternalRecord, InTransaction, Now, Replies, Ticket, TransactionEnd
from moldau.coordinators.groups.conversions import Answering, Conversions
from moldau.coordinators.groups.kinds import GroupKind
from moldau.coordinators.groups.messages import ListedGroup
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.offsets.committed import CommittedOffsets
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.coordinators.offsets.records import is_offset
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.names import TopicPartition, VerificationGuard


def no_expressions(expression: str, topics: Iterable[str]) -> list[str]:
    raise ValueError("this coordinator supports no expressions")


EXPIRY_LOOKS, EXPIRY_PAUSE_MS = 1000, 1
"""The number of groups and offsets that one turn of a round of expiry checks, and the pause until the next turn."""


class GroupShard:
    """The state machine of one partition of the offsets topic."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        new_id: Callable[[], str],
        image: Callable[[], Image] = lambda: Image(""),
        match: Match = no_expressions,
    ):
        self.settings = settings
        self._image = image
        self.classic = ClassicGroups(settings.classic, new_id)
        self.consumer = ConsumerGroups(settings.consumer, new_id, image, match, self.classic.adopt)
        self.offsets = CommittedOffsets(settings.offsets)
        # While a group changes its kind, the consumer group counts until the classic one is written.
        self._kinds: tuple[GroupKind, ...] = (self.consumer, self.classic)
        self._kind_of_record: dict[type, GroupKind] = {
            ClassicGroupRecord: self.classic,
            ConsumerGroupRecord: self.consumer,
        }
        self._conversions = Conversions(self.classic, self.consumer)
        self._expiry: Deadlines[str] = Deadlines()
        self._deadlines: tuple[Deadlines[Any], ...] = (self._expiry, *(kind.deadlines for kind in self._kinds))
        self._to_look_at: list[str] = []  # what is left of a round of expiry, the next group last
        self._named_in_transactions: dict[str, None] = {}  # collected during replay

    def _kind_of(self, group_id: str) -> GroupKind | None:
        """The kind that has the group; None if the group does not exist."""
        for kind in self._kinds:
            if group_id in kind.live:
                return kind
        return None

    def _answering(self, group_id: str) -> Answering:
        return self._conversions.answering[self._kind_of(group_id)]

    # -- from the log

    def apply(self, record: InternalRecord, now: Now) -> Replies:
        """A record is committed, or read back. Damaged records, and those of unknown types, are skipped."""
        try:
            applied = self.offsets.apply(record)
            known = read_record(record) if applied is None else None
        except ProtocolViolation:
            return []
        if applied is not None:
            # During replay only the offset is noted; `start` makes the groups.
            if applied.is_there and self.classic.started:
                self._ensure(str(applied.group, "utf-8"))
            return []
        if known is None:
            return []
        replies = self._kind_of_record[type(known)].apply(known, now)
        if known.value is None:
            self._named_in_transactions.pop(known.group, None)
            if self.offsets.has_any(known.group):
                self._ensure(known.group)
        return replies

    def apply_pending(self, producer_id: int, record: InternalRecord, now: Now) -> Replies:
        """A record of a producer's transaction. Transactions write only offsets; other records take effect at once."""
        if not is_offset(record.key):
            return self.apply(record, now)
        try:
            applied = self.offsets.apply_pending(producer_id, record)
        except ProtocolViolation:
            return []
        if applied is not None and applied.is_there:
            group_id = str(applied.group, "utf-8")
            if self.classic.started:
                self._ensure(group_id)
            else:
                self._named_in_transactions[group_id] = None
        return []

    def end(self, producer_id: int, commits: bool, now: Now) -> Replies:
        """A producer's transaction has ended. The groups that it named stay, even if it was aborted."""
        self.offsets.end(producer_id, commits)
        return []

    def _ensure(self, group_id: str) -> None:
        """Offsets without a group make an empty classic group."""
        if self._kind_of(group_id) is None:
            self.classic.ensure(group_id)

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        """Replay has ended: get ready for requests, in parts. Yields the size of each part in groups and members."""
        for kind in reversed(self._kinds):
            yield from kind.start(now, out)
        named = self._named_in_transactions
        for group_id in chain(self.offsets.groups(), self.offsets.groups_in_transactions(), named):
            self._ensure(group_id)
            yield 1
        named.clear()
        self._expiry.set("", now.monotonic_ms + self.settings.offsets.retention_check_interval_ms)

    def next_ms(self) -> int | None:
        return earliest_ms(self._deadlines)

    def tick(self, now: Now) -> Decision | None:
        """Handle one deadline that has passed; None if none has."""
        if self._expiry.take(now.monotonic_ms) is None:
            ticks = (kind.tick(now) for kind in reversed(self._kinds))
            return next((out for out in ticks if out is not None), None)
        if not self._to_look_at:
            self._to_look_at = [*dict.fromkeys(chain.from_iterable(kind.group_ids() for kind in self._kinds))][::-1]
        out = self.expire(now)
        pause_ms = EXPIRY_PAUSE_MS if self._to_look_at else self.settings.offsets.retention_check_interval_ms
        self._expiry.set("", now.monotonic_ms + pause_ms)
        return out

    def stop(self, error: ErrorCode) -> Replies:
        """The coordinator resigns; returns the answers to members that wait."""
        return [reply for kind in self._kinds for reply in kind.stop(error)]

    # -- members

    def join(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        """JoinGroup; the answer is a `Joined`."""
        return self._conversions.join(self._kind_of(ask.group_id), ask, ticket, now)

    def beat(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        """ConsumerGroupHeartbeat; the answer is a `ConsumerHeartbeatReply`."""
        return self._conversions.join(self._kind_of(ask.group_id), ask, ticket, now)

    def is_large(self, ask: ConsumerHeartbeat) -> bool:
        """Whether the heartbeat takes so much work that it is decided elsewhere (`consumer.large`)."""
        return self._kind_of(ask.group_id) in (None, self.consumer) and self.consumer.is_large(ask)

    def fits(self, group_id: str, large: LargeHeartbeat) -> bool:
        """Whether the decision about a large heartbeat is still the right one, and can be taken over."""
        return self._kind_of(group_id) in (None, self.consumer) and self.consumer.fits(group_id, large)

    def sync(self, ask: Sync, ticket: Ticket, now: Now) -> Decision:
        """SyncGroup; the answer is a `Synced`."""
        return self._answering(ask.group_id).members.sync(ask, ticket, now)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now) -> ErrorCode:
        """Heartbeat of the classic protocol."""
        return self._answering(group_id).members.heartbeat(group_id, generation, member_id, instance_id, now)

    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision:
        """LeaveGroup; the answer is a `Left`."""
        return self._answering(group_id).members.leave(group_id, leavers, ticket, now)

    def listed(self) -> Iterator[ListedGroup]:
        """All groups. They may change between two steps of the iteration."""
        for group_id in dict.fromkeys(chain.from_iterable(kind.group_ids() for kind in self._kinds)):
            for kind in self._kinds:
                described = kind.listed(group_id)
                if described is not None:
                    yield ListedGroup(group_id, *described, kind.name)
                    break

    def members(self, group_id: str) -> int:
        """The number of members of a group; 0 if the group does not exist."""
        if group_id in self.consumer.live:
            return len(self.consumer.live[group_id].members)
        return len(self.classic.live[group_id].members) if group_id in self.classic.live else 0

    # -- offsets

    def commit(self, ask: OffsetsToCommit, ticket: Ticket, now: Now) -> Decision:
        """The reply is a list of errors, one for each offset."""
        out = Decision()
        errors = self._answering(ask.group_id).offsets.check_commit(ask, now)
        self._commit(ask.group_id, ask.offsets, errors, ask.retention_ms, ticket, now, out)
        return out

    def commit_in_transaction(
        self, ask: TransactionalOffsetCommit, guard: VerificationGuard | None, ticket: Ticket, now: Now
    ) -> Decision:
        """The reply is a list of errors, one for each offset. `guard`: see `InTransaction`."""
        out = Decision()
        errors = self._answering(ask.group_id).offsets.check_commit_in_transaction(ask)
        self._commit(ask.group_id, ask.offsets, errors, -1, ticket, now, out)
        if out.records:
            out.transaction = InTransaction(ask.producer_id, ask.epoch, guard)
        return out

    def _commit(
        self,
        group_id: str,
        offsets: list[NewOffset],
        errors: list[ErrorCode],
        retention_ms: int,
        ticket: Ticket,
        now: Now,
        out: Decision,
    ) -> None:
        """Commit the offsets that have no error, and reply with the errors of all."""
        self.offsets.commit(group_id, offsets, errors, retention_ms, now.wall_ms, out)
        out.reply(ticket, errors, lambda refusal: [refusal if e is ErrorCode.NONE else e for e in errors])

    def end_transaction(self, ending: TransactionEnd, ticket: Ticket, now: Now) -> Decision:
        """The reply is NONE once the marker is in the log, or the error of the append."""
        out = Decision(transaction=ending)
        out.reply(ticket, ErrorCode.NONE, lambda error: error)
        return out

    # -- deletion

    def delete_groups(self, group_ids: list[str], ticket: Ticket, now: Now) -> Decision:
        """The reply is a list of errors, one for each group."""
        out = Decision()
        errors = []
        for group_id in group_ids:
            kind = self._answering(group_id).kind
            error = kind.check_delete(group_id)
            if error is ErrorCode.NONE:
                self.offsets.delete_all(group_id, out)
                kind.delete(group_id, out)
            errors.append(error)
        out.reply(ticket, errors, lambda refusal: [refusal if e is ErrorCode.NONE else e for e in errors])
        return self._concluded(out, now)

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition], ticket: Ticket, now: Now) -> Decision:
        """The reply is an error for the whole request, and one for each partition."""
        out = Decision()
        answering = self._answering(group_id)
        group, error = answering.kind.live.get(group_id), answering.offsets.check_delete_offsets(group_id)
        if group is None or error is not ErrorCode.NONE:
            out.reply(ticket, (error, []))
            return out
        errors = self.offsets.delete(group, partitions, out)
        out.reply(ticket, (ErrorCode.NONE, errors), lambda refusal: (refusal, []))
        return out

    def forget_topics(self, topics: frozenset[str], now: Now) -> Iterator[Decision]:
        """The topics were deleted: delete the offsets in them, those of some groups with each decision. A topic may
        have been made anew, and offsets of the new one stay."""
        image = self._image()
        names = {name.encode(): image.topics[name].id if name in image.topics else None for name in topics}
        out, looks = Decision(), 0
        offsets = self.offsets
        groups = (*offsets.groups(), *offsets.groups_in_transactions(), *offsets.groups_undecided())
        for group_id in dict.fromkeys(groups):
            self.offsets.delete_topics(group_id, names, out)
            looks += 1 + len(self.offsets.of(group_id))
            if looks >= EXPIRY_LOOKS:
                yield out
                out, looks = Decision(), 0
        yield out

    def expire(self, now: Now) -> Decision:
        """Delete expired offsets and unused groups among the next that the round looks at."""
        out = Decision()
        looks = 0
        while self._to_look_at and looks < EXPIRY_LOOKS:
            group_id = self._to_look_at.pop()
            looks += 1 + len(self.offsets.of(group_id))
            kind = self._kind_of(group_id)
            if kind is None:
                continue
            has_no_offsets = self.offsets.expire(kind.live[group_id], now.wall_ms, out)
            if has_no_offsets and kind.is_unused(group_id):
                kind.delete(group_id, out)
        return self._concluded(out, now)

    def _concluded(self, out: Decision, now: Now) -> Decision:
        for kind in self._kinds:
            out = kind.conclude(out, now)
        return out
