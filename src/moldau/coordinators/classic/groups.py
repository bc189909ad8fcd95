"""Classic groups: every decision about joining, syncing, staying and leaving. Pure: time and new ids are arguments.

Two kinds of state. `stored` is what the log holds; it changes only in `apply`, and `start` makes the live groups from
it after a restart. `live` is what members see: parked replies, new members, the phase of a rebalance. Losing it costs
a rebalance, but no offset. A group becomes stable only in `apply`, once its assignment is committed. Every parked
ticket gets an answer: code that replaces or removes one also replies to it.
Source: Apache Kafka 4.3's answers, asked one by one.
"""

from collections.abc import Callable, Iterable, Iterator

from moldau.coordinators.classic.group import ClassicGroup, ClassicGroupState
from moldau.coordinators.classic.joining import Joining, no_join
from moldau.coordinators.classic.messages import (
    ClassicGroupSettings,
    DescribedClassicGroup,
    Join,
    Joined,
    Leaver,
    Left,
    Sync,
    Synced,
)
from moldau.coordinators.classic.rebalance import EXPECTED, Key, Rebalance, synced
from moldau.coordinators.classic.records import ClassicGroupRecord, classic_group_record
from moldau.coordinators.classic.rights import (
    check_commit,
    check_commit_in_transaction,
    check_generation,
    check_sync,
    described,
)
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, Now, Replies, Ticket
from moldau.coordinators.offsets.messages import OffsetsToCommit, TransactionalOffsetCommit
from moldau.errors import ErrorCode
from moldau.protocol.internal import GroupMetadataValue


class ClassicGroups:
    """The groups of one partition of the offsets topic. `new_id` returns a string that it has never returned before."""

    name = "classic"

    def __init__(self, settings: ClassicGroupSettings, new_id: Callable[[], str]):
        self.settings = settings
        self.stored: dict[str, GroupMetadataValue] = {}
        self.live: dict[str, ClassicGroup] = {}
        self.started = False
        self.deadlines: Deadlines[Key] = Deadlines()
        self._rebalance = Rebalance(settings, self.deadlines)
        self._joining = Joining(settings, new_id, self.deadlines, self._rebalance)

    # -- from the log

    def apply(self, record: ClassicGroupRecord, now: Now) -> Replies:
        """The record is committed, or read back. Returns the replies that waited for it."""
        out = Decision()
        # A tombstone: the group goes unless it has been made anew meanwhile.
        if record.value is None:
            self.stored.pop(record.group, None)
            group = self.live.get(record.group)
            if group is not None and group.state is ClassicGroupState.DEAD:
                del self.live[record.group]
            return []
        # The leader's assignment is committed: the generation that waits for it becomes stable.
        self.stored[record.group] = record.value
        group = self.live.get(record.group)
        if (
            group is not None
            and group.state is ClassicGroupState.COMPLETING_REBALANCE
            and group.generation == record.value.generation
        ):
            self._rebalance.settle(group, {m.member_id: m.assignment for m in record.value.members}, now, out)
        return out.replies

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        """Replay has ended: make the live groups. Each member has one session timeout to send a heartbeat."""
        assert not self.started
        self.started = True
        for group_id, value in self.stored.items():
            self._revive(group_id, value, now, out)
            yield 1 + len(value.members)

    def _revive(self, group_id: str, value: GroupMetadataValue, now: Now, out: Decision) -> None:
        """Make the live group. Its members rejoin if the group is too large, or has no leader (see `adopt`)."""
        group = self.live[group_id] = ClassicGroup.revived(group_id, value)
        for member in group.members.values():
            self._rebalance.keep_alive(group, member, now)
        if group.members and (group.leader is None or len(group.members) > self.settings.max_size):
            self._rebalance.start(group, now, out)

    def ensure(self, group_id: str) -> None:
        """Make an empty group if there is none: committed offsets alone make a group."""
        if self.started and group_id not in self.live:
            self.live[group_id] = ClassicGroup(group_id)

    # -- from the members

    def join(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        """JoinGroup; the answer is a `Joined`, usually once the join phase ends."""
        out = Decision()
        settings = self.settings
        if not ask.group_id:
            return no_join(out, ticket, ErrorCode.INVALID_GROUP_ID, ask.member_id)
        if not settings.min_session_timeout_ms <= ask.session_timeout_ms <= settings.max_session_timeout_ms:
            return no_join(out, ticket, ErrorCode.INVALID_SESSION_TIMEOUT, ask.member_id)
        group = self.live.get(ask.group_id)
        if group is None:
            if ask.member_id:
                return no_join(out, ticket, ErrorCode.UNKNOWN_MEMBER_ID, ask.member_id)
            group = self.live[ask.group_id] = ClassicGroup(ask.group_id, since_ms=now.wall_ms)
            out.records.append(classic_group_record(group.group_id, group.value()))
        if group.state is ClassicGroupState.DEAD:
            return no_join(out, ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE, ask.member_id)
        if not self._joining.has_room(group, ask.member_id):
            if ask.member_id in group.members:
                self._rebalance.drop(group, ask.member_id, out)
            no_join(out, ticket, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        elif not group.speaks(ask.protocol_type, ask.protocols):
            no_join(out, ticket, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ask.member_id)
        elif ask.member_id:
            self._joining.known(group, ask, ticket, now, out)
        else:
            self._joining.new(group, ask, ticket, now, out)
        self._rebalance.go_on(group, now, out)
        return out

    def sync(self, ask: Sync, ticket: Ticket, now: Now) -> Decision:
        """SyncGroup; the answer is a `Synced`, for a group that is not stable once the assignment is committed."""
        out = Decision()
        group = self.live.get(ask.group_id)
        error = check_sync(group, ask)
        if error is not ErrorCode.NONE:
            out.reply(ticket, Synced(error=error))
            return out
        assert group is not None
        member = group.members[ask.member_id]
        self._rebalance.has_synced(group, ask.member_id)
        if group.state is ClassicGroupState.STABLE:
            self._rebalance.keep_alive(group, member, now)
            out.reply(ticket, synced(group, member))
            return out
        before, member.sync = member.sync, ticket
        out.reply(before, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
        if member.member_id == group.leader and group.assigning != group.generation:
            group.assigning = group.generation
            value = group.value()
            for m in value.members:
                m.assignment = ask.assignments.get(m.member_id, b"")
            out.records.append(classic_group_record(group.group_id, value))
            generation = group.generation
            out.undo.append(lambda error, then: self._assignment_refused(group, generation, error, now, then))
        return out

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now) -> ErrorCode:
        """Heartbeat, the most frequent request: moves the session's deadline; parks and writes nothing."""
        group = self.live.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
        error = check_generation(group, generation, member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        self._rebalance.keep_alive(group, group.members[member_id], now)
        return (
            ErrorCode.REBALANCE_IN_PROGRESS if group.state is ClassicGroupState.PREPARING_REBALANCE else ErrorCode.NONE
        )

    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision:
        """LeaveGroup; the answer is a `Left`."""
        out = Decision()
        group = self.live.get(group_id)
        if group is None or group.state is ClassicGroupState.DEAD:
            if not group_id:
                out.reply(ticket, Left(ErrorCode.INVALID_GROUP_ID))
            elif group is None:
                out.reply(ticket, Left(ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)))
            else:
                out.reply(ticket, Left(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return out
        errors = [self._leave_one(group, leaver, out) for leaver in leavers]
        if ErrorCode.NONE in errors:
            if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
                self._rebalance.start(group, now, out)
            else:
                self._rebalance.go_on(group, now, out)
        out.reply(ticket, Left(ErrorCode.NONE, errors), Left)
        return out

    # -- from others

    def check_commit(self, ask: OffsetsToCommit, now: Now) -> list[ErrorCode]:
        """One error or NONE for each offset; an accepted commit also keeps the member's session alive."""
        group = self.live.get(ask.group_id)
        error = check_commit(group, ask)
        member = None if group is None else group.members.get(ask.member_id)
        if group is not None and member is not None and error is ErrorCode.NONE and ask.generation >= 0:
            self._rebalance.keep_alive(group, member, now)
        return [error] * len(ask.offsets)

    def check_commit_in_transaction(self, ask: TransactionalOffsetCommit) -> list[ErrorCode]:
        """One error or NONE for each offset. Also allowed: requests that name no member, and members whose rebalance
        has not finished."""
        return [check_commit_in_transaction(self.live.get(ask.group_id), ask)] * len(ask.offsets)

    def check_delete(self, group_id: str) -> ErrorCode:
        """Whether the group can be deleted: only an empty one can."""
        group = self.live.get(group_id)
        if group is None or group.state is ClassicGroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if group.state is ClassicGroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def check_delete_offsets(self, group_id: str) -> ErrorCode:
        """Whether single offsets of the group can be deleted: of an empty group, or of one of consumers (KIP-496)."""
        group = self.live.get(group_id)
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None or group.state is ClassicGroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        may = group.state is ClassicGroupState.EMPTY or group.is_consumer
        return ErrorCode.NONE if may else ErrorCode.NON_EMPTY_GROUP

    def is_unused(self, group_id: str) -> bool:
        """Whether nothing but offsets keeps the group: it has no members, and no member id that it gave out is due."""
        return not self.live[group_id].expected and self.check_delete(group_id) is ErrorCode.NONE

    def delete(self, group_id: str, out: Decision) -> None:
        """Delete an empty group: it is dead until its tombstone is committed."""
        group = self.live[group_id]
        group.move_to(ClassicGroupState.DEAD, group.since_ms)
        out.records.append(classic_group_record(group_id, None))
        out.undo.append(lambda _error, _then: self._undelete(group))

    def _undelete(self, group: ClassicGroup) -> None:
        if group.state is ClassicGroupState.DEAD:
            self.live[group.group_id] = group
            group.move_to(ClassicGroupState.EMPTY, group.since_ms)

    def conclude(self, out: Decision, now: Now) -> Decision:
        """Decisions about classic groups do not depend on each other: nothing is to be added."""
        return out

    # -- from one kind to another

    def adopt(self, group: ClassicGroup, is_settled: bool, now: Now, out: Decision) -> None:
        """A consumer group is a classic group from now on. Unless it is settled, its members rejoin.

        A group without a leader in the log is one whose members must rejoin: so a coordinator that loads it after a
        crash lets them rejoin too. (Kafka tells its members once, and forgets that at a crash.)
        """
        group.since_ms = now.wall_ms
        if not is_settled:
            group.leader = None
        self.live[group.group_id] = group
        out.records.append(classic_group_record(group.group_id, group.value()))
        for member in group.members.values():
            self._rebalance.keep_alive(group, member, now)
        if not is_settled:
            self._rebalance.start(group, now, out)
        out.undo.append(lambda _error, then: self.abandon(group, ErrorCode.REBALANCE_IN_PROGRESS, then))

    def abandon(self, group: ClassicGroup, error: ErrorCode, out: Decision) -> None:
        """The group is no longer a classic group: members that wait in it get the error."""
        # Another group may have taken its place in the meantime.
        if self.live.get(group.group_id) is group:
            del self.live[group.group_id]
            self._rebalance.forget(group)
        for member in group.members.values():
            out.reply(group.take_join(member), Joined(error=error, member_id=member.member_id))
            out.reply(member.sync, Synced(error=error))
            member.sync = None

    def replace(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        """The group becomes a group of another kind: write its tombstone, and let waiting members rejoin there."""
        out.records.append(classic_group_record(group.group_id, None))
        self.abandon(group, ErrorCode.REBALANCE_IN_PROGRESS, out)
        out.undo.append(lambda _error, then: self._restore(group.group_id, now, then))

    def _restore(self, group_id: str, now: Now, out: Decision) -> None:
        """Make the live group from the log again, if the log has it."""
        value = self.stored.get(group_id)
        if value is None:
            self.live.pop(group_id, None)
        else:
            self._revive(group_id, value, now, out)

    # -- for reading

    def group_ids(self) -> Iterable[str]:
        return self.live

    def is_dead(self, group_id: str) -> bool:
        """Whether the group is being deleted."""
        return self.live[group_id].state is ClassicGroupState.DEAD

    def is_empty(self, group_id: str) -> bool:
        """Whether a group of another kind may take the group's place."""
        return self.live[group_id].state is ClassicGroupState.EMPTY

    def describe(self, group_id: str) -> DescribedClassicGroup | None:
        """None if the group does not exist."""
        group = self.live.get(group_id)
        return None if group is None or group.state is ClassicGroupState.DEAD else described(group)

    def listed(self, group_id: str) -> tuple[str, str] | None:
        """The group's protocol type and the name of its state; None if it does not exist."""
        group = self.live.get(group_id)
        return None if group is None else (group.protocol_type or "", group.state.value)

    def tick(self, now: Now) -> Decision | None:
        """Handle the first deadline that has passed; None if none has."""
        key = self.deadlines.take(now.monotonic_ms)
        if key is None:
            return None
        out = Decision()
        group = self.live.get(key[1])
        if group is not None and group.state is not ClassicGroupState.DEAD:
            self._rebalance.passed(key, group, now, out)
        return out

    def stop(self, error: ErrorCode) -> Replies:
        """The coordinator resigns: all waiting members get the error."""
        out = Decision()
        for group in self.live.values():
            for member in group.members.values():
                out.reply(group.take_join(member), Joined(error=error, member_id=member.member_id))
                out.reply(member.sync, Synced(error=error))
                member.sync = None
        self.live.clear()
        return out.replies

    # -- steps

    def _leave_one(self, group: ClassicGroup, leaver: Leaver, out: Decision) -> ErrorCode:
        member_id = leaver.member_id
        if not member_id:
            holder = group.statics.get(leaver.instance_id) if leaver.instance_id is not None else None
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = holder
        elif member_id in group.expected:
            del group.expected[member_id]
            self.deadlines.cancel((EXPECTED, group.group_id, member_id))
            return ErrorCode.NONE
        else:
            error = group.check_member(member_id, leaver.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._rebalance.drop(group, member_id, out)
        return ErrorCode.NONE

    def _assignment_refused(
        self, group: ClassicGroup, generation: int, error: ErrorCode, now: Now, out: Decision
    ) -> None:
        """The assignment was not committed: members that wait for it get the error, and the group rebalances."""
        group.assigning = -1
        if group.state is ClassicGroupState.COMPLETING_REBALANCE and group.generation == generation:
            self._rebalance.answer_syncs(group, error, now, out)
            self._rebalance.start(group, now, out)
