"""Classic consumer groups: every decision about joining, syncing, staying and leaving. Pure: time and new ids are
handed in.

Two kinds of state. `stored` is what the log says and changes only in `apply`; after a restart it is whatever
replaying gives, and `start` revives the live groups from it. `live` is what members see: parked replies, newcomers,
the phase of a rebalance; losing it costs a rebalance and never an offset. A group becomes stable only in `apply`,
once its assignment is committed. No answer is ever forgotten: whoever replaces or removes a parked ticket answers it.
Source: Apache Kafka 4.3's answers, asked one by one.
"""

from collections.abc import Callable, Iterator

from moldau.coordinators.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from moldau.coordinators.classic.messages import (
    ClassicGroupSettings,
    DescribedClassicGroup,
    DescribedClassicMember,
    Join,
    Joined,
    Leaver,
    Left,
    Sync,
    Synced,
)
from moldau.coordinators.classic.rebalance import EXPECTED, SESSION, Key, Rebalance, joined, synced
from moldau.coordinators.classic.records import ClassicGroupRecord, classic_group_record
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, Now, Replies, Ticket
from moldau.coordinators.offsets.messages import TransactionalOffsetCommit
from moldau.errors import ErrorCode
from moldau.protocol.internal import GroupMetadataValue


class ClassicGroups:
    """The groups of one partition of the offsets topic. `new_id` gives a string that was never given before."""

    def __init__(self, settings: ClassicGroupSettings, new_id: Callable[[], str]):
        self.settings = settings
        self.stored: dict[str, GroupMetadataValue] = {}
        self.live: dict[str, ClassicGroup] = {}
        self.started = False
        self._new_id = new_id
        self._deadlines: Deadlines[Key] = Deadlines()
        self._rebalance = Rebalance(settings, self._deadlines)

    # -- from the log

    def apply(self, record: ClassicGroupRecord, now: Now) -> Replies:
        """The record is committed. Returns the replies that waited for it."""
        out = Decision()
        if record.value is None:
            self.stored.pop(record.group, None)
            group = self.live.get(record.group)
            if group is not None and group.state is ClassicGroupState.DEAD:
                del self.live[record.group]
            return []
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
        """Replaying is over: group by group they live, and their members have one session timeout to be heard of."""
        assert not self.started
        self.started = True
        for group_id, value in self.stored.items():
            self._revive(group_id, value, now, out)
            yield 1 + len(value.members)

    def _revive(self, group_id: str, value: GroupMetadataValue, now: Now, out: Decision) -> None:
        """Its members join again if there are too many of them, or if nobody ever assigned to them (see `adopt`)."""
        group = self.live[group_id] = ClassicGroup.revived(group_id, value)
        for member in group.members.values():
            self._rebalance.keep_alive(group, member, now)
        if group.members and (group.leader is None or len(group.members) > self.settings.max_size):
            self._rebalance.start(group, now, out)

    def ensure(self, group_id: str) -> None:
        """A group that has offsets is a group, though nobody ever joined it."""
        if self.started and group_id not in self.live:
            self.live[group_id] = ClassicGroup(group_id)

    # -- from the members

    def join(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        out = Decision()
        settings = self.settings
        if not ask.group_id:
            return self._no_join(out, ticket, ErrorCode.INVALID_GROUP_ID, ask.member_id)
        if not settings.min_session_timeout_ms <= ask.session_timeout_ms <= settings.max_session_timeout_ms:
            return self._no_join(out, ticket, ErrorCode.INVALID_SESSION_TIMEOUT, ask.member_id)
        group = self.live.get(ask.group_id)
        if group is None:
            if ask.member_id:
                return self._no_join(out, ticket, ErrorCode.UNKNOWN_MEMBER_ID, ask.member_id)
            group = self.live[ask.group_id] = ClassicGroup(ask.group_id, since_ms=now.wall_ms)
            out.records.append(classic_group_record(group.group_id, group.value()))
        if group.state is ClassicGroupState.DEAD:
            return self._no_join(out, ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE, ask.member_id)
        if not self._has_room(group, ask.member_id):
            if ask.member_id in group.members:
                self._rebalance.drop(group, ask.member_id, out)
            self._no_join(out, ticket, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        elif not group.speaks(ask.protocol_type, ask.protocols):
            self._no_join(out, ticket, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ask.member_id)
        elif ask.member_id:
            self._join_known(group, ask, ticket, now, out)
        else:
            self._join_new(group, ask, ticket, now, out)
        self._rebalance.go_on(group, now, out)
        return out

    def sync(self, ask: Sync, ticket: Ticket, now: Now) -> Decision:
        out = Decision()
        group = self.live.get(ask.group_id)
        error = self._check_sync(group, ask)
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
            out.refused = lambda error: self._assignment_refused(group, generation, error, now)
        return out

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now) -> ErrorCode:
        """The hot one: touches a deadline, parks nothing, writes nothing."""
        group = self.live.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
        error = self._check_generation(group, generation, member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        self._rebalance.keep_alive(group, group.members[member_id], now)
        return (
            ErrorCode.REBALANCE_IN_PROGRESS if group.state is ClassicGroupState.PREPARING_REBALANCE else ErrorCode.NONE
        )

    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision:
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
        out.reply(ticket, Left(ErrorCode.NONE, errors))
        return out

    # -- from others

    def check_commit(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Whether these may commit offsets; GROUP_ID_NOT_FOUND for a member of no group."""
        group = self.live.get(group_id)
        if group is None:
            return ErrorCode.NONE if generation < 0 else ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is ClassicGroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and group.state is ClassicGroupState.EMPTY:
            return ErrorCode.NONE
        error = self._check_generation(group, generation, member_id, instance_id)
        if error is ErrorCode.NONE and group.state is ClassicGroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        if error is ErrorCode.NONE:
            self._rebalance.keep_alive(group, group.members[member_id], now)
        return error

    def check_commit_in_transaction(self, ask: TransactionalOffsetCommit) -> ErrorCode:
        """Whether these may commit offsets in a transaction; ILLEGAL_GENERATION for a member of no group. Who does not
        say who it is may, and so may members whose rebalance is not over."""
        group = self.live.get(ask.group_id)
        if group is None:
            return ErrorCode.NONE if ask.generation < 0 else ErrorCode.ILLEGAL_GENERATION
        if group.state is ClassicGroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        nobody = not ask.member_id and ask.instance_id is None
        if ask.generation < 0 and (nobody or group.state is ClassicGroupState.EMPTY):
            return ErrorCode.NONE
        return self._check_generation(group, ask.generation, ask.member_id, ask.instance_id)

    def check_delete(self, group_id: str) -> ErrorCode:
        group = self.live.get(group_id)
        if group is None or group.state is ClassicGroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if group.state is ClassicGroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def delete(self, group_id: str, out: Decision) -> None:
        """Begin to delete an empty group: dead until its tombstone is committed; `undelete` if that fails."""
        group = self.live[group_id]
        group.move_to(ClassicGroupState.DEAD, group.since_ms)
        out.records.append(classic_group_record(group_id, None))

    def undelete(self, group_id: str) -> None:
        group = self.live[group_id]
        group.move_to(ClassicGroupState.EMPTY, group.since_ms)

    def adopt(self, group: ClassicGroup, settled: bool, now: Now, out: Decision) -> None:
        """A group of the newer protocol is one of ours from now on. Unless it is settled its members join again: nobody
        leads it until they have, and so whoever reads that in the log knows it too. Kafka tells its members once, and
        forgets it at a crash."""
        group.since_ms = now.wall_ms
        if not settled:
            group.leader = None
        self.live[group.group_id] = group
        out.records.append(classic_group_record(group.group_id, group.value()))
        for member in group.members.values():
            self._rebalance.keep_alive(group, member, now)
        if not settled:
            self._rebalance.start(group, now, out)

    def give_up(self, group: ClassicGroup, error: ErrorCode, out: Decision) -> None:
        """The group is no longer ours: whoever waits in it is told so. Another may have its place by now."""
        if self.live.get(group.group_id) is group:
            del self.live[group.group_id]
            self._rebalance.forget(group)
        for member in group.members.values():
            out.reply(group.take_join(member), Joined(error=error, member_id=member.member_id))
            out.reply(member.sync, Synced(error=error))
            member.sync = None

    def revive(self, group_id: str, now: Now, out: Decision) -> None:
        """The group is what the log says, if it has it."""
        value = self.stored.get(group_id)
        if value is None:
            self.live.pop(group_id, None)
        else:
            self._revive(group_id, value, now, out)

    def describe(self, group_id: str) -> DescribedClassicGroup | None:
        group = self.live.get(group_id)
        if group is None or group.state is ClassicGroupState.DEAD:
            return None
        stable = group.state is ClassicGroupState.STABLE
        protocol = group.protocol if stable else None
        members = [
            DescribedClassicMember(
                m.member_id,
                m.instance_id,
                m.client_id,
                m.client_host,
                m.metadata(protocol),
                m.assignment,
            )
            for m in group.members.values()
        ]
        return DescribedClassicGroup(group.state.value, group.protocol_type or "", protocol or "", members)

    def listed(self, group_id: str) -> tuple[str, str] | None:
        """The group's protocol type and the name of its state; None if it does not exist."""
        group = self.live.get(group_id)
        return None if group is None else (group.protocol_type or "", group.state.value)

    def next_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def tick(self, now: Now) -> Decision | None:
        """Deal with the first deadline that has passed; None if none has."""
        key = self._deadlines.take(now.monotonic_ms)
        if key is None:
            return None
        out = Decision()
        group = self.live.get(key[1])
        if group is not None and group.state is not ClassicGroupState.DEAD:
            self._rebalance.passed(key, group, now, out)
        return out

    def stop(self, error: ErrorCode) -> Replies:
        """This partition is no longer ours: everybody who waits is told so."""
        out = Decision()
        for group in self.live.values():
            for member in group.members.values():
                out.reply(group.take_join(member), Joined(error=error, member_id=member.member_id))
                out.reply(member.sync, Synced(error=error))
                member.sync = None
        self.live.clear()
        return out.replies

    # -- steps

    @staticmethod
    def _no_join(out: Decision, ticket: Ticket, error: ErrorCode, member_id: str) -> Decision:
        out.reply(ticket, Joined(error=error, member_id=member_id))
        return out

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """`group.max.size`; while members rejoin, those who came first stay."""
        member = group.members.get(member_id)
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            return (member is not None and member.join is not None) or group.joining < self.settings.max_size
        return (
            group.state is ClassicGroupState.EMPTY or member is not None or len(group.members) < self.settings.max_size
        )

    def _join_new(self, group: ClassicGroup, ask: Join, ticket: Ticket, now: Now, out: Decision) -> None:
        member_id = f"{ask.client_id if ask.instance_id is None else ask.instance_id}-{self._new_id()}"
        if ask.instance_id is not None and ask.instance_id in group.statics:
            self._replace_static(group, group.members[group.statics[ask.instance_id]], member_id, ask, ticket, now, out)
        elif ask.instance_id is None and ask.can_wait_for_id:
            if len(group.expected) >= self.settings.expected_members_max:
                oldest = next(iter(group.expected))
                del group.expected[oldest]
                self._deadlines.cancel((EXPECTED, group.group_id, oldest))
            group.expected[member_id] = None
            self._deadlines.set((EXPECTED, group.group_id, member_id), now.monotonic_ms + ask.session_timeout_ms)
            self._no_join(out, ticket, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, member_id, ask, ticket, now, out)

    def _join_known(self, group: ClassicGroup, ask: Join, ticket: Ticket, now: Now, out: Decision) -> None:
        if ask.member_id in group.expected:
            if ask.instance_id is not None:  # only members without an instance id are made to wait for an id
                self._no_join(out, ticket, ErrorCode.UNKNOWN_SERVER_ERROR, "")
            else:
                self._add(group, ask.member_id, ask, ticket, now, out)
            return
        error = group.check_member(ask.member_id, ask.instance_id)
        if error is not ErrorCode.NONE:
            self._no_join(out, ticket, error, ask.member_id)
            return
        member = group.members[ask.member_id]
        leads = group.leader == member.member_id
        unchanged = member.protocols == ask.protocols
        if group.state is ClassicGroupState.COMPLETING_REBALANCE and unchanged:  # its answer got lost, say
            out.reply(ticket, joined(group, member, with_members=leads))
        elif group.state is ClassicGroupState.STABLE and unchanged and not leads:
            out.reply(ticket, joined(group, member, with_members=False))
        else:  # a leader that joins a stable group has seen something that calls for a new assignment
            self._update(group, member, ask, ticket, out)
            self._rebalance.start_or_go_on(group, now, out)

    def _add(self, group: ClassicGroup, member_id: str, ask: Join, ticket: Ticket, now: Now, out: Decision) -> None:
        if group.state is ClassicGroupState.PREPARING_REBALANCE and group.before is ClassicGroupState.EMPTY:
            group.grew = True
        if not group.members:
            group.protocol_type = ask.protocol_type
        self._deadlines.cancel((EXPECTED, group.group_id, member_id))
        timeouts = (ask.session_timeout_ms, ask.rebalance_timeout_ms)
        member = ClassicMember(member_id, ask.instance_id, ask.client_id, ask.client_host, *timeouts, ask.protocols)
        group.add(member)
        group.park_join(member, ticket)
        self._deadlines.set(
            (SESSION, group.group_id, member_id), now.monotonic_ms + self.settings.new_member_join_timeout_ms
        )
        self._rebalance.start_or_go_on(group, now, out)

    @staticmethod
    def _update(group: ClassicGroup, member: ClassicMember, ask: Join, ticket: Ticket, out: Decision) -> None:
        group.offer(member, ask.protocols)
        member.session_timeout_ms, member.rebalance_timeout_ms = ask.session_timeout_ms, ask.rebalance_timeout_ms
        before = group.park_join(member, ticket)
        out.reply(before, Joined(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))

    def _replace_static(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        member_id: str,
        ask: Join,
        ticket: Ticket,
        now: Now,
        out: Decision,
    ) -> None:
        """A static member came back without its id: the old id is fenced, its assignment stays, others hear nothing."""
        old_id, old_leader = member.member_id, group.leader
        out.reply(group.take_join(member), Joined(error=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
        out.reply(member.sync, Synced(error=ErrorCode.FENCED_INSTANCE_ID))
        member.sync = None
        self._deadlines.cancel((SESSION, group.group_id, old_id))
        group.rename(member, member_id)
        self._update(group, member, ask, ticket, out)
        self._rebalance.keep_alive(group, member, now)
        if group.state is not ClassicGroupState.STABLE or group.elected_protocol() != group.protocol:
            self._rebalance.start_or_go_on(group, now, out)
            return
        group.take_join(member)
        leads = group.leader == member_id
        out.records.append(classic_group_record(group.group_id, group.value()))
        out.refuse(ticket, lambda error: Joined(error=error))
        if ask.can_skip:
            out.reply(ticket, joined(group, member, with_members=leads, skip=leads))
        else:  # told of the old leader, it does not think that it has to assign
            out.reply(ticket, joined(group, member, with_members=False, leader=old_leader))

    def _leave_one(self, group: ClassicGroup, leaver: Leaver, out: Decision) -> ErrorCode:
        member_id = leaver.member_id
        if not member_id:
            holder = group.statics.get(leaver.instance_id) if leaver.instance_id is not None else None
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = holder
        elif member_id in group.expected:
            del group.expected[member_id]
            self._deadlines.cancel((EXPECTED, group.group_id, member_id))
            return ErrorCode.NONE
        else:
            error = group.check_member(member_id, leaver.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._rebalance.drop(group, member_id, out)
        return ErrorCode.NONE

    @staticmethod
    def _check_generation(group: ClassicGroup, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        if group.state is ClassicGroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = group.check_member(member_id, instance_id)
        if error is ErrorCode.NONE and generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def _check_sync(self, group: ClassicGroup | None, ask: Sync) -> ErrorCode:
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if ask.group_id else ErrorCode.INVALID_GROUP_ID
        error = self._check_generation(group, ask.generation, ask.member_id, ask.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if ask.protocol_type not in (None, group.protocol_type) or ask.protocol not in (None, group.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return (
            ErrorCode.REBALANCE_IN_PROGRESS if group.state is ClassicGroupState.PREPARING_REBALANCE else ErrorCode.NONE
        )

    def _assignment_refused(self, group: ClassicGroup, generation: int, error: ErrorCode, now: Now) -> Replies:
        """The log did not take the assignment: all who wait for it hear the error, and the group begins anew."""
        out = Decision()
        group.assigning = -1
        if group.state is ClassicGroupState.COMPLETING_REBALANCE and group.generation == generation:
            self._rebalance.answer_syncs(group, error, now, out)
            self._rebalance.start(group, now, out)
        return out.replies
