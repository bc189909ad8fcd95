"""Requests of members that speak the consumer protocol (KIP-848): heartbeats that join, stay and leave. Pure."""

from collections.abc import Callable
from dataclasses import replace

from moldau.coordinators.consumer.changes import GroupChanges, HeartbeatRefused
from moldau.coordinators.consumer.departures import Departures
from moldau.coordinators.consumer.group import LEAVES_FOR_NOW, ConsumerGroup, ConsumerMember, Phase, current_of
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinators.consumer.records import ConsumerRecordType
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.errors import ErrorCode
from moldau.names import counted


class ConsumerMembers:
    """`new_id` returns a string that it has never returned before."""

    def __init__(self, states: GroupStates, changes: GroupChanges, departures: Departures, new_id: Callable[[], str]):
        self._states = states
        self._changes = changes
        self._departures = departures
        self._new_id = new_id

    def beat(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        """ConsumerGroupHeartbeat; the answer is a `ConsumerHeartbeatReply`."""
        out = Decision()
        try:
            answer = self._leave(ask, now, out) if ask.epoch < 0 else self.stay(ask, now, out)
        except HeartbeatRefused as refused:
            assert not out.records
            out.reply(ticket, ConsumerHeartbeatReply(error=refused.code, message=refused.message))
            return out
        except Exception:  # the decision is half made: take it back
            self._states.undo(now)
            raise
        out.reply(ticket, answer, lambda error: ConsumerHeartbeatReply(error=error))
        return self._states.conclude(out, now)

    def stay(self, ask: ConsumerHeartbeat, now: Now, out: Decision) -> ConsumerHeartbeatReply:
        """Decide about a heartbeat that does not leave. Raises `HeartbeatRefused`; then nothing is decided."""
        joins = ask.epoch == 0
        group = self._states.live.get(ask.group_id)
        if group is None:
            if not joins:
                raise _no_group(ask)
            group = ConsumerGroup(ask.group_id)
        if ask.member_id not in group.members and len(group.members) >= self._changes.settings.max_size:
            message = f"The group already has {counted(len(group.members), 'member')}."
            raise HeartbeatRefused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        member, replaced = self._member(group, ask, joins)
        if member.phase is Phase.UNKNOWN and ask.owned != {}:
            message = "A newer broker wrote the member's state: the member has to join again."
            raise HeartbeatRefused(ErrorCode.FENCED_MEMBER_EPOCH, message)
        updated = _updated(member, ask)
        if updated.expression and updated.expression != member.expression:
            self._changes.check_expression(updated.expression)
        self._states.live[ask.group_id] = group
        return self._changes.update(group, member, updated, replaced, ask, now, out)

    def _member(
        self, group: ConsumerGroup, ask: ConsumerHeartbeat, joins: bool
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """The member that sent the heartbeat, and the static member that it replaces, if any."""
        # Dynamic members are known by their member id.
        if ask.instance_id is None:
            member = group.members.get(ask.member_id)
            if member is None:
                if not joins:
                    raise _no_member(ask)
                return ConsumerMember(ask.member_id or self._new_id()), None
            _check_epoch(member, ask)
            return member, None
        # Static members are known by their instance id, which a new member id takes over only once it is released.
        member = group.static_member(ask.instance_id)
        if joins:
            if member is None:
                known = group.members.get(ask.member_id)
                return known or ConsumerMember(ask.member_id or self._new_id()), None
            # It has missed the answer to its join, or was fenced: nobody else has its member id.
            if member.member_id == ask.member_id and member.epoch != LEAVES_FOR_NOW:
                return member, None
            if member.epoch != LEAVES_FOR_NOW and member.classic is None:
                message = f"{member.member_id} still holds {ask.instance_id}."
                raise HeartbeatRefused(ErrorCode.UNRELEASED_INSTANCE_ID, message)
            member_id = ask.member_id or self._new_id()
            return replace(member, member_id=member_id, epoch=0, previous_epoch=0), member
        member = _checked_instance(member, ask)
        _check_epoch(member, ask)
        return member, None

    def _leave(self, ask: ConsumerHeartbeat, now: Now, out: Decision) -> ConsumerHeartbeatReply:
        group = self._states.live.get(ask.group_id)
        if group is None:
            raise _no_group(ask)
        if ask.instance_id is None:
            member = group.members.get(ask.member_id)
            if member is None:
                raise _no_member(ask)
        else:
            member = _checked_instance(group.static_member(ask.instance_id), ask)
        # A static member that leaves for now keeps its partitions until its session ends.
        if ask.epoch == LEAVES_FOR_NOW:
            kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
            away = replace(member, epoch=LEAVES_FOR_NOW, assigned=kept, revoking={})
            self._states.write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(away), out)
        else:
            self._departures.fence(group, [member], now, out)
        return ConsumerHeartbeatReply(member_id=ask.member_id, epoch=ask.epoch)


def _updated(member: ConsumerMember, ask: ConsumerHeartbeat) -> ConsumerMember:
    """The member with what the heartbeat says about it."""
    unchanged = ask.instance_id is None and ask.rack_id is None and ask.rebalance_timeout_ms < 0
    unchanged = unchanged and ask.topics is None and ask.expression is None and ask.assignor is None
    same_client = (ask.client_id, ask.client_host) == (member.client_id, member.client_host)
    if unchanged and same_client and member.classic is None:
        return member
    return replace(
        member,
        instance_id=member.instance_id if ask.instance_id is None else ask.instance_id,
        rack_id=member.rack_id if ask.rack_id is None else ask.rack_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if ask.rebalance_timeout_ms < 0 else ask.rebalance_timeout_ms,
        assignor=member.assignor if ask.assignor is None else ask.assignor,
        topics=member.topics if ask.topics is None else tuple(sorted(set(ask.topics))),
        expression=member.expression if ask.expression is None else ask.expression,
        classic=None,
    )


def _check_epoch(member: ConsumerMember, ask: ConsumerHeartbeat) -> None:
    """A member may be one epoch behind if it missed an answer, and owns no partition that is not assigned to it."""
    if ask.epoch in (0, member.epoch):
        return
    behind = ask.epoch == member.previous_epoch and ask.owned is not None
    if behind and all(
        partitions <= member.assigned.get(topic, {}).keys() for topic, partitions in (ask.owned or {}).items()
    ):
        return
    message = f"The member is at epoch {member.epoch}, not {ask.epoch}: it has to join again."
    raise HeartbeatRefused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _checked_instance(member: ConsumerMember | None, ask: ConsumerHeartbeat) -> ConsumerMember:
    if member is None:
        message = f"No member has the instance id {ask.instance_id}."
        raise HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, message)
    if member.member_id != ask.member_id:
        message = f"{member.member_id} has the instance id {ask.instance_id} now."
        raise HeartbeatRefused(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def _no_group(ask: ConsumerHeartbeat) -> HeartbeatRefused:
    return HeartbeatRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {ask.group_id} does not exist.")


def _no_member(ask: ConsumerHeartbeat) -> HeartbeatRefused:
    message = f"{ask.member_id} is not a member of {ask.group_id}."
    return HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, message)
