"""Which kind answers a request about a group, and what happens if the request belongs to another kind (KIP-848). Pure.

    the group is   and gets                          empty                        with members
    -----------    ------------------------------    -------------------------    ---------------------------------
    consumer       JoinGroup                         is made anew as classic      stays; the member joins as it is
    classic        ConsumerGroupHeartbeat that joins is made anew as consumer     is upgraded with its members
    unknown        JoinGroup                         is made as classic
    unknown        ConsumerGroupHeartbeat that joins is made as consumer

All other requests go to the kind that has the group; if none has it, to the classic one, which says so. The downgrade
of a consumer group belongs to `consumer.departures`: the last member of the consumer protocol leaves, and the group is
classic from then on.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from moldau.coordinators.classic.groups import ClassicGroups
from moldau.coordinators.classic.messages import Join, Joined
from moldau.coordinators.consumer.groups import ConsumerGroups
from moldau.coordinators.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.coordinators.groups.kinds import CommitsOffsets, GroupKind, SpeaksClassic
from moldau.errors import ErrorCode

Ask: TypeAlias = Join | ConsumerHeartbeat


AnswerJoin: TypeAlias = Callable[[Any, Ticket, Now], Decision]
"""Answers a request that joins a group."""


class Answering(NamedTuple):
    """Who answers requests about a group, by what they are about."""

    kind: GroupKind
    members: SpeaksClassic
    offsets: CommitsOffsets


class Conversions:
    def __init__(self, classic: ClassicGroups, consumer: ConsumerGroups):
        self._classic = classic
        self._consumer = consumer
        self._joining: Mapping[tuple[GroupKind | None, type[Ask]], AnswerJoin] = {
            (classic, Join): classic.join,
            (consumer, Join): self._join_consumer,
            (None, Join): classic.join,
            (classic, ConsumerHeartbeat): self._beat_classic,
            (consumer, ConsumerHeartbeat): consumer.beat,
            (None, ConsumerHeartbeat): consumer.beat,
        }
        self.answering: Mapping[GroupKind | None, Answering] = {
            classic: Answering(classic, classic, classic),
            consumer: Answering(consumer, consumer, consumer),
            None: Answering(classic, classic, classic),
        }
        """Who answers the other requests about a group of that kind; None if there is no such group."""

    def join(self, kind: GroupKind | None, ask: Ask, ticket: Ticket, now: Now) -> Decision:
        """Answer a request that joins a group of that kind; None if there is no such group."""
        return self._joining[kind, type(ask)](ask, ticket, now)

    def _join_consumer(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        if self._consumer.is_empty(ask.group_id):
            return self._remake_as_classic(ask, ticket, now)
        return self._consumer.join(ask, ticket, now)

    def _beat_classic(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        if ask.epoch != 0:  # only a heartbeat that joins converts a group
            return self._consumer.beat(ask, ticket, now)
        if self._classic.is_empty(ask.group_id):
            return self._remake_as_consumer(ask, ticket, now)
        return self._upgrade(ask, ticket, now)

    def _remake_as_classic(self, ask: Join, ticket: Ticket, now: Now) -> Decision:
        if ask.member_id:
            out = Decision()
            out.reply(ticket, Joined(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=ask.member_id))
            return out
        deletion = Decision()
        self._consumer.delete(ask.group_id, deletion)
        out = self._classic.join(ask, ticket, now)
        out.prepend(deletion)
        out.refusals[ticket] = lambda error: Joined(error=error, member_id=ask.member_id)

        def undo(error: ErrorCode, then: Decision) -> None:
            # JoinGroups may be parked, also of others: answer them, since their group is gone.
            group = self._classic.live.get(ask.group_id)
            if group is not None:
                self._classic.abandon(group, error, then)
            then.reply(ticket, Joined(error=error, member_id=ask.member_id))

        out.undo.append(undo)
        return self._consumer.conclude(out, now)

    def _remake_as_consumer(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        out = self._consumer.beat(ask, ticket, now)
        if ask.group_id in self._consumer.live:
            deletion = Decision()
            self._classic.delete(ask.group_id, deletion)
            out.prepend(deletion)
        return out

    def _upgrade(self, ask: ConsumerHeartbeat, ticket: Ticket, now: Now) -> Decision:
        """Members that wait in the group are told to rejoin, and rejoin the consumer group."""
        group = self._classic.live[ask.group_id]
        error, message = self._consumer.check_upgrade(group, ask)
        if self._classic.is_dead(ask.group_id) or error is not ErrorCode.NONE:
            error = error or ErrorCode.COORDINATOR_NOT_AVAILABLE
            out = Decision()
            out.reply(ticket, ConsumerHeartbeatReply(error=error, message=message or None))
            return out
        change = Decision()
        self._classic.replace(group, now, change)
        self._consumer.upgrade(group, now, change)
        out = self._consumer.beat(ask, ticket, now)
        assert out.records and out.chain is not None
        out.prepend(change)
        return out
