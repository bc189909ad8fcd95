"""Consumer groups (KIP-848): every decision about joining, heartbeats and leaving. Pure: time, new ids and the image of
the cluster's topics are arguments.

`stored` is what the log holds; `live` is `stored` plus the decisions whose records are not committed yet. Both change
only by `ConsumerGroup.apply`. Decisions build on one another, so they share a `DecisionChain`: if the log refuses one
of them, the later ones are not appended either, and `live` is made from `stored` again. An answer waits for all
earlier decisions: no member learns of an epoch that a crash could take back. A change of members, subscriptions or
topics bumps the group's epoch; the next heartbeat computes the target assignment for it, at most once in the group's
`consumer.assignment.interval.ms`. Source: KIP-848, and the answers of Apache Kafka 4.3.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from moldau.cluster.image import Image
from moldau.coordinators.classic.messages import Leaver, Left
from moldau.coordinators.consumer.group import (
    LEAVES_FOR_NOW,
    ConsumerGroup,
    ConsumerMember,
    Phase,
    current_of,
    expression_of,
    metadata_of,
    target_of,
)
from moldau.coordinators.consumer.messages import (
    ConsumerGroupSettings,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    DescribedConsumerGroup,
)
from moldau.coordinators.consumer.reconciling import reconciled
from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType, consumer_group_record
from moldau.coordinators.consumer.rights import described, partitions_of
from moldau.coordinators.consumer.server_assignors import ASSIGNORS
from moldau.coordinators.consumer.target import metadata_hash, new_targets, topic_ids
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, DecisionChain, Now, Replies, Ticket
from moldau.errors import ErrorCode
from moldau.protocol.internal import ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMetadataValue

SESSION, REVOKE = "session", "revoke"
Key = tuple[str, str, str]
Match = Callable[[str, Collection[str]], Collection[str] | None]
"""An expression and names of topics -> those that it matches as a whole, or None if that is not known yet and to be
asked again later. Raises `ValueError` for what is no expression."""


class HeartbeatRefused(Exception):
    """A heartbeat that is not taken; nothing has been decided."""

    def __init__(self, code: ErrorCode, message: str):
        super().__init__(message)
        self.code = code
        self.message = message


class ConsumerGroups:
    """The groups of one partition of the offsets topic."""

    def __init__(
        self, settings: ConsumerGroupSettings, new_id: Callable[[], str], image: Callable[[], Image], match: Match
    ):
        self.settings = settings
        self.stored: dict[str, ConsumerGroup] = {}
        self.live: dict[str, ConsumerGroup] = {}
        self.started = False
        self._new_id = new_id
        self._image = image
        self._match = match
        self._deadlines: Deadlines[Key] = Deadlines()
        self._chain = DecisionChain()
        self._pending = 0
        self._last: Decision | None = None

    # -- from the log

    def apply(self, record: ConsumerGroupRecord) -> None:
        """The record is committed, or read back."""
        _apply(self.stored, record)
        if self.started:
            self._pending -= 1

    def start(self, now: Now) -> Iterator[int]:
        """Replaying is over: group by group, members have one session timeout to be heard of."""
        assert not self.started
        self.started = True
        yield from self._revive(now)

    def _revive(self, now: Now) -> Iterator[int]:
        self._chain, self._pending, self._last, self.live = DecisionChain(), 0, None, {}
        for group_id, stored in self.stored.items():
            group = self.live[group_id] = stored.copy()
            for member in group.members.values():
                self._keep_alive(group, member, now)
                self._watch_revocation(group, member, now)
            yield 1 + len(group.members)

    # -- from the members

    def beat(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        out = Decision()
        try:
            answer = self._leave(ask, out) if ask.epoch < 0 else self._beat(ask, now, out)
        except HeartbeatRefused as refused:
            assert not out.records
            out.reply(ticket, ConsumerHeartbeatReply(error=refused.code, message=refused.message))
            return out
        except Exception:  # the decision is half made: take it back
            self._undo(now)
            raise
        out.reply(ticket, answer)
        return self.chained(out, now)

    def chained(self, out: Decision, now: Now) -> Decision:
        """The decision is made: it stands or falls with those before it, and its answers wait for them."""
        if not out.records:
            if self._pending and self._last is not None:
                self._last.replies += out.replies
                out.replies = []
            return out
        chain, before = self._chain, out.refused

        def refused(error: ErrorCode) -> Replies:
            if not chain.broken:
                self._undo(now)
            replies: dict[Ticket, Any] = {ticket: ConsumerHeartbeatReply(error=error) for ticket, _ in out.replies}
            if before is not None:
                replies.update(before(error))
            return list(replies.items())

        out.chain, out.refused, self._last = chain, refused, out
        return out

    def _undo(self, now: Now) -> None:
        """Nothing that is not in the log was decided."""
        self._chain.broken = True
        for _ in self._revive(now):
            pass

    def _beat(self, ask: ConsumerHeartbeat, now: Now, out: Decision) -> ConsumerHeartbeatReply:
        joins = ask.epoch == 0
        group = self.live.get(ask.group_id)
        if group is None:
            if not joins:
                raise HeartbeatRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {ask.group_id}.")
            group = ConsumerGroup(ask.group_id)
        if ask.member_id not in group.members and len(group.members) >= self.settings.max_size:
            raise HeartbeatRefused(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has {len(group.members)} members already."
            )
        member, left = self._member(group, ask, joins)
        if member.phase is Phase.UNKNOWN and ask.owned != {}:
            raise HeartbeatRefused(
                ErrorCode.FENCED_MEMBER_EPOCH, "A newer broker left the member: it has to join again."
            )
        updated = _updated(member, ask)
        if updated.expression and updated.expression != member.expression:
            self._check_expression(updated.expression)
        self.live[ask.group_id] = group
        if left is not None:
            self._replace(group, left, member, out)
        resubscribed = self._subscribe(group, member, updated, now, out)
        self._bump(group, resubscribed, out)
        self._assign(group, now, out)
        return self._reconcile(group, ask, member, resubscribed, now, out)

    def _member(
        self, group: ConsumerGroup, ask: ConsumerHeartbeat, joins: bool
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """Who asks, and the static member whose place it takes, if it does."""
        if ask.instance_id is None:
            member = group.members.get(ask.member_id)
            if member is None:
                if not joins:
                    raise HeartbeatRefused(
                        ErrorCode.UNKNOWN_MEMBER_ID, f"{ask.member_id} is no member of {ask.group_id}."
                    )
                return ConsumerMember(ask.member_id or self._new_id()), None
            _check_epoch(member, ask)
            return member, None
        member = group.static_member(ask.instance_id)
        if joins:
            if member is None:
                known = group.members.get(ask.member_id)
                return known or ConsumerMember(ask.member_id or self._new_id()), None
            if member.epoch != LEAVES_FOR_NOW and member.classic is None:
                raise HeartbeatRefused(
                    ErrorCode.UNRELEASED_INSTANCE_ID, f"{member.member_id} still holds {ask.instance_id}."
                )
            member_id = ask.member_id or self._new_id()
            return replace(member, member_id=member_id, epoch=0, previous_epoch=0), member
        _check_instance(member, ask)
        assert member is not None
        _check_epoch(member, ask)
        return member, None

    def _check_expression(self, expression: str) -> None:
        try:
            self._match(expression, ())
        except ValueError as error:
            raise HeartbeatRefused(
                ErrorCode.INVALID_REGULAR_EXPRESSION, f"{expression!r} cannot be read: {error}."
            ) from None

    def _replace(self, group: ConsumerGroup, left: ConsumerMember, member: ConsumerMember, out: Decision) -> None:
        """A static member is back: what its last life had is its own."""
        target = group.targets.get(left.member_id, {})
        self._remove(group, left, out)
        self._write(group, ConsumerRecordType.MEMBER, member.member_id, metadata_of(member), out)
        self._write(group, ConsumerRecordType.TARGET, member.member_id, target_of(target), out)
        self._write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(member), out)

    def _subscribe(
        self, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember, now: Now, out: Decision
    ) -> bool:
        """The member says what is written here from now on; whether it reads other topics than before."""
        if updated.member_id not in group.members or updated != member:
            self._write(group, ConsumerRecordType.MEMBER, updated.member_id, metadata_of(updated), out)
        changed = updated.topics != member.topics or updated.expression != member.expression
        if member.expression != updated.expression:
            self._forget_expression(group, member.expression, out)
        return self._resolve(group, updated.expression, now, out) or changed

    def _resolve(self, group: ConsumerGroup, expression: str, now: Now, out: Decision) -> bool:
        """Look which topics the members' expressions match, where that may have changed; whether it has. What is not
        known yet stays as it was, and is looked at again with the next heartbeat."""
        image = self._image()
        expressions = [expression] if expression else []
        if group.checked is not image:
            expressions = [*{member.expression: None for member in group.members.values() if member.expression}]
        changed, unknown = False, False
        for expression in expressions:
            if group.resolved.get(expression) is image:
                continue
            try:
                found = self._match(expression, image.topics)
            except ValueError:  # one that another broker took
                found = ()
            if found is None:
                unknown = True
                continue
            topics = tuple(sorted(found))
            if group.expressions.get(expression) != topics:
                self._write(group, ConsumerRecordType.EXPRESSION, expression, expression_of(topics, now.wall_ms), out)
                changed = True
            group.resolved[expression] = image
        if group.checked is not image:
            group.is_behind = unknown
        return changed

    def _forget_expression(self, group: ConsumerGroup, expression: str, out: Decision) -> None:
        if expression and expression in group.expressions and not group.uses(expression):
            self._write(group, ConsumerRecordType.EXPRESSION, expression, None, out)

    def _bump(self, group: ConsumerGroup, changed: bool, out: Decision) -> None:
        image = self._image()
        if not changed and group.checked is image:
            return
        found = metadata_hash(group.subscribed(), image)
        group.checked = None if group.is_behind else image
        if changed or found != group.metadata_hash:
            self._write_epoch(group, found, out)
        if group.has_topics_record:
            self._write(group, ConsumerRecordType.TOPICS, "", None, out)

    def _write_epoch(self, group: ConsumerGroup, found: int, out: Decision) -> None:
        self._write(
            group,
            ConsumerRecordType.EPOCH,
            "",
            ConsumerGroupMetadataValue(epoch=group.epoch + 1, metadata_hash=found),
            out,
        )

    def _assign(self, group: ConsumerGroup, now: Now, out: Decision) -> None:
        """Compute the target for the group's epoch, unless it is there or another was computed just now."""
        if group.target_epoch >= group.epoch:
            return
        interval_ms = self.settings.of_group(group.group_id).consumer_assignment_interval_ms
        if group.target_stamp_ms and interval_ms and now.wall_ms < group.target_stamp_ms + interval_ms:
            return
        assign = ASSIGNORS[self.assignor(group)]
        for member_id, target in new_targets(group, assign, self._image()).items():
            if group.targets.get(member_id) != target:
                self._write(group, ConsumerRecordType.TARGET, member_id, target_of(target), out)
        value = ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=group.epoch, assignment_timestamp=now.wall_ms
        )
        self._write(group, ConsumerRecordType.TARGET_EPOCH, "", value, out)

    def _reconcile(
        self,
        group: ConsumerGroup,
        ask: ConsumerHeartbeat,
        before: ConsumerMember,
        resubscribed: bool,
        now: Now,
        out: Decision,
    ) -> ConsumerHeartbeatReply:
        member = group.members[before.member_id]
        image = self._image()
        after = reconciled(
            member,
            group.target_epoch,
            group.targets.get(member.member_id, {}),
            lambda: topic_ids(group.topics_of(member), image),
            lambda topic, partition: group.owners.get((topic, partition)),
            ask.owned,
            resubscribed=resubscribed,
        )
        if after != member:
            self._write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(after), out)
            self._watch_revocation(group, after, now)
        self._keep_alive(group, after, now)
        changed = ask.is_full or partitions_of(before) != partitions_of(after)
        return ConsumerHeartbeatReply(
            member_id=after.member_id,
            epoch=after.epoch,
            heartbeat_interval_ms=self.settings.of_group(group.group_id).consumer_heartbeat_interval_ms,
            assignment=partitions_of(after) if changed else None,
        )

    def _leave(self, ask: ConsumerHeartbeat, out: Decision) -> ConsumerHeartbeatReply:
        group = self.live.get(ask.group_id)
        if group is None:
            raise HeartbeatRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {ask.group_id}.")
        if ask.instance_id is None:
            member = group.members.get(ask.member_id)
            if member is None:
                raise HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"{ask.member_id} is no member of {ask.group_id}.")
        else:
            member = group.static_member(ask.instance_id)
            _check_instance(member, ask)
            assert member is not None
        if ask.epoch == LEAVES_FOR_NOW:
            kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
            away = replace(member, epoch=LEAVES_FOR_NOW, assigned=kept, revoking={})
            self._write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(away), out)
        else:
            self.fence(group, [member], out)
        return ConsumerHeartbeatReply(member_id=ask.member_id, epoch=ask.epoch)

    def leave(self, group_id: str, leavers: list[Leaver], ticket: Ticket, now: Now) -> Decision:
        """A LeaveGroup of the classic protocol; an administrator takes members out with it."""
        out, group, errors = Decision(), self.live[group_id], []
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
        self.fence(group, list(leaving.values()), out)
        out.refused = lambda error: [(ticket, Left(error))]
        out.reply(ticket, Left(ErrorCode.NONE, errors))
        return self.chained(out, now)

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember], out: Decision) -> None:
        """The members are out; what they had is free once the others hear of the next epoch."""
        for member in members:
            self._remove(group, member, out)
        for expression in dict.fromkeys(member.expression for member in members):
            self._forget_expression(group, expression, out)
        if members:
            self._write_epoch(group, metadata_hash(group.subscribed(), self._image()), out)

    def _remove(self, group: ConsumerGroup, member: ConsumerMember, out: Decision) -> None:
        for kind in (ConsumerRecordType.CURRENT, ConsumerRecordType.TARGET, ConsumerRecordType.MEMBER):
            self._write(group, kind, member.member_id, None, out)
        self._deadlines.cancel((SESSION, group.group_id, member.member_id))
        self._deadlines.cancel((REVOKE, group.group_id, member.member_id))

    def _write(self, group: ConsumerGroup, kind: ConsumerRecordType, name: str, value: Any, out: Decision) -> None:
        record = ConsumerGroupRecord(kind, group.group_id, name, value)
        out.records.append(consumer_group_record(record))
        self._pending += 1
        _apply(self.live, record)

    # -- from others

    def assignor(self, group: ConsumerGroup) -> str:
        """The assignor of a group: members' choice of those there are."""
        chosen = group.assignor(self.settings.assignors[0])
        return chosen if chosen in self.settings.assignors else self.settings.assignors[0]

    def delete(self, group_id: str, out: Decision) -> None:
        """Delete an empty group; the decision is still to be `chained`."""
        group = self.live[group_id]
        assert not group.members
        for expression in list(group.expressions):
            self._write(group, ConsumerRecordType.EXPRESSION, expression, None, out)
        if group.has_topics_record:
            self._write(group, ConsumerRecordType.TOPICS, "", None, out)
        self._write(group, ConsumerRecordType.TARGET_EPOCH, "", None, out)
        self._write(group, ConsumerRecordType.EPOCH, "", None, out)

    def describe(self, group_id: str) -> DescribedConsumerGroup | None:
        """What is stored of a group; None for one that is not there."""
        group = self.stored.get(group_id)
        return None if group is None else described(group, self.assignor(group))

    def next_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def tick(self, now: Now) -> Decision | None:
        """Deal with the first deadline that has passed; None if none has."""
        key = self._deadlines.take(now.monotonic_ms)
        if key is None:
            return None
        out = Decision()
        what, group_id, member_id = key
        group = self.live.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None:
            return out
        if what != REVOKE or (member.phase is Phase.UNREVOKED and member.epoch >= 0):
            self.fence(group, [member], out)
        return self.chained(out, now)

    def _keep_alive(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        timeout_ms = self.settings.of_group(group.group_id).consumer_session_timeout_ms
        self._deadlines.set((SESSION, group.group_id, member.member_id), now.monotonic_ms + timeout_ms)

    def _watch_revocation(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        key = (REVOKE, group.group_id, member.member_id)
        if member.phase is Phase.UNREVOKED:
            self._deadlines.set(key, now.monotonic_ms + max(member.rebalance_timeout_ms, 0))
        else:
            self._deadlines.cancel(key)


def _apply(groups: dict[str, ConsumerGroup], record: ConsumerGroupRecord) -> None:
    group = groups.get(record.group)
    if record.kind is ConsumerRecordType.EPOCH and record.value is None:
        groups.pop(record.group, None)
    elif group is not None:
        group.apply(record)
    elif record.value is not None:
        group = groups[record.group] = ConsumerGroup(record.group)
        group.apply(record)


def _updated(member: ConsumerMember, ask: ConsumerHeartbeat) -> ConsumerMember:
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
    """A member may be one epoch behind if an answer got lost: then it owns nothing that is not its own."""
    if ask.epoch in (0, member.epoch):
        return
    behind = ask.epoch == member.previous_epoch and ask.owned is not None
    if behind and all(
        partitions <= member.assigned.get(topic, {}).keys() for topic, partitions in (ask.owned or {}).items()
    ):
        return
    raise HeartbeatRefused(
        ErrorCode.FENCED_MEMBER_EPOCH, f"The member is at epoch {member.epoch}, not {ask.epoch}: it has to join again."
    )


def _check_instance(member: ConsumerMember | None, ask: ConsumerHeartbeat) -> None:
    if member is None:
        raise HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"No member has the instance id {ask.instance_id}.")
    if member.member_id != ask.member_id:
        raise HeartbeatRefused(
            ErrorCode.FENCED_INSTANCE_ID, f"{member.member_id} has the instance id {ask.instance_id} now."
        )
