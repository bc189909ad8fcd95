"""How a classic group gets from one generation to the next: the join phase, the sync phase, and their deadlines.

Every function works on one `ClassicGroup` and writes into the `Decision` that is being made. The rules are Kafka's. A
rebalance of an empty group waits `group.initial.rebalance.delay.ms` for more members. Any other rebalance ends when all
members have rejoined, or when the largest rebalance timeout has passed: dynamic members that have not rejoined by then
are removed, static members stay. Deadline keys: (what, group id, member id or "").
"""

from moldau.coordinators.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from moldau.coordinators.classic.messages import ClassicGroupSettings, Joined, JoinedMember, Synced
from moldau.coordinators.classic.records import classic_group_record
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, Now
from moldau.errors import ErrorCode

SESSION, EXPECTED, JOIN, SYNC = "session", "expected", "join", "sync"
Key = tuple[str, str, str]

REBALANCEABLE = (ClassicGroupState.EMPTY, ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE)


class Rebalance:
    """The phases of all groups of one coordinator, and their deadlines."""

    def __init__(self, settings: ClassicGroupSettings, deadlines: Deadlines[Key]):
        self.settings = settings
        self.deadlines = deadlines

    def start_or_go_on(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        """A change that all members must learn of: start a rebalance, or continue the one that is running."""
        if group.state in REBALANCEABLE:
            self.start(group, now, out)
        else:
            self.go_on(group, now, out)

    def go_on(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        """End the join phase if all members have rejoined. The delay of a first rebalance is never cut short."""
        if (
            group.state is ClassicGroupState.PREPARING_REBALANCE
            and group.before is not ClassicGroupState.EMPTY
            and group.all_joined()
        ):
            self.complete(group, now, out)

    def start(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            self.answer_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now, out)
        self.deadlines.cancel((SYNC, group.group_id, ""))
        first = group.state is ClassicGroupState.EMPTY
        group.move_to(ClassicGroupState.PREPARING_REBALANCE, now.wall_ms)
        if first:
            delay_ms = self.settings.initial_rebalance_delay_ms
            group.grew = False
            group.delay_left_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
            self.deadlines.set((JOIN, group.group_id, ""), now.monotonic_ms + delay_ms)
        elif group.all_joined():
            self.complete(group, now, out)
        else:
            self.deadlines.set((JOIN, group.group_id, ""), now.monotonic_ms + group.rebalance_timeout_ms())

    def complete(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        """End the join phase with the members that have joined. If only static members are left and none has rejoined,
        wait another rebalance timeout."""
        self.deadlines.cancel((JOIN, group.group_id, ""))
        for member in [m for m in group.members.values() if m.join is None and m.instance_id is None]:
            self.drop(group, member.member_id, out)
        if group.members and not group.elect_joined_leader():
            self.deadlines.set((JOIN, group.group_id, ""), now.monotonic_ms + group.rebalance_timeout_ms())
            return
        group.begin_generation(now.wall_ms)
        if group.state is ClassicGroupState.EMPTY:
            out.records.append(classic_group_record(group.group_id, group.value()))
            return
        for member in group.members.values():
            out.reply(group.take_join(member), joined(group, member, with_members=member.member_id == group.leader))
            member.new = False
            group.unsynced[member.member_id] = None
            self.keep_alive(group, member, now)
        self.deadlines.set((SYNC, group.group_id, ""), now.monotonic_ms + group.rebalance_timeout_ms())

    def settle(self, group: ClassicGroup, assignments: dict[str, bytes], now: Now, out: Decision) -> None:
        """The leader's assignment is committed: the group is stable, and waiting members get their parts."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.move_to(ClassicGroupState.STABLE, group.since_ms)
        self.answer_syncs(group, ErrorCode.NONE, now, out)

    def answer_syncs(self, group: ClassicGroup, error: ErrorCode, now: Now, out: Decision) -> None:
        """Answer all parked syncs. After an error members keep their last assignments, which an upgrade of the group
        uses."""
        for member in group.members.values():
            if member.sync is not None:
                ticket, member.sync = member.sync, None
                out.reply(ticket, synced(group, member) if error is ErrorCode.NONE else Synced(error=error))
                self.keep_alive(group, member, now)

    def has_synced(self, group: ClassicGroup, member_id: str) -> None:
        group.unsynced.pop(member_id, None)
        if not group.unsynced:
            self.deadlines.cancel((SYNC, group.group_id, ""))

    def keep_alive(self, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
        self.deadlines.set((SESSION, group.group_id, member.member_id), now.monotonic_ms + member.session_timeout_ms)

    def forget(self, group: ClassicGroup) -> None:
        """Cancel all deadlines of the group."""
        for what, names in ((SESSION, group.members), (EXPECTED, group.expected), (JOIN, ("",)), (SYNC, ("",))):
            for name in names:
                self.deadlines.cancel((what, group.group_id, name))

    def drop(
        self, group: ClassicGroup, member_id: str, out: Decision, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID
    ) -> None:
        """Remove a member; its parked requests get the error."""
        member = group.remove(member_id)
        self.deadlines.cancel((SESSION, group.group_id, member_id))
        out.reply(member.join, Joined(error=error))
        out.reply(member.sync, Synced(error=error))

    def passed(self, key: Key, group: ClassicGroup, now: Now, out: Decision) -> None:
        """The deadline with that key has passed."""
        what, _, member_id = key
        if what == EXPECTED:
            if member_id in group.expected:
                del group.expected[member_id]
                self.go_on(group, now, out)
        elif what == SESSION:
            self._session_passed(group, member_id, now, out)
        elif what == JOIN:
            self._join_passed(group, now, out)
        elif group.unsynced:
            for missing in list(group.unsynced):
                self.drop(group, missing, out)
            self.start_or_go_on(group, now, out)

    def _session_passed(self, group: ClassicGroup, member_id: str, now: Now, out: Decision) -> None:
        """A member with a parked request counts as alive, except a new one: its session timeout is the only sign that
        it died."""
        member = group.members.get(member_id)
        if member is None or (not member.new and (member.join is not None or member.sync is not None)):
            return
        self.drop(group, member_id, out)
        self.start_or_go_on(group, now, out)

    def _join_passed(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        if group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        if group.before is ClassicGroupState.EMPTY and group.grew and group.delay_left_ms > 0:
            delay_ms = min(self.settings.initial_rebalance_delay_ms, group.delay_left_ms)
            group.grew = False
            group.delay_left_ms -= delay_ms
            self.deadlines.set((JOIN, group.group_id, ""), now.monotonic_ms + delay_ms)
        else:
            self.complete(group, now, out)


def joined(
    group: ClassicGroup, member: ClassicMember, *, with_members: bool, leader: str | None = None, skip: bool = False
) -> Joined:
    """The answer to a JoinGroup of the current generation; `leader` names another leader than the group's."""
    assert group.leader is not None
    return Joined(
        member_id=member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader if leader is None else leader,
        skip_assignment=skip,
        members=tuple(
            JoinedMember(m.member_id, m.instance_id, m.metadata(group.protocol)) for m in group.members.values()
        )
        if with_members
        else (),
    )


def synced(group: ClassicGroup, member: ClassicMember) -> Synced:
    return Synced(protocol_type=group.protocol_type, protocol=group.protocol, assignment=member.assignment)
