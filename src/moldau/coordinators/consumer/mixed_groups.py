"""Groups of the newer protocol some of whose members still speak the classic one (KIP-848), and how a group becomes one
and stops being one. Pure.

A classic member joins as often as there is something new for it, and hears so from its heartbeats: the group's epoch is
its generation, nobody leads, and what it syncs is what the server's assignor gave it. It is out if it does not join, or
sync, within its rebalance timeout. When the last member of the newer protocol goes, the group is classic again, which
whoever runs the classic ones takes over (`turned`). Source: KIP-848, and the answers of Apache Kafka 4.3.
"""

from dataclasses import replace

from moldau.coordinators.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from moldau.coordinators.classic.messages import Join, Joined, Sync, Synced
from moldau.coordinators.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
    ConsumerMember,
    Phase,
    current_of,
    metadata_of,
    target_of,
)
from moldau.coordinators.consumer.groups import SESSION, ConsumerGroups, HeartbeatRefused
from moldau.coordinators.consumer.messages import ConsumerHeartbeat
from moldau.coordinators.consumer.migration import (
    CannotMigrate,
    assignment_for,
    by_id,
    classic_group_of,
    consumer_group_of,
    metadata_of_classic,
    subscription_of,
)
from moldau.coordinators.consumer.records import ConsumerRecordType
from moldau.coordinators.consumer.target import metadata_hash
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.errors import ErrorCode
from moldau.protocol.internal import ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMetadataValue

JOINS, SYNCS = "joins", "syncs"


class JoinRefused(Exception):
    """A JoinGroup that is not taken, and the member id that the answer has."""

    def __init__(self, code: ErrorCode, member_id: str = ""):
        super().__init__(code.name)
        self.code = code
        self.member_id = member_id


class MixedGroups(ConsumerGroups):
    """`turned` are groups that are classic from now on, and whether their members have what they are to have."""

    turned: tuple[tuple[ClassicGroup, bool], ...] = ()

    # -- from members of the classic protocol

    def join(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        """A JoinGroup to a group that has members."""
        out = Decision()
        try:
            answer = self._join(self.live[ask.group_id], ask, now, out)
        except JoinRefused as refused:
            assert not out.records
            answer = Joined(error=refused.code, member_id=refused.member_id)
        out.reply(ticket, answer)
        out.refused = lambda error: [(ticket, Joined(error=error, member_id=ask.member_id))]
        return self.chained(out, now)

    def _join(self, group: ConsumerGroup, ask: Join, now: Now, out: Decision) -> Joined:
        if ask.member_id not in group.members and len(group.members) >= self.settings.max_size:
            raise JoinRefused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not _speaks(group, ask):
            raise JoinRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not ask.member_id and ask.instance_id is None and ask.can_wait_for_id:
            raise JoinRefused(ErrorCode.MEMBER_ID_REQUIRED, self._new_id())
        try:
            subscription = subscription_of(ask.protocols)
        except CannotMigrate:
            raise JoinRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        member, left = self._classic_member(group, ask)
        updated = replace(
            member,
            instance_id=ask.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            client_id=ask.client_id,
            client_host=ask.client_host,
            rebalance_timeout_ms=ask.rebalance_timeout_ms,
            topics=tuple(sorted(set(subscription.topics))),
            classic=metadata_of_classic(ask.session_timeout_ms, ask.protocols),
        )
        if left is not None:
            self._replace(group, left, member, out)
        resubscribed = self._subscribe(group, member, updated, now, out)
        self._bump(group, resubscribed, out)
        self._assign(group, now, out)
        owns = by_id(subscription.owned_partitions, self._image())
        owned = {topic: frozenset(partitions) for topic, partitions in owns.items()}
        beat = ConsumerHeartbeat(group_id=ask.group_id, member_id=member.member_id, epoch=member.epoch, owned=owned)
        beaten = self._reconcile(group, beat, member, resubscribed, now, out)
        self._deadlines.cancel((JOINS, group.group_id, member.member_id))
        self._deadlines.set((SYNCS, group.group_id, member.member_id), now.monotonic_ms + ask.rebalance_timeout_ms)
        self._turn_back(group, [], out)
        return Joined(
            member_id=member.member_id,
            generation=beaten.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol=ask.protocols[0][0],
        )

    def _classic_member(self, group: ConsumerGroup, ask: Join) -> tuple[ConsumerMember, ConsumerMember | None]:
        """Who joins, and the static member whose place it takes, if it does."""
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
        out = Decision()
        group = self.live[ask.group_id]
        error, member = self._check(group, ask.member_id, ask.instance_id, ask.generation)
        if error is ErrorCode.NONE:
            assert member is not None and member.classic is not None
            named = (ask.protocol_type, ask.protocol)
            known = (CONSUMER_PROTOCOL, member.classic.supported_protocols[0].name)
            if any(one not in (None, other) for one, other in zip(named, known, strict=True)):
                error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            elif group.target_epoch > member.epoch and member.phase is not Phase.UNREVOKED:
                self._call(group, member, now)
                error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is ErrorCode.NONE:
            assert member is not None
            self._deadlines.cancel((SYNCS, group.group_id, member.member_id))
            self._keep_alive(group, member, now)
            owned = {topic: list(partitions) for topic, partitions in member.assigned.items()}
            assignment = assignment_for(member, owned, self._image())
            out.reply(ticket, Synced(protocol_type=ask.protocol_type, protocol=ask.protocol, assignment=assignment))
        else:
            out.reply(ticket, Synced(error=error))
        out.refused = lambda refusal: [(ticket, Synced(error=refusal))]
        return self.chained(out, now)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None, now: Now) -> ErrorCode:
        """Whether there is something to join again for."""
        group = self.live[group_id]
        error, member = self._check(group, member_id, instance_id, generation)
        if member is None or error is not ErrorCode.NONE:
            return error
        self._keep_alive(group, member, now)
        due = member.epoch < group.target_epoch or member.phase is Phase.UNREVOKED
        if not due and member.phase is Phase.UNRELEASED:
            target = group.targets.get(member_id, {})
            due = not any(
                (topic, p) in group.owners
                for topic, partitions in target.items()
                for p in partitions - member.assigned.get(topic, {}).keys()
            )
        if not due:
            return ErrorCode.NONE
        self._call(group, member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _call(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """The member is told to join again, and has its rebalance timeout for that."""
        key = (JOINS, group.group_id, member.member_id)
        if key not in self._deadlines:
            self._deadlines.set(key, now.monotonic_ms + max(member.rebalance_timeout_ms, 0))

    @staticmethod
    def _check(
        group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ErrorCode, ConsumerMember | None]:
        member = group.members.get(member_id) if instance_id is None else group.static_member(instance_id)
        if member is not None and member.member_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID, None
        if member is None or member.classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, None
        return (ErrorCode.NONE if generation == member.epoch else ErrorCode.ILLEGAL_GENERATION), member

    def chained(self, out: Decision, now: Now) -> Decision:
        """An answer that waits for an earlier decision is refused in its own words if that is refused."""
        last, mine = self._last, out.refused
        waits = bool(out.replies) and not out.records
        out = super().chained(out, now)
        if waits and not out.replies and last is not None and last.refused is not None and mine is not None:
            theirs, own = last.refused, mine
            last.refused = lambda error: list({**dict(theirs(error)), **dict(own(error))}.items())
        return out

    # -- from one protocol to the other

    def check_take_over(self, group: ClassicGroup, ask: ConsumerHeartbeat) -> tuple[ErrorCode, str]:
        """Whether a classic group with members can go on to the newer protocol for this member to join it."""
        if not self.settings.can_upgrade:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"{ask.group_id} is a classic group, and is to stay one."
        if len(group.members) > self.settings.max_size:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"{ask.group_id} is a classic group of too many members."
        if len(group.members) == self.settings.max_size:
            return ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has {len(group.members)} members already."
        try:
            if ask.expression:
                self._check_expression(ask.expression)
            consumer_group_of(group, self._image())
        except HeartbeatRefused as refused:
            return refused.code, refused.message
        except CannotMigrate as reason:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"{ask.group_id} is a classic group, and {reason}."
        return ErrorCode.NONE, ""

    def take_over(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        """A classic group goes on with the newer protocol; its tombstone and the decision after it are the caller's."""
        newer = consumer_group_of(group, self._image())
        members = list(newer.members.values())
        for member in members:
            self._write(newer, ConsumerRecordType.MEMBER, member.member_id, metadata_of(member), out)
        found = metadata_hash(newer.subscribed(), self._image())
        self._write(
            newer, ConsumerRecordType.EPOCH, "", ConsumerGroupMetadataValue(epoch=newer.epoch, metadata_hash=found), out
        )
        for member in members:
            self._write(
                newer, ConsumerRecordType.TARGET, member.member_id, target_of(newer.targets[member.member_id]), out
            )
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=newer.epoch)
        self._write(newer, ConsumerRecordType.TARGET_EPOCH, "", value, out)
        for member in members:
            self._write(newer, ConsumerRecordType.CURRENT, member.member_id, current_of(member), out)
            self._keep_alive(self.live[group.group_id], member, now)

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember], out: Decision) -> None:
        if not (members and self._turn_back(group, members, out)):
            super().fence(group, members, out)

    def _turn_back(self, group: ConsumerGroup, leaving: list[ConsumerMember], out: Decision) -> bool:
        """If all who stay speak the classic protocol, the group is classic from now on."""
        gone = {member.member_id for member in leaving}
        stay = [member for member in group.members.values() if member.member_id not in gone]
        if not stay or not self.settings.can_downgrade or len(stay) > self.settings.classic_max_size:
            return False
        if any(member.classic is None for member in stay):
            return False
        try:
            classic = classic_group_of(group, stay, self._image())
        except CannotMigrate:
            return False
        settled = not leaving and group.state is ConsumerGroupState.STABLE
        for member in list(group.members.values()):
            self._remove(group, member, out)
        self.delete(group.group_id, out)
        self.turned = (*self.turned, (classic, settled))
        return True

    # -- deadlines

    def _keep_alive(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        member = group.members.get(member.member_id, member)
        if member.classic is None:
            super()._keep_alive(group, member, now)
            return
        timeout_ms = member.classic.session_timeout_ms
        self._deadlines.set((SESSION, group.group_id, member.member_id), now.monotonic_ms + timeout_ms)

    def _remove(self, group: ConsumerGroup, member: ConsumerMember, out: Decision) -> None:
        super()._remove(group, member, out)
        self._deadlines.cancel((JOINS, group.group_id, member.member_id))
        self._deadlines.cancel((SYNCS, group.group_id, member.member_id))


def _speaks(group: ConsumerGroup, ask: Join) -> bool:
    """Whether a protocol remains that all classic members speak."""
    classic = [member.classic for member in group.members.values() if member.classic is not None]
    common = [{protocol.name for protocol in one.supported_protocols} for one in classic]
    return ask.protocol_type == CONSUMER_PROTOCOL and any(
        all(name in names for names in common) for name, _ in ask.protocols
    )
