"""Requests of members that speak the classic protocol to a consumer group (KIP-848). Pure.

The group's epoch is such a member's generation, no member leads, and SyncGroup answers what the server's assignor
assigned. A heartbeat tells the member to rejoin whenever its assignment changes. A member that does not rejoin, or does
not sync, within its rebalance timeout is fenced. Source: KIP-848, and the answers of Apache Kafka 4.3.
"""

from collections.abc import Callable
from dataclasses import replace

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.group import CONSUMER_PROTOCOL
from moldau.coordinators.classic.messages import Join, Joined, Leaver, Left, Sync, Synced
from moldau.coordinators.consumer.changes import GroupChanges
from moldau.coordinators.consumer.departures import Departures
from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember, Phase
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.member_deadlines import MemberDeadlines
from moldau.coordinators.consumer.messages import ConsumerHeartbeat
from moldau.coordinators.consumer.migration import (
    CannotMigrate,
    assignment_for,
    by_id,
    metadata_of_classic,
    subscription_of,
)
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.errors import ErrorCode


class JoinRefused(Exception):
    """A JoinGroup is refused; the answer has this member id."""

    def __init__(self, code: ErrorCode, member_id: str = ""):
        super().__init__(code.name)
        self.code = code
        self.member_id = member_id


class ClassicMembers:
    """`new_id` returns a string that it has never returned before. Every group that is named must exist."""

    def __init__(
        self,
        states: GroupStates,
        changes: GroupChanges,
        departures: Departures,
        deadlines: MemberDeadlines,
        image: Callable[[], Image],
        new_id: Callable[[], str],
    ):
        self._states = states
        self._changes = changes
        self._departures = departures
        self._deadlines = deadlines
        self._image = image
        self._new_id = new_id

    def join(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        """JoinGroup to a group with members; the answer is a `Joined`."""
        out = Decision()
        try:
            answer = self._join(self._states.live[ask.group_id], ask, now, out)
        except JoinRefused as refused:
            assert not out.records
            answer = Joined(error=refused.code, member_id=refused.member_id)
        out.reply(ticket, answer, lambda error: Joined(error=error, member_id=ask.member_id))
        return self._states.conclude(out, now)

    def _join(self, group: ConsumerGroup, ask: Join, now: Now, out: Decision) -> Joined:
        if ask.member_id not in group.members and len(group.members) >= self._changes.settings.max_size:
            raise JoinRefused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not _supports(group, ask):
            raise JoinRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not ask.member_id and ask.instance_id is None and ask.can_wait_for_id:
            raise JoinRefused(ErrorCode.MEMBER_ID_REQUIRED, self._new_id())
        try:
            subscription = subscription_of(ask.protocols)
        except CannotMigrate:
            raise JoinRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        member, replaced = self._member(group, ask)
        updated = replace(
            member,
            instance_id=ask.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            client_id=ask.client_id,
            client_host=ask.client_host,
            rebalance_timeout_ms=ask.rebalance_timeout_ms,
            topics=tuple(sorted(set(subscription.topics))),
            expression="",  # the classic protocol has none; Kafka keeps the assignor, and the rack unless it is named
            classic=metadata_of_classic(ask.session_timeout_ms, ask.protocols),
        )
        # To the group a JoinGroup is a heartbeat of the member's epoch, with the partitions it says it owns.
        owns = by_id(subscription.owned_partitions, self._image())
        owned = {topic: frozenset(partitions) for topic, partitions in owns.items()}
        beat = ConsumerHeartbeat(
            group_id=ask.group_id, member_id=member.member_id, epoch=member.epoch, owned=owned, may_see=ask.may_see
        )
        reply = self._changes.update(group, member, updated, replaced, beat, now, out)
        self._deadlines.expect_sync(group, member.member_id, ask.rebalance_timeout_ms, now)
        self._departures.downgrade(group, [], now, out)
        return Joined(
            member_id=member.member_id,
            generation=reply.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol=ask.protocols[0][0],
        )

    def _member(self, group: ConsumerGroup, ask: Join) -> tuple[ConsumerMember, ConsumerMember | None]:
        """The member that joins, and the static member that it replaces, if any."""
        if ask.instance_id is None:
            member_id = ask.member_id or self._new_id()
            return group.members.get(member_id) or ConsumerMember(member_id), None
        member = group.static_member(ask.instance_id)
        if not ask.member_id:
            new = ConsumerMember(self._new_id())
            if member is None:
                return new, None
            return replace(member, member_id=new.member_id, epoch=0, previous_epoch=0), member
        if member is None:
            raise JoinRefused(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.member_id != ask.member_id:
            raise JoinRefused(ErrorCode.FENCED_INSTANCE_ID)
        return member, None

    def sync(self, ask: Sync, ticket: Ticket, now: Now) -> Decision:
        """SyncGroup; the answer is a `Synced`."""
        out = Decision()
        answer = self._sync(self._states.live[ask.group_id], ask, now)
        out.reply(ticket, answer, lambda error: Synced(error=error))
        return self._states.conclude(out, now)

    def _sync(self, group: ConsumerGroup, ask: Sync, now: Now) -> Synced:
        error, member = _check(group, ask.member_id, ask.instance_id, ask.generation)
        if member is None or error is not ErrorCode.NONE:
            return Synced(error=error)
        assert member.classic is not None
        named = (ask.protocol_type, ask.protocol)
        known = (CONSUMER_PROTOCOL, member.classic.supported_protocols[0].name)
        if any(one not in (None, other) for one, other in zip(named, known, strict=True)):
            return Synced(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        # A newer target exists: the member rejoins for it, unless it still has partitions to revoke.
        if group.target_epoch > member.epoch and member.phase is not Phase.UNREVOKED:
            self._deadlines.expect_join(group, member, now)
            return Synced(error=ErrorCode.REBALANCE_IN_PROGRESS)
        self._deadlines.synced(group, member.member_id)
        self._deadlines.keep_alive(group, member, now)
        owned = {topic: list(partitions) for topic, partitions in member.assigned.items()}
        assignment = assignment_for(member, owned, self._image())
        return Synced(protocol_type=ask.protocol_type, protocol=ask.protocol, assignment=assignment)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now) -> ErrorCode:
        """Heartbeat; REBALANCE_IN_PROGRESS tells the member to rejoin."""
        group = self._states.live[group_id]
        error, member = _check(group, member_id, instance_id, generation)
        if member is None or error is not ErrorCode.NONE:
            return error
        self._deadlines.keep_alive(group, member, now)
        due = member.epoch < group.target_epoch or member.phase is Phase.UNREVOKED
        # The member waits for partitions of others: it rejoins once all of them have been revoked.
        if not due and member.phase is Phase.UNRELEASED:
            target = group.targets.get(member_id, {})
            due = not any(
                (topic, p) in group.owners
                for topic, partitions in target.items()
                for p in partitions - member.assigned.get(topic, {}).keys()
            )
        if not due:
            return ErrorCode.NONE
        self._deadlines.expect_join(group, member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision:
        """LeaveGroup; an administrator removes members of either protocol with it. The answer is a `Left`."""
        out, group, errors = Decision(), self._states.live[group_id], []
        leaving: dict[str, ConsumerMember] = {}
        for leaver in leavers:
            by_instance = leaver.instance_id is not None
            member = (
                group.static_member(leaver.instance_id or "") if by_instance else group.members.get(leaver.member_id)
            )
            if member is None:
                errors.append(ErrorCode.UNKNOWN_MEMBER_ID)
            elif leaver.member_id not in ("", member.member_id):
                errors.append(ErrorCode.FENCED_INSTANCE_ID)
            else:
                errors.append(ErrorCode.NONE)
                leaving[member.member_id] = member
        self._departures.fence(group, list(leaving.values()), now, out)
        out.reply(ticket, Left(ErrorCode.NONE, errors), Left)
        return self._states.conclude(out, now)


def _check(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ErrorCode, ConsumerMember | None]:
    member = group.members.get(member_id) if instance_id is None else group.static_member(instance_id)
    if member is not None and member.member_id != member_id:
        return ErrorCode.FENCED_INSTANCE_ID, None
    if member is None or member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID, None
    return (ErrorCode.NONE if generation == member.epoch else ErrorCode.ILLEGAL_GENERATION), member


def _supports(group: ConsumerGroup, ask: Join) -> bool:
    """Whether all classic members, with this one, have a protocol in common."""
    classic = [member.classic for member in group.members.values() if member.classic is not None]
    common = [{protocol.name for protocol in one.supported_protocols} for one in classic]
    return ask.protocol_type == CONSUMER_PROTOCOL and any(
        all(name in names for names in common) for name, _ in ask.protocols
    )
