"""One member of a consumer group of the newer protocol (KIP-848): the broker assigns, heartbeats carry everything.

A task sends heartbeats at the interval that the broker asks for. Each says what has changed at the member since the
last one (all of it after joining or an error); an answer may have a new assignment. `rebalance` then gives up what the
assignment has no more, takes over what is new, and the next heartbeat acknowledges both. The broker assigns a partition
only after its last owner has given it up.

Epochs: 0 joins, above 0 is a member, -1 leaves, -2 leaves for a while (a static member). Sources: KIP-848, KIP-1082
(the member makes its id itself).
"""

import asyncio
import base64
import uuid
from collections.abc import Callable

from moldau.client.consuming.groups.membership import (
    NO_GENERATION,
    GroupMembership,
    GroupSettings,
    Share,
    SubscribedTopics,
)
from moldau.client.failures import check
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import CONSUMER_GROUP_HEARTBEAT
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.tasks import ended

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
OWN_ID_VERSION = REGEX_VERSION = 1
"""From this version of the heartbeat on, members make their ids themselves, and subscribe by expressions."""
LOST_MEMBERSHIP = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
UNRESOLVED_S = 0.1
"""The time between looks at the metadata for topics that were assigned but are not in it yet."""

TargetAssignment = dict[uuid.UUID, list[int]]


class ConsumerMembership(GroupMembership):
    """One membership, described in the module."""

    def __init__(self, router: Router, settings: GroupSettings, wake: Callable[[], object]):
        super().__init__(router, settings, wake)
        self._beating: asyncio.Task[None] | None = None
        self._nudge = asyncio.Event()
        self._wanted = SubscribedTopics(())
        self._said: SubscribedTopics | None = None
        self._by_name = False
        self._target: TargetAssignment | None = None
        self._look_at_s = 0.0
        self._owned: TargetAssignment = {}
        self._owned_said: TargetAssignment | None = None

    def is_due(self, now_s: float) -> bool:
        if self._target is not None and self._beats:
            return now_s >= self._look_at_s
        return self.rejoin_needed

    @property
    def _beats(self) -> bool:
        return self._beating is not None and not self._beating.done()

    async def rebalance(self, share: Share, wanted: SubscribedTopics) -> None:
        """Join, tell a changed subscription, or go from the partitions that the consumer has to the assigned ones.
        Raises `KafkaError`."""
        self._subscribed = True
        self.check_fenced()
        self.rejoin_needed = False
        if wanted != self._wanted:
            self._wanted = wanted
            self._nudge.set()
        if not self._beats:
            had = share.owned()
            if had:
                await share.lose(had)
            self._begin()
        elif self._target is not None:
            await self._reconcile(share, self._target)

    async def leave(self) -> None:
        """Leave the group; a static member tells that it will be back, and keeps its partitions for the session
        time-out."""
        await self._stop()
        if self._subscribed and self.member_id:
            await self._say_goodbye()
        self._subscribed = False

    async def _say_goodbye(self) -> None:
        instance_id = self._settings.group_instance_id
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=LEAVES if instance_id is None else LEAVES_FOR_A_WHILE,
            instance_id=instance_id,
        )
        self._forget()
        await self._farewell(CONSUMER_GROUP_HEARTBEAT, request)

    async def _stop(self) -> None:
        await ended(self._beating)
        self._beating = None

    def _begin(self) -> None:
        """Join with the first heartbeat of a new task."""
        self.generation, self._target, self._owned = NO_GENERATION, None, {}
        self._say_all()
        self._beating = asyncio.get_running_loop().create_task(self.watched(self._beat()))
        self._beating.add_done_callback(lambda _: self._wake())

    def _forget(self) -> None:
        """The group no longer has this member: its partitions are lost, and the next poll joins again."""
        self.generation, self._target, self.rejoin_needed = NO_GENERATION, None, True

    def note(self, error: ErrorCode) -> None:
        super().note(error)
        if error in LOST_MEMBERSHIP and self.generation >= 0:
            self._nudge.set()  # the next heartbeat hears the same, and ends the membership

    # -- heartbeats

    async def _beat(self) -> None:
        """Send heartbeats until the membership ends."""
        backoff = self._router.backoff(f"heartbeat to group {self._settings.group_id}")
        while True:
            if self.overdue():
                await self._say_goodbye()
                return
            self._nudge.clear()
            try:
                reply = await self._heartbeat()
                backoff.reset()
                wait_s = reply.heartbeat_interval_ms / 1000
            except KafkaError as failure:
                super().note(failure.code)
                self._say_all()
                if failure.code in LOST_MEMBERSHIP:
                    self._forget()
                    return
                if failure.code == ErrorCode.INVALID_REGULAR_EXPRESSION and not self._by_name:
                    self._by_name = True  # Python's expressions say more than the broker's
                    continue
                if not failure.retriable:
                    self._forget()
                    self.fatal = self._explained(failure)
                    return
                wait_s = backoff.after_ms(failure) / 1000
                self._nudge.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._nudge.wait()
            except TimeoutError:
                pass

    async def _heartbeat(self) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat and its answer. Raises `KafkaError`."""
        settings = self._settings
        link = await self._link.connected()
        version = link.versions.of(CONSUMER_GROUP_HEARTBEAT)
        if not self.member_id and version >= OWN_ID_VERSION:
            self.member_id = base64.urlsafe_b64encode(self._router.runtime.random.uuid().bytes).decode().rstrip("=")
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            member_epoch=max(self.generation, JOINS),
            instance_id=settings.group_instance_id,
        )
        said, owned = self._wanted, self._owned
        if self._said is None:
            request.rack_id = settings.rack_id or None
            request.rebalance_timeout_ms = settings.rebalance_timeout_ms
            request.server_assignor = settings.remote_assignor
        if self._said != said:
            if said.expression is not None and version >= REGEX_VERSION and not self._by_name:
                request.subscribed_topic_names, request.subscribed_topic_regex = [], said.expression
            else:
                request.subscribed_topic_names = list(said.topics)
                if version >= REGEX_VERSION and self._said is not None:
                    request.subscribed_topic_regex = ""
        if self._owned_said != owned:
            request.topic_partitions = [TopicPartitions(topic_id=t, partitions=p) for t, p in owned.items()]
        reply: ConsumerGroupHeartbeatResponse = await self._link.call(CONSUMER_GROUP_HEARTBEAT, request)
        check(reply.error_code, f"group {settings.group_id}", reply.error_message)
        self.member_id = reply.member_id or self.member_id
        self.generation = reply.member_epoch
        self._said, self._owned_said = said, owned
        if reply.assignment is not None:
            self._target = {t.topic_id: sorted(t.partitions) for t in reply.assignment.topic_partitions}
            self._look_at_s = 0.0
            self._wake()
        return reply

    def _explained(self, failure: KafkaError) -> KafkaError:
        if failure.code != ErrorCode.UNSUPPORTED_VERSION:
            return failure
        return KafkaError(
            failure.code,
            f"the coordinator of group {self._settings.group_id} does not have group_protocol='consumer' (KIP-848); "
            "use group_protocol='classic'",
        )

    def _say_all(self) -> None:
        """Leave nothing out of the next heartbeat."""
        self._said = self._owned_said = None

    # -- assignments

    async def _reconcile(self, share: Share, target: TargetAssignment) -> None:
        """Give up what the target does not have, then take over what is new. Topics that the metadata does not have
        yet are taken over later."""
        names = await self._names(target)
        assigned = {TopicPartition(names[t], p): t for t, some in target.items() if t in names for p in some}
        had = share.owned()
        given_up = [tp for tp in had if tp not in assigned]
        if given_up:
            await share.give_up(given_up)
        if not self._beats:
            return  # lost meanwhile
        added = sorted(tp for tp in assigned if tp not in had)
        try:
            if added or given_up or not had:
                await share.take_over(added)
        finally:
            if self._beats:
                self._settle(share, assigned, target, names)

    def _settle(
        self,
        share: Share,
        assigned: dict[TopicPartition, uuid.UUID],
        target: TargetAssignment,
        names: dict[uuid.UUID, str],
    ) -> None:
        """Acknowledge what the consumer has now."""
        owned: TargetAssignment = {}
        for tp in share.owned():
            if tp in assigned:
                owned.setdefault(assigned[tp], []).append(tp.partition)
        self._owned = owned
        self._owned_said = None
        self._nudge.set()
        if self._target is not target:
            return  # a newer one came
        loop = asyncio.get_running_loop()
        if len(names) == len(target):
            self._target = None
        else:
            self._look_at_s = loop.time() + UNRESOLVED_S
            loop.call_later(UNRESOLVED_S, self._wake)

    async def _names(self, target: TargetAssignment) -> dict[uuid.UUID, str]:
        """The names of these topics, as far as the metadata has them."""
        topics: list[str] | None
        for topics in ([], list(self._wanted.topics), None):
            if topics != []:
                await self._router.retrying(lambda asked=topics: self._router.refresh(asked))  # type: ignore[misc]
            known = {topic.topic_id: name for name, topic in self._router.view.topics.items()}
            if target.keys() <= known.keys():
                break
        return {topic_id: known[topic_id] for topic_id in target if topic_id in known}

    # -- offsets

    def _identity(self, before: tuple[int, str] | None = None) -> tuple[int, str]:
        """The epoch may have risen since the first attempt, as long as the membership is the same."""
        if before is not None and before[0] < 0:
            return before
        return super()._identity()

    def _fetching_as(self) -> tuple[str | None, int]:
        return (self.member_id, self.generation) if self.generation >= 0 else (None, NO_GENERATION)
