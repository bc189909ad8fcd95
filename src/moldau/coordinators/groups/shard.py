"""One partition of the offsets topic: its groups and its offsets, changed by the same records. Pure, as both of them
are.

Here are the decisions that need both: a commit is a member's right and an offset's value; a group that goes takes its
offsets along. A group without members lives as long as it has offsets, or until the next round of forgetting.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from moldau.cluster.image import Image
from moldau.coordinators.classic.group import ClassicGroup, ClassicGroupState
from moldau.coordinators.classic.groups import ClassicGroups
from moldau.coordinators.classic.messages import Join, Joined, Leaver, Sync
from moldau.coordinators.classic.records import ClassicGroupRecord, classic_group_record
from moldau.coordinators.consumer.group import ConsumerGroup
from moldau.coordinators.consumer.groups import Match
from moldau.coordinators.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinators.consumer.mixed_groups import MixedGroups
from moldau.coordinators.consumer.records import ConsumerGroupRecord
from moldau.coordinators.consumer.rights import check_commit, check_commit_in_transaction
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, InternalRecord, InTransaction, Now, Replies, Ticket, TransactionEnd
from moldau.coordinators.groups.messages import ListedGroup
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.offsets.committed import CommittedOffsets
from moldau.coordinators.offsets.messages import OffsetCommit, TransactionalOffsetCommit
from moldau.coordinators.offsets.records import is_offset
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.names import TopicPartition, VerificationGuard


def no_expressions(expression: str, topics: Iterable[str]) -> list[str]:
    raise ValueError("expressions are not understood here")


FORGET_LOOKS, FORGET_PAUSE_MS = 1000, 1
"""So many groups and offsets are looked at in one go of a round of forgetting, and so long others have their turn."""


class GroupShard:
    """What `host.Host` runs for every partition of the offsets topic that this broker leads."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        new_id: Callable[[], str],
        image: Callable[[], Image] = lambda: Image(""),
        match: Match = no_expressions,
    ):
        self.settings = settings
        self.groups = ClassicGroups(settings.classic, new_id)
        self.consumers = MixedGroups(settings.consumer, new_id, image, match)
        self.offsets = CommittedOffsets(settings.offsets)
        self._forgetting: Deadlines[str] = Deadlines()
        self._to_look_at: list[str] = []  # what is left of a round of forgetting, the next one last
        self._named: dict[str, None] = {}  # groups in transactions, while the log is read back

    def apply(self, record: InternalRecord, now: Now) -> Replies:
        """A record is committed, or read back; one that cannot be understood is passed over, and the rest stays up."""
        try:
            if is_offset(record.key):
                self._apply_offset(record)
                return []
            known = read_record(record)
        except ProtocolViolation:
            return []
        if known is None:
            return []
        if known.value is None:
            self._named.pop(known.group, None)
        if isinstance(known, ClassicGroupRecord):
            replies = self.groups.apply(known, now)
            if known.value is None and self.offsets.has_any(known.group):
                self._ensure(known.group)
            return replies
        if isinstance(known, ConsumerGroupRecord):
            self.consumers.apply(known)
            if self.offsets.has_any(known.group):
                self._ensure(known.group)
        return []

    def apply_pending(self, producer_id: int, record: InternalRecord, now: Now) -> Replies:
        """A record of a producer's transaction. Only offsets are written in these; all else counts as it stands."""
        if not is_offset(record.key):
            return self.apply(record, now)
        try:
            applied = self.offsets.apply_pending(producer_id, record)
        except ProtocolViolation:
            return []
        if applied is not None and applied.is_there:
            group_id = str(applied.group, "utf-8")
            if self.groups.started:
                self._ensure(group_id)
            else:
                self._named[group_id] = None
        return []

    def end(self, producer_id: int, commits: bool, now: Now) -> Replies:
        """A producer's transaction has ended. A group that it named stays, whatever became of its offsets."""
        self.offsets.end(producer_id, commits)
        return []

    def _apply_offset(self, record: InternalRecord) -> None:
        """While the log is read back, groups wait for `start`: there is nothing to do here but to note the offset."""
        applied = self.offsets.apply(record)
        if self.groups.started and applied is not None and applied.is_there:
            self._ensure(str(applied.group, "utf-8"))

    def _ensure(self, group_id: str) -> None:
        """Offsets without a group make one, of the classic kind."""
        if group_id not in self.consumers.live:
            self.groups.ensure(group_id)

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        yield from self.groups.start(now, out)
        yield from self.consumers.start(now)
        for group_id in chain(self.offsets.groups(), self.offsets.groups_in_transactions(), self._named):
            self._ensure(group_id)
            yield 1
        self._named.clear()
        self._forgetting.set("", now.monotonic_ms + self.settings.offsets.retention_check_interval_ms)

    def next_ms(self) -> int | None:
        due = (self.groups.next_ms(), self.consumers.next_ms(), self._forgetting.next_ms())
        return min((ms for ms in due if ms is not None), default=None)

    def tick(self, now: Now) -> Decision | None:
        if self._forgetting.take(now.monotonic_ms) is None:
            outcome = self.groups.tick(now)
            if outcome is not None:
                return outcome
            outcome = self.consumers.tick(now)
            return outcome if outcome is None else self._turned(outcome, now)
        if not self._to_look_at:
            self._to_look_at = [*self.consumers.live, *self.groups.live][::-1]
        out = self.forget(now)
        pause_ms = FORGET_PAUSE_MS if self._to_look_at else self.settings.offsets.retention_check_interval_ms
        self._forgetting.set("", now.monotonic_ms + pause_ms)
        return out

    def stop(self, error: ErrorCode) -> Replies:
        return self.groups.stop(error)

    # -- decisions that need both

    def join(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        """A JoinGroup of the classic protocol; a group of the newer one that is empty makes way for it."""
        newer = self.consumers.live.get(ask.group_id)
        if newer is None:
            return self.groups.join(ask, ticket, now)
        if newer.members:
            return self._turned(self.consumers.join(ask, ticket, now), now)
        out = Decision()
        if ask.member_id:
            out.reply(ticket, Joined(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=ask.member_id))
            return out
        self.consumers.delete(ask.group_id, out)
        joined = self.groups.join(ask, ticket, now)
        out.records += joined.records
        out.replies = joined.replies

        def refused(error: ErrorCode) -> Replies:
            self.groups.live.pop(ask.group_id, None)
            return [(ticket, Joined(error=error, member_id=ask.member_id))]

        out.refused = refused
        return self.consumers.chained(out, now)

    def beat(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        """A ConsumerGroupHeartbeat; a classic group makes way for a group of the newer protocol, and goes on in it."""
        group = self.groups.live.get(ask.group_id)
        if group is None or ask.epoch != 0 or ask.group_id in self.consumers.live:
            return self._turned(self.consumers.beat(ask, ticket, now), now)
        if group.state is not ClassicGroupState.EMPTY:
            return self._upgrade(group, ask, ticket, now)
        out = self.consumers.beat(ask, ticket, now)
        if ask.group_id in self.consumers.live:
            classic, refused = Decision(), out.refused
            self.groups.delete(ask.group_id, classic)
            out.records[:0] = classic.records

            def undone(error: ErrorCode) -> Replies:
                self.groups.live[ask.group_id] = group
                if group.state is ClassicGroupState.DEAD:
                    self.groups.undelete(ask.group_id)
                return refused(error) if refused is not None else []

            out.refused = undone
        return out

    def _upgrade(self, group: ClassicGroup, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        """Who waits in the group is told to join again, and does so in the group that it has become."""
        error, message = self.consumers.check_take_over(group, ask)
        if group.state is ClassicGroupState.DEAD or error is not ErrorCode.NONE:
            out = Decision()
            out.reply(
                ticket,
                ConsumerHeartbeatReply(error=error or ErrorCode.COORDINATOR_NOT_AVAILABLE, message=message or None),
            )
            return out
        classic = Decision()
        classic.records.append(classic_group_record(ask.group_id, None))
        self.groups.give_up(group, ErrorCode.REBALANCE_IN_PROGRESS, classic)
        self.consumers.take_over(group, now, classic)
        out = self.consumers.beat(ask, ticket, now)
        assert out.records and out.refused is not None
        out.records[:0] = classic.records
        out.replies += classic.replies
        theirs = out.refused

        def refused(error: ErrorCode) -> Replies:
            self.groups.revive(ask.group_id, now, classic)
            return [reply for reply in theirs(error) if reply[0] == ticket] + classic.replies

        out.refused = refused
        return out

    def _turned(self, out: Decision, now: Now) -> Decision:
        """Groups that have just become classic are to be run as such."""
        turned, self.consumers.turned = self.consumers.turned, ()
        for group, settled in turned:
            self.groups.adopt(group, settled, now, out)
        theirs = out.refused
        if not turned or theirs is None:
            return out

        def refused(error: ErrorCode) -> Replies:
            parked = Decision()
            for group, _ in turned:
                self.groups.give_up(group, ErrorCode.REBALANCE_IN_PROGRESS, parked)
            return theirs(error) + parked.replies

        out.refused = refused
        return out

    def sync(self, ask: Sync, ticket: Ticket, now: Now) -> Decision:
        """A SyncGroup, in either kind of group."""
        if ask.group_id in self.consumers.live:
            return self.consumers.sync(ask, ticket, now)
        return self.groups.sync(ask, ticket, now)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now) -> ErrorCode:
        """A Heartbeat of the classic protocol, in either kind of group."""
        if group_id in self.consumers.live:
            return self.consumers.heartbeat(group_id, generation, member_id, instance_id, now)
        return self.groups.heartbeat(group_id, generation, member_id, instance_id, now)

    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision:
        """A LeaveGroup, which takes members of either kind of group out."""
        if group_id in self.consumers.live:
            return self._turned(self.consumers.leave(group_id, leavers, ticket, now), now)
        return self.groups.leave(group_id, leavers, ticket, now)

    def listed(self) -> Iterator[ListedGroup]:
        """All groups, of both kinds. They may change in between."""
        for group_id in dict.fromkeys(chain(self.consumers.stored, self.groups.live)):
            newer = self.consumers.stored.get(group_id)
            if newer is not None:
                yield ListedGroup(group_id, "consumer", newer.state.value, "consumer")
            elif (classic := self.groups.listed(group_id)) is not None:
                yield ListedGroup(group_id, *classic, "classic")

    def commit(self, ask: OffsetCommit, ticket: Ticket, now: Now) -> Decision:
        """The reply is a list of errors, one for each offset."""
        out = Decision()
        newer = self.consumers.live.get(ask.group_id)
        if newer is not None:
            return self._commit_newer(newer, ask, ticket, now)
        error = self.groups.check_commit(ask.group_id, ask.generation, ask.member_id, ask.instance_id, now)
        if error is not ErrorCode.NONE:
            out.reply(ticket, [error] * len(ask.offsets))
            return out
        errors = self.offsets.commit(ask.group_id, ask.offsets, ask.retention_ms, now.wall_ms, out)
        out.refuse(ticket, lambda refusal: [refusal if e is ErrorCode.NONE else e for e in errors])
        out.reply(ticket, errors)
        return out

    def _commit_newer(self, group: ConsumerGroup, ask: OffsetCommit, ticket: Ticket, now: Now) -> Decision:
        out = Decision()
        errors = check_commit(group, ask)
        fine = [new for new, error in zip(ask.offsets, errors, strict=True) if error is ErrorCode.NONE]
        written = iter(self.offsets.commit(ask.group_id, fine, ask.retention_ms, now.wall_ms, out))
        errors = [next(written) if error is ErrorCode.NONE else error for error in errors]
        out.refuse(ticket, lambda refusal: [refusal if e is ErrorCode.NONE else e for e in errors])
        out.reply(ticket, errors)
        return out

    def commit_in_transaction(
        self, ask: TransactionalOffsetCommit, guard: VerificationGuard | None, ticket: Ticket, now: Now
    ) -> Decision:
        """The reply is a list of errors, one for each offset. `guard`: see `InTransaction`."""
        out = Decision()
        newer = self.consumers.live.get(ask.group_id)
        if newer is not None:
            errors = check_commit_in_transaction(newer, ask)
        else:
            errors = [self.groups.check_commit_in_transaction(ask)] * len(ask.offsets)
        fine = [new for new, error in zip(ask.offsets, errors, strict=True) if error is ErrorCode.NONE]
        written = iter(self.offsets.commit(ask.group_id, fine, -1, now.wall_ms, out))
        errors = [next(written) if error is ErrorCode.NONE else error for error in errors]
        if out.records:
            out.transaction = InTransaction(ask.producer_id, ask.epoch, guard)
        out.refuse(ticket, lambda refusal: [refusal if e is ErrorCode.NONE else e for e in errors])
        out.reply(ticket, errors)
        return out

    def end_transaction(self, ending: TransactionEnd, ticket: Ticket, now: Now) -> Decision:
        """The reply is an error: whether the marker is in the log."""
        out = Decision(transaction=ending)
        out.refuse(ticket, lambda refusal: refusal)
        out.reply(ticket, ErrorCode.NONE)
        return out

    def delete_groups(self, group_ids: list[str], ticket: Ticket, now: Now) -> Decision:
        """The reply is a list of errors, one for each group."""
        out = Decision()
        errors, deleted = [], []
        for group_id in group_ids:
            newer = self.consumers.live.get(group_id)
            if newer is not None:
                error = ErrorCode.NON_EMPTY_GROUP if newer.members else ErrorCode.NONE
                if not newer.members:
                    self.offsets.delete_all(group_id, out)
                    self.consumers.delete(group_id, out)
                errors.append(error)
                continue
            error = self.groups.check_delete(group_id)
            if error is ErrorCode.NONE:
                self.offsets.delete_all(group_id, out)
                self.groups.delete(group_id, out)
                deleted.append(group_id)
            errors.append(error)
        out.reply(ticket, errors)

        def refused(error: ErrorCode) -> Replies:
            for group_id in deleted:
                self.groups.undelete(group_id)
            return [(ticket, [error if e is ErrorCode.NONE else e for e in errors])]

        out.refused = refused
        return self.consumers.chained(out, now)

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition], ticket: Ticket, now: Now) -> Decision:
        """The reply is an error for the whole, and one for each partition."""
        out = Decision()
        newer = self.consumers.live.get(group_id)
        group = self.groups.live.get(group_id)
        if newer is not None:
            errors = self.offsets.delete(newer, partitions, out)
            out.refuse(ticket, lambda error: (error, []))
            out.reply(ticket, (ErrorCode.NONE, errors))
        elif not group_id:
            out.reply(ticket, (ErrorCode.INVALID_GROUP_ID, []))
        elif group is None or group.state is ClassicGroupState.DEAD:
            out.reply(ticket, (ErrorCode.GROUP_ID_NOT_FOUND, []))
        elif group.state is not ClassicGroupState.EMPTY and not group.is_consumer:
            out.reply(ticket, (ErrorCode.NON_EMPTY_GROUP, []))
        else:
            errors = self.offsets.delete(group, partitions, out)
            out.refuse(ticket, lambda error: (error, []))
            out.reply(ticket, (ErrorCode.NONE, errors))
        return out

    def forget_topics(self, topics: frozenset[str], now: Now) -> Iterator[Decision]:
        """The topics are deleted: so are the offsets that groups had in them, of some groups with each outcome."""
        out, looks = Decision(), 0
        for group_id in dict.fromkeys((*self.offsets.groups(), *self.offsets.groups_in_transactions())):
            self.offsets.delete_topics(group_id, topics, out)
            looks += 1 + len(self.offsets.of(group_id))
            if looks >= FORGET_LOOKS:
                yield out
                out, looks = Decision(), 0
        yield out

    def forget(self, now: Now) -> Decision:
        """Offsets past their retention, and groups that have nothing left, among the next that are to be looked at."""
        out = Decision()
        gone: list[ClassicGroup] = []
        looks = 0
        while self._to_look_at and looks < FORGET_LOOKS:
            group_id = self._to_look_at.pop()
            looks += 1 + len(self.offsets.of(group_id))
            newer, group = self.consumers.live.get(group_id), self.groups.live.get(group_id)
            if newer is not None:
                if self.offsets.expire(newer, now.wall_ms, out) and not newer.members:
                    self.consumers.delete(newer.group_id, out)
                continue
            if group is None:
                continue
            nothing_left = self.offsets.expire(group, now.wall_ms, out)
            if nothing_left and not group.expected and self.groups.check_delete(group.group_id) is ErrorCode.NONE:
                self.groups.delete(group.group_id, out)
                gone.append(group)

        def refused(error: ErrorCode) -> Replies:
            for group in gone:
                self.groups.undelete(group.group_id)
            return []

        out.refused = refused
        return self.consumers.chained(out, now)
