"""Heartbeats about very many topics, which are decided outside of the event loop. Pure.

A member that subscribes to 9,000 topics costs a quarter of a second: its group's epoch, target assignment, and records
are about all of them. Such a heartbeat is decided on a fork of its group (`decide`), which may run in another thread:
it touches nothing but the fork, and what is immutable. The decision is then taken over as a whole (`take_over`), unless
the group has changed since: then it is decided again. So the decision is the one that the shard itself would have made
at the moment when it is taken over.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from moldau.cluster.state.image import Image
from moldau.coordinators.consumer.changes import GroupChanges, HeartbeatRefused, Match, Visible
from moldau.coordinators.consumer.consumer_members import ConsumerMembers
from moldau.coordinators.consumer.departures import Departures
from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.member_deadlines import MemberDeadlines
from moldau.coordinators.consumer.messages import ConsumerGroupSettings, ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.errors import ErrorCode

LARGE = 1000
"""Topics and partitions of a heartbeat that is decided outside of the loop: 10 to 25 ms of work."""


class LaterDeadlines(MemberDeadlines):
    """Remembers what is to be done to the deadlines of the real group."""

    def __init__(self, settings: ConsumerGroupSettings):
        super().__init__(settings)
        self._calls: list[Callable[[MemberDeadlines, Now], None]] = []

    def keep_alive(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        self._calls.append(lambda real, later: real.keep_alive(group, member, later))

    def watch_revocation(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        self._calls.append(lambda real, later: real.watch_revocation(group, member, later))

    def forget(self, group: ConsumerGroup, member_id: str) -> None:
        self._calls.append(lambda real, _: real.forget(group, member_id))

    def repeat(self, real: MemberDeadlines, now: Now) -> None:
        for call in self._calls:
            call(real, now)


class LargeHeartbeat:
    """One heartbeat and its group at one moment. `live` is the group that exists, None before the first member."""

    def __init__(
        self,
        ask: ConsumerHeartbeat,
        live: ConsumerGroup | None,
        image: Image,
        settings: ConsumerGroupSettings,
        match: Match,
        new_id: Callable[[], str],
        now: Now,
    ):
        self._ask = replace(ask, may_see=None)  # who may see what is asked here, on the event loop
        self._live = live
        self._applied = live.applied if live is not None else 0
        self._image = image
        self._now = now
        of_group = settings.of_group(ask.group_id)
        settings = replace(settings, of_group=lambda _: of_group)
        self._deadlines = LaterDeadlines(settings)
        self._states = GroupStates(self._deadlines)
        if live is not None:
            self._states.live[ask.group_id] = live.fork()
        self._matched = _matches(ask, live, image, match)
        changes = GroupChanges(settings, self._states, self._deadlines, lambda: image, self._match)
        departures = Departures(self._states, changes, lambda: image, _stays)
        self._members = ConsumerMembers(self._states, changes, departures, new_id)
        self._out = Decision()
        self._reply: ConsumerHeartbeatReply | None = None

    def _match(self, expression: str, topics: Collection[str]) -> Collection[str] | None:
        matched = self._matched.get(expression)
        if isinstance(matched, ValueError):
            raise matched
        return matched

    def decide(self) -> None:
        """May be called in any thread, once."""
        try:
            self._reply = self._members.stay(self._ask, self._now, self._out)
        except HeartbeatRefused as refused:
            self._reply = ConsumerHeartbeatReply(error=refused.code, message=refused.message)

    def fits(self, live: ConsumerGroup | None, image: Image) -> bool:
        """Whether the group is still the one that this was decided about."""
        is_same = live is self._live and image is self._image
        return is_same and (live is None or live.applied == self._applied)

    def take_over(self, states: GroupStates, deadlines: MemberDeadlines, ticket: Ticket, now: Now) -> Decision:
        """The decision, which has been made and fits, as the one of the real group."""
        reply, out = self._reply, Decision()
        assert reply is not None
        if reply.error is not ErrorCode.NONE:
            assert not self._out.records
            out.reply(ticket, reply)
            return out
        states.take_over(self._states.live[self._ask.group_id], self._out.records, out)
        self._deadlines.repeat(deadlines, now)
        out.reply(ticket, reply, lambda error: ConsumerHeartbeatReply(error=error))
        return states.conclude(out, now)


def is_large(ask: ConsumerHeartbeat, group: ConsumerGroup | None, image: Image, match: Match) -> bool:
    """Whether the heartbeat costs as much as `LARGE` topics. Looks at that many members at most."""
    if ask.epoch < 0:
        return False
    size = len(ask.topics or ()) + len(ask.owned or ())
    if ask.expression:
        try:
            size += len(match(ask.expression, image.topics) or ())
        except ValueError:
            return False
    if group is None:
        return size >= LARGE
    member = group.members.get(ask.member_id)
    is_settled = group.checked is image and group.target_epoch >= group.epoch
    is_settled = is_settled and member is not None and member.is_reconciled_to(group.target_epoch)
    if is_settled and ask.topics is None and ask.expression is None:
        return False
    size += len(group.owners)
    for one in group.members.values():
        if size >= LARGE:
            return True
        size += 1 + len(one.topics) + len(group.expressions.get(one.expression, ()))
    return size >= LARGE


def _matches(
    ask: ConsumerHeartbeat, group: ConsumerGroup | None, image: Image, match: Match
) -> dict[str, Collection[str] | ValueError | None]:
    """What the expressions of the group and of the heartbeat match now."""
    members = group.members.values() if group is not None else ()
    visible = Visible(ask.may_see)
    matches: dict[str, Collection[str] | ValueError | None] = {}
    for expression in dict.fromkeys((ask.expression, *(member.expression for member in members))):
        if expression:
            try:
                matches[expression] = visible.of(match(expression, image.topics))
            except ValueError as invalid:
                matches[expression] = invalid
    return matches


def _stays(*_: Any) -> None:
    raise AssertionError("a heartbeat that stays makes no group classic")
