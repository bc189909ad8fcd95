"""The steps by which a request of a member changes a consumer group, whichever protocol the member speaks. Pure.

A change of members, subscriptions or topics bumps the group's epoch (`bump`). The next request computes the target
assignment for it (`assign`), at most once in the group's `consumer.assignment.interval.ms`, and moves its own member
towards the target (`reconcile`). Every step writes records into the decision that is being made.
"""

from collections.abc import Callable, Collection
from typing import TypeAlias

from moldau.cluster.state.image import Image
from moldau.coordinators.consumer.group import (
    ConsumerGroup,
    ConsumerMember,
    current_of,
    expression_of,
    metadata_of,
    target_of,
)
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.member_deadlines import MemberDeadlines
from moldau.coordinators.consumer.messages import ConsumerGroupSettings, ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinators.consumer.reconciling import reconciled
from moldau.coordinators.consumer.records import ConsumerRecordType
from moldau.coordinators.consumer.rights import partitions_of
from moldau.coordinators.consumer.server_assignors import ASSIGNORS
from moldau.coordinators.consumer.target import metadata_hash, new_targets, topic_ids
from moldau.coordinators.decision import Decision, Now
from moldau.coordinators.ports import MaySee
from moldau.errors import ErrorCode
from moldau.protocol.internal import ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMetadataValue

Match: TypeAlias = Callable[[str, Collection[str]], Collection[str] | None]
"""An expression and topic names -> the names that the whole expression matches; None if they are not known yet: ask
again later. Raises `ValueError` for an invalid expression."""


LOOKED_AT_MAX = 10_000
"""The most topics that a heartbeat looks at whether its sender may describe them, behind those of a first expression: a
few milliseconds."""


class Visible:
    """Of the topics that expressions match, those that the sender of a heartbeat may describe, in Kafka's way: the
    others are left out. What an expression matches is shared by all members that subscribe with it."""

    def __init__(self, may_see: MaySee | None):
        self._may_see = may_see
        self._left = LOOKED_AT_MAX
        self._is_first = True

    def of(self, matched: Collection[str] | None) -> Collection[str] | None:
        """None if that is not known yet, as for `Match`."""
        if self._may_see is None or not matched:
            return matched
        self._left -= len(matched)
        if self._left < 0 and not self._is_first:
            return None
        self._is_first = False
        return [name for name in matched if self._may_see(name)]


class HeartbeatRefused(Exception):
    """A heartbeat is refused; nothing has been decided."""

    def __init__(self, code: ErrorCode, message: str):
        super().__init__(message)
        self.code = code
        self.message = message


class GroupChanges:
    """`image` returns the cluster's current topics."""

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        states: GroupStates,
        deadlines: MemberDeadlines,
        image: Callable[[], Image],
        match: Match,
    ):
        self.settings = settings
        self._states = states
        self._deadlines = deadlines
        self._image = image
        self._match = match

    def check_expression(self, expression: str) -> None:
        """Raises `HeartbeatRefused` for an invalid expression."""
        try:
            self._match(expression, ())
        except ValueError as error:
            message = f"The expression {expression!r} is invalid: {error}."
            raise HeartbeatRefused(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None

    def update(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        updated: ConsumerMember,
        replaced: ConsumerMember | None,
        ask: ConsumerHeartbeat,
        now: Now,
        out: Decision,
    ) -> ConsumerHeartbeatReply:
        """The member is now `updated`, and was `before`; it takes the place of the static member `replaced`, if any."""
        if replaced is not None:
            self._replace(group, replaced, before, out)
        resubscribed = self._subscribe(group, before, updated, Visible(ask.may_see), now, out)
        self._bump(group, resubscribed, out)
        self._assign(group, now, out)
        return self._reconcile(group, ask, before, resubscribed, now, out)

    def _replace(self, group: ConsumerGroup, replaced: ConsumerMember, member: ConsumerMember, out: Decision) -> None:
        """A static member is back: it keeps its target and its partitions."""
        target = group.targets.get(replaced.member_id, {})
        self.remove(group, replaced, out)
        self._states.write(group, ConsumerRecordType.MEMBER, member.member_id, metadata_of(member), out)
        self._states.write(group, ConsumerRecordType.TARGET, member.member_id, target_of(target), out)
        self._states.write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(member), out)

    def _subscribe(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        updated: ConsumerMember,
        visible: Visible,
        now: Now,
        out: Decision,
    ) -> bool:
        """Write what is new about the member; returns whether the topics changed that the group subscribes to. An
        expression that is dropped counts as a change, as in Kafka, and one that matches no other topics does not."""
        topics = set(group.topics_of(before))
        if updated.member_id not in group.members or updated != before:
            self._states.write(group, ConsumerRecordType.MEMBER, updated.member_id, metadata_of(updated), out)
        if before.expression != updated.expression:
            self.forget_expression(group, before.expression, out)
        resolved = self._resolve(group, updated.expression, visible, now, out)
        dropped = bool(before.expression) and not updated.expression
        return resolved or dropped or updated.topics != before.topics or set(group.topics_of(updated)) != topics

    def _resolve(self, group: ConsumerGroup, expression: str, visible: Visible, now: Now, out: Decision) -> bool:
        """Match the expressions for which topics may have changed; returns whether a result changed.

        Results that are not known yet stay as they were, until the next heartbeat asks again.
        """
        image = self._image()
        expressions = [expression] if expression else []
        if group.checked is not image:
            expressions = [*{member.expression: None for member in group.members.values() if member.expression}]
        changed, unknown = False, False
        for expression in expressions:
            if group.resolved.get(expression) is image:
                continue
            try:
                matched = visible.of(self._match(expression, image.topics))
            except ValueError:  # another broker accepted it
                matched = ()
            if matched is None:
                unknown = True
                continue
            topics = tuple(sorted(matched))
            if group.expressions.get(expression) != topics:
                value = expression_of(topics, now.wall_ms)
                changed = changed or topics != group.expressions.get(expression, ())
                self._states.write(group, ConsumerRecordType.EXPRESSION, expression, value, out)
            group.resolved[expression] = image
        if group.checked is not image:
            group.is_behind = unknown
        return changed

    def forget_expression(self, group: ConsumerGroup, expression: str, out: Decision) -> None:
        """Delete the topics of an expression that no member uses any more."""
        if expression and expression in group.expressions and not group.uses(expression):
            self._states.write(group, ConsumerRecordType.EXPRESSION, expression, None, out)

    def _bump(self, group: ConsumerGroup, changed: bool, out: Decision) -> None:
        image = self._image()
        if not changed and group.checked is image:
            return
        topics_hash = metadata_hash(group.subscribed(), image)
        group.checked = None if group.is_behind else image
        if changed or topics_hash != group.metadata_hash:
            self._write_epoch(group, topics_hash, out)
        if group.has_topics_record:
            self._states.write(group, ConsumerRecordType.TOPICS, "", None, out)

    def bump(self, group: ConsumerGroup, out: Decision) -> None:
        """The group's members changed: the next epoch begins. If none is left, its target is known: nothing."""
        self._write_epoch(group, metadata_hash(group.subscribed(), self._image()), out)
        if not group.members:
            value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.epoch)
            self._states.write(group, ConsumerRecordType.TARGET_EPOCH, "", value, out)

    def _write_epoch(self, group: ConsumerGroup, topics_hash: int, out: Decision) -> None:
        value = ConsumerGroupMetadataValue(epoch=group.epoch + 1, metadata_hash=topics_hash)
        self._states.write(group, ConsumerRecordType.EPOCH, "", value, out)

    def _assign(self, group: ConsumerGroup, now: Now, out: Decision) -> None:
        """Compute the target for the group's epoch, unless it exists or the last one is too recent."""
        if group.target_epoch >= group.epoch:
            return
        interval_ms = self.settings.of_group(group.group_id).consumer_assignment_interval_ms
        if group.target_stamp_ms and interval_ms and now.wall_ms < group.target_stamp_ms + interval_ms:
            return
        assign = ASSIGNORS[self.assignor(group)]
        for member_id, target in new_targets(group, assign, self._image()).items():
            if group.targets.get(member_id) != target:
                self._states.write(group, ConsumerRecordType.TARGET, member_id, target_of(target), out)
        value = ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=group.epoch, assignment_timestamp=now.wall_ms
        )
        self._states.write(group, ConsumerRecordType.TARGET_EPOCH, "", value, out)

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
            self._states.write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(after), out)
            self._deadlines.watch_revocation(group, after, now)
        self._deadlines.keep_alive(group, after, now)
        changed = ask.is_full or (
            before.assigned is not after.assigned and partitions_of(before) != partitions_of(after)
        )
        return ConsumerHeartbeatReply(
            member_id=after.member_id,
            epoch=after.epoch,
            heartbeat_interval_ms=self.settings.of_group(group.group_id).consumer_heartbeat_interval_ms,
            assignment=partitions_of(after) if changed else None,
        )

    def remove(self, group: ConsumerGroup, member: ConsumerMember, out: Decision) -> None:
        """Delete all records of the member."""
        for what in (ConsumerRecordType.CURRENT, ConsumerRecordType.TARGET, ConsumerRecordType.MEMBER):
            self._states.write(group, what, member.member_id, None, out)
        self._deadlines.forget(group, member.member_id)

    def assignor(self, group: ConsumerGroup) -> str:
        """The assignor that most members ask for, among those that the broker has."""
        chosen = group.assignor(self.settings.assignors[0])
        return chosen if chosen in self.settings.assignors else self.settings.assignors[0]
