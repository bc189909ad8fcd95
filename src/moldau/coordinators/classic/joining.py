"""JoinGroup of a classic group: from a new member, one that joins again, or a static member that is back.

Part of the decisions of `groups`, which checks what holds for every JoinGroup before. Pure: time and new ids are
arguments. Source: Apache Kafka 4.3's answers, asked one by one.
"""

from collections.abc import Callable

from moldau.coordinators.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from moldau.coordinators.classic.messages import ClassicGroupSettings, Join, Joined, Synced
from moldau.coordinators.classic.rebalance import EXPECTED, SESSION, Key, Rebalance, joined
from moldau.coordinators.classic.records import classic_group_record
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.errors import ErrorCode


def no_join(out: Decision, ticket: Ticket, error: ErrorCode, member_id: str) -> Decision:
    """Refuse a JoinGroup."""
    out.reply(ticket, Joined(error=error, member_id=member_id))
    return out


class Joining:
    """The joins of the groups of one partition. `new_id` returns a string that it has never returned before."""

    def __init__(
        self,
        settings: ClassicGroupSettings,
        new_id: Callable[[], str],
        deadlines: Deadlines[Key],
        rebalance: Rebalance,
    ):
        self._settings = settings
        self._new_id = new_id
        self._deadlines = deadlines
        self._rebalance = rebalance

    def has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether `group.max.size` leaves room; while members rejoin, the first ones to do so stay."""
        member = group.members.get(member_id)
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            return (member is not None and member.join is not None) or group.joining < self._settings.max_size
        return (
            group.state is ClassicGroupState.EMPTY or member is not None or len(group.members) < self._settings.max_size
        )

    def new(self, group: ClassicGroup, ask: Join, ticket: Ticket, now: Now, out: Decision) -> None:
        """A member without an id joins."""
        member_id = f"{ask.client_id if ask.instance_id is None else ask.instance_id}-{self._new_id()}"
        # A static member is back without its id: it takes over its old place.
        if ask.instance_id is not None and ask.instance_id in group.statics:
            self._replace_static(group, group.members[group.statics[ask.instance_id]], member_id, ask, ticket, now, out)
        # A dynamic member is given an id first, and joins again with it (KIP-394).
        elif ask.instance_id is None and ask.can_wait_for_id:
            if len(group.expected) >= self._settings.expected_members_max:
                oldest = next(iter(group.expected))
                del group.expected[oldest]
                self._deadlines.cancel((EXPECTED, group.group_id, oldest))
            group.expected[member_id] = None
            self._deadlines.set((EXPECTED, group.group_id, member_id), now.monotonic_ms + ask.session_timeout_ms)
            no_join(out, ticket, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, member_id, ask, ticket, now, out)

    def known(self, group: ClassicGroup, ask: Join, ticket: Ticket, now: Now, out: Decision) -> None:
        """A member with an id joins: one of the group, or one that has just been given its id."""
        # The id was given out by `new`, which it does only for members without an instance id.
        if ask.member_id in group.expected:
            if ask.instance_id is not None:
                no_join(out, ticket, ErrorCode.UNKNOWN_SERVER_ERROR, "")
            else:
                self._add(group, ask.member_id, ask, ticket, now, out)
            return
        error = group.check_member(ask.member_id, ask.instance_id)
        if error is not ErrorCode.NONE:
            no_join(out, ticket, error, ask.member_id)
            return
        member = group.members[ask.member_id]
        leads = group.leader == member.member_id
        unchanged = member.protocols == ask.protocols
        # The join phase is over, so the member's answer must have been lost: repeat it.
        if group.state is ClassicGroupState.COMPLETING_REBALANCE and unchanged:
            out.reply(ticket, joined(group, member, with_members=leads))
        elif group.state is ClassicGroupState.STABLE and unchanged and not leads:
            out.reply(ticket, joined(group, member, with_members=False))
        # Anything else calls for a rebalance. A leader that rejoins a stable group wants to assign anew.
        else:
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
            (SESSION, group.group_id, member_id), now.monotonic_ms + self._settings.new_member_join_timeout_ms
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
        """A static member is back without its id: its old id is fenced, and its assignment is kept. In a stable group
        the other members do not notice."""
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
        if ask.can_skip:
            answer = joined(group, member, with_members=leads, skip=leads)
        # An older client would assign if it were the leader: name the old leader instead (KIP-814).
        else:
            answer = joined(group, member, with_members=False, leader=old_leader)
        out.reply(ticket, answer, lambda error: Joined(error=error))
