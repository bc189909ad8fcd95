"""What members of both group protocols have in common: their settings, commits and committed offsets.

A member talks to its group in the background. Partitions are given up and taken over only in `rebalance`, which the
consumer calls inside `poll`, when all records handed out before are processed. `Share` is the consumer's side of that.

Sources: KIP-447 (stable offsets), KIP-320 (leader epochs of commits), KIP-848 (member epochs).
"""

import abc
import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from moldau.client.consuming.groups.group_link import GroupLink
from moldau.client.consuming.groups.streams_wanted import StreamsWanted
from moldau.client.failures import check, error_of, own_fault
from moldau.client.given_positions import NO_EPOCH
from moldau.client.routing import Router
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import GroupMetadata, OffsetAndMetadata, TopicPartition, by_topic
from moldau.protocol.apis import OFFSET_COMMIT, OFFSET_FETCH, Api
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

NO_GENERATION = -1
FAREWELL_S = 5.0
"""Leaving is tried again for this long."""
STALE = frozenset({ErrorCode.STALE_MEMBER_EPOCH})


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """Settings of a group member. `assignors` are those of the classic protocol, the preferred one first;
    `remote_assignor` is the broker's assignor (KIP-848), None for its default. `kept_apart_by`: a text behind the names
    of the assignors, so that the coordinator refuses members that have another one (INCONSISTENT_GROUP_PROTOCOL)."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    remote_assignor: str | None = None
    rack_id: str | None = None
    kept_apart_by: str = ""


class SubscribedTopics(NamedTuple):
    """What a member subscribes to: topics, and the expression that they match, if it was a pattern."""

    topics: Sequence[str]
    expression: str | None = None


class Share(Protocol):
    """The consumer's side of a rebalance: its partitions. Each step tells the application before or after."""

    def owned(self) -> list[TopicPartition]:
        """The partitions that the consumer reads now, sorted."""

    async def give_up(self, partitions: list[TopicPartition]) -> None:
        """Commit what was processed of these and stop reading them, because another member will."""

    async def lose(self, partitions: list[TopicPartition]) -> None:
        """Stop reading these at once, because the group has already taken them away."""

    async def take_over(self, partitions: list[TopicPartition]) -> None:
        """Read these as well from now on."""


class GroupMembership(abc.ABC):
    """A member of a group, or somebody who only stores offsets there. `wake` is called on the loop when `is_due` may
    have changed.

    `generation` is the group's generation, or the member's epoch, and -1 while it is not a member. `rejoin_needed` is
    set by whoever finds that topics have changed. `fatal` is a failure that the application has to hear of.
    """

    def __init__(self, router: Router, settings: GroupSettings, wake: Callable[[], object]):
        self._router = router
        self._settings = settings
        self._wake = wake
        self._link = GroupLink(router, settings.group_id)
        self._aside = GroupLink(router, settings.group_id, "offsets of group")
        self._fenced = False
        self._polled_s = 0.0
        self._subscribed = False
        self.member_id = ""
        self.generation = NO_GENERATION
        self.rejoin_needed = True
        self.topics_changed = False
        """Whether the topics have to be looked at before their time."""
        self.fatal: KafkaError | None = None
        self.may_deliver: Callable[[], bool] | None = None
        """Whether records may be handed out now, where that can end from one moment to the next; any thread asks."""

    def subscribed(self, streams: Callable[[], StreamsWanted]) -> None:  # noqa: B027
        """Note what the consumer subscribes to, with its streams, if members tell the group. Raises `ConfigError`."""

    def stream_of(self, tp: TopicPartition) -> int | None:
        """The number of the stream that the group has given an assigned partition to; None if that is not its
        concern."""
        return None

    @property
    def metadata(self) -> GroupMetadata:
        """This member as its group knows it. Raises `ConfigError` without a group, `UnknownMemberId` if a subscribed
        consumer is not a member (any more)."""
        if not self._settings.group_id:
            raise ConfigError("the consumer has no group_id, which offsets in a transaction need")
        generation, member_id = self._identity()
        instance_id = self._settings.group_instance_id if member_id else None
        return GroupMetadata(self._settings.group_id, generation, member_id, instance_id)

    def is_due(self, now_s: float) -> bool:
        """Whether `rebalance` has something to do. May be called from any thread."""
        return self.rejoin_needed

    def polled(self, now_s: float) -> None:
        """Note that the application polled. If it does not poll again within the rebalance time-out, the member
        leaves."""
        self._polled_s = now_s

    @abc.abstractmethod
    async def rebalance(self, share: Share, wanted: SubscribedTopics) -> None:
        """Do the next step of a rebalance. Raises `KafkaError`."""

    @abc.abstractmethod
    async def leave(self) -> None:
        """Leave the group, so that it need not wait for the session time-out."""

    async def _farewell(self, api: Api, request: Any) -> None:
        """Send a request by which the member leaves, again if the coordinator has moved or the connection breaks. If
        that does not help soon, the group waits for the member until its session time-out."""
        try:
            async with asyncio.timeout(FAREWELL_S):
                await self._aside.retrying(api, lambda: request, lambda reply: [reply.error_code])
        except (KafkaError, TimeoutError):
            pass

    async def watched(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of the member to its end. The application hears of a fault of the member's own, as of other fatal
        failures; without that the next member would begin with the same fault at once, for ever. After a task that was
        cancelled the member joins again: without heartbeats the group would give its partitions to others."""
        try:
            await work
        except asyncio.CancelledError:  # if not by the member itself, the application has cancelled all tasks
            self.rejoin_needed = True
            self._wake()
            raise
        except Exception as fault:
            self.generation, self.rejoin_needed = NO_GENERATION, True
            self.fatal = own_fault(f"group {self._settings.group_id}: the member", fault)
            self._wake()

    def overdue(self) -> bool:
        """Whether the application has not polled for longer than the rebalance time-out."""
        now_s = asyncio.get_running_loop().time()
        return now_s - self._polled_s > self._settings.rebalance_timeout_ms / 1000

    def note(self, error: ErrorCode) -> None:
        """Take an error of the coordinator to heart."""
        self._link.note(error)
        self._aside.note(error)
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self._fenced = True

    def check_fenced(self) -> None:
        """Raise `FencedInstanceId` if another member has taken this one's instance id over. Joining again would take it
        back, and so on for ever."""
        if self._fenced:
            group_id, instance_id = self._settings.group_id, self._settings.group_instance_id
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"group {group_id}: another consumer has taken group_instance_id={instance_id!r} over; close this one",
            )

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets as a member of the current generation, or as a non-member if the group only stores offsets.

        Raises `KafkaError`: `CommitFailed` if the group has gone on without this member.
        """
        group_id = self._settings.group_id
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for tp, (offset, metadata, leader_epoch) in offsets.items():
            topics.setdefault(tp.topic, OffsetCommitRequestTopic(name=tp.topic)).partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=offset,
                    committed_leader_epoch=NO_EPOCH if leader_epoch is None else leader_epoch,
                    committed_metadata=metadata,
                )
            )
        first = self._identity()

        def request() -> OffsetCommitRequest:
            generation, member_id = self._identity(first)
            return OffsetCommitRequest(
                group_id=group_id,
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                group_instance_id=self._settings.group_instance_id if member_id else None,
                topics=list(topics.values()),
            )

        reply = await self._aside.retrying(OFFSET_COMMIT, request, _unwritten, STALE)
        for topic in reply.topics:
            for p in topic.partitions:
                if self.generation == first[0]:
                    self.note(error_of(p.error_code))
                check(p.error_code, f"committing {topic.name}-{p.partition_index} for group {group_id}")

    def _identity(self, before: tuple[int, str] | None = None) -> tuple[int, str]:
        """Generation and member id for a commit; `before` are those with which the commit was sent first. Raises
        `UnknownMemberId` if a subscribed consumer is not a member (any more)."""
        if before is not None:
            return before
        if not self._subscribed:
            return NO_GENERATION, ""
        if self.generation < 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"committing for group {self._settings.group_id}: this consumer is not a member at the moment; its "
                "partitions may have been given to others",
            )
        return self.generation, self.member_id

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets of these partitions; partitions without a commit are left out. Waits until no
        open transaction is about to change one of them (KIP-447): a consumer that started from the older offset would
        process records twice."""
        wanted = by_topic(partitions)
        group_id = self._settings.group_id

        def request() -> OffsetFetchRequest:
            member_id, epoch = self._fetching_as()
            return OffsetFetchRequest(
                group_id=group_id,
                topics=[OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in wanted.items()],
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=group_id,
                        member_id=member_id,
                        member_epoch=epoch,
                        topics=[OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in wanted.items()],
                    )
                ],
                require_stable=True,
            )

        reply = await self._aside.retrying(OFFSET_FETCH, request, _unsettled, STALE)
        group = reply.groups[0] if reply.groups else reply
        self.note(error_of(group.error_code))
        check(group.error_code, f"the committed offsets of group {group_id}")
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for topic in group.topics:
            for p in topic.partitions:
                tp = TopicPartition(topic.name, p.partition_index)
                check(p.error_code, f"the committed offset of {tp}")
                if p.committed_offset >= 0:
                    epoch = p.committed_leader_epoch
                    offsets[tp] = OffsetAndMetadata(p.committed_offset, p.metadata or "", epoch if epoch >= 0 else None)
        return offsets

    def _fetching_as(self) -> tuple[str | None, int]:
        """Member id and epoch of an OffsetFetch; the classic protocol has none there."""
        return None, NO_GENERATION


def _unwritten(reply: Any) -> list[int]:
    """The error codes of an OffsetCommit reply that are checked before it is taken. A topic that does not exist is not
    waited for, as in Java's consumer."""
    codes = [p.error_code for topic in reply.topics for p in topic.partitions]
    return [code for code in codes if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def _unsettled(reply: Any) -> list[int]:
    """The error codes of an OffsetFetch reply that are checked before it is taken."""
    group = reply.groups[0] if reply.groups else reply
    codes = [p.error_code for topic in group.topics for p in topic.partitions]
    return [group.error_code, *(code for code in codes if code == ErrorCode.UNSTABLE_OFFSET_COMMIT)]
