"""One member of a classic group: it joins, is assigned partitions, sends heartbeats, commits and leaves.

The member that the coordinator elects as leader assigns partitions for all members, with an assignor that all of them
have (`assigning`). Joining runs in the background, and its result is taken over in `rebalance`. If every assignor is
cooperative, a member keeps its partitions meanwhile, gives up only those that move, and joins again so that others can
have them; otherwise it gives all up before it joins.

Sources: "Consumer Rebalance Protocol" of Kafka's protocol guide; KIP-62 (heartbeats), KIP-345 (static members), KIP-394
(MEMBER_ID_REQUIRED), KIP-429 (cooperative rebalancing).
"""

import asyncio
from collections.abc import Callable, Sequence

from moldau.assignors.sticky import Claim
from moldau.client.consuming.assigning import (
    ASSIGNORS,
    Subscriber,
    assignment_of,
    is_cooperative,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
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
from moldau.protocol.apis import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from moldau.protocol.consumer import versioned
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.tasks import ended

PROTOCOL_TYPE = "consumer"
LOST_MEMBERSHIP = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_JOIN_AGAIN = LOST_MEMBERSHIP | {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED}


class ClassicMembership(GroupMembership):
    """One membership, described in the module."""

    def __init__(self, router: Router, settings: GroupSettings, wake: Callable[[], object]):
        super().__init__(router, settings, wake)
        self._cooperative = is_cooperative(settings.assignors)
        self._heartbeats: asyncio.Task[None] | None = None
        self._joining: asyncio.Task[list[TopicPartition] | None] | None = None
        self._last = Claim()

    def is_due(self, now_s: float) -> bool:
        joining = self._joining
        return self.rejoin_needed if joining is None else joining.done()

    async def rebalance(self, share: Share, wanted: SubscribedTopics) -> None:
        """Begin to join, or take over what joining has brought. Raises `KafkaError`."""
        self._subscribed = True
        self.check_fenced()
        joining, self._joining = self._joining, None
        if joining is not None:
            try:
                assigned = await joining
            except KafkaError:
                self.forget()
                raise
            except asyncio.CancelledError:
                self.rejoin_needed = True
                raise
            if assigned is not None and self.generation >= 0:
                await self._take_over(share, assigned)
                return
        had = share.owned()
        if had and self.generation < 0:
            await share.lose(had)
        elif self._cooperative:
            unwanted = [tp for tp in had if tp.topic not in wanted.topics]
            if unwanted:
                await share.give_up(unwanted)
        elif had:
            await share.give_up(had)
        await self._stop_heartbeats()
        self.rejoin_needed = False
        owned = share.owned()
        self._joining = asyncio.get_running_loop().create_task(self._join(sorted(wanted.topics), owned))
        self._joining.add_done_callback(lambda _: self._wake())

    async def _take_over(self, share: Share, assigned: list[TopicPartition]) -> None:
        """Go from the partitions that the consumer has to the assigned ones. Whoever gave some up joins again, so that
        their new owners get them."""
        had = share.owned()
        self._last = Claim(assigned, self.generation)
        given_up = sorted(set(had) - set(assigned))
        failed: Exception | None = None
        if given_up:
            self.rejoin_needed = True
            try:
                await share.give_up(given_up)
            except Exception as failure:  # of a listener, which changes nothing: the partitions are given up
                failed = failure
        await share.take_over(sorted(set(assigned) - set(had)))
        if failed is not None:
            raise failed

    async def leave(self) -> None:
        """Leave the group, so that it need not wait for the session time-out. A static member stays in the group."""
        joining, self._joining = self._joining, None
        await ended(joining)
        await self._stop_heartbeats()
        await self._say_goodbye("the consumer is closing")
        self._subscribed = False

    async def _say_goodbye(self, reason: str) -> None:
        if self._settings.group_instance_id is not None:
            # The group still has this member. If it came back as an unknown one, a join of its own that arrives late
            # could fence it.
            self.generation, self.rejoin_needed = NO_GENERATION, True
            return
        if self.member_id:
            member = MemberIdentity(member_id=self.member_id, reason=reason)
            group_id = self._settings.group_id
            request = LeaveGroupRequest(group_id=group_id, member_id=self.member_id, members=[member])
            await self._farewell(LEAVE_GROUP, request)
        self.forget()

    def forget(self) -> None:
        """Discard the member id and generation, because the group no longer has this member."""
        self.member_id, self.generation, self.rejoin_needed = "", NO_GENERATION, True

    def note(self, error: ErrorCode) -> None:
        super().note(error)
        if self._joining is not None and not self._joining.done():
            return  # joining finds out by itself
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.forget()
        elif error == ErrorCode.ILLEGAL_GENERATION:
            self.generation, self.rejoin_needed = NO_GENERATION, True
        elif error == ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin_needed = True

    # -- joining

    async def _join(self, topics: list[str], owned: list[TopicPartition]) -> list[TopicPartition] | None:
        """Take part in a rebalance and return the partitions assigned to this member, or None if the group has taken
        the `owned` ones away, which the application must hear first. Raises `KafkaError`."""
        backoff = self._router.backoff(f"joining group {self._settings.group_id}")
        while True:
            try:
                assigned = await self._join_and_sync(topics, owned)
            except KafkaError as failure:
                super().note(failure.code)
                if failure.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self.member_id, self.generation = "", NO_GENERATION
                elif failure.code == ErrorCode.ILLEGAL_GENERATION:
                    self.generation = NO_GENERATION
                if failure.code not in _JOIN_AGAIN and not failure.retriable:
                    raise
                if owned and self.generation < 0:
                    return None
                if failure.code != ErrorCode.MEMBER_ID_REQUIRED:
                    await asyncio.sleep(backoff.after_ms(failure) / 1000)
            else:
                self._heartbeats = asyncio.get_running_loop().create_task(self.watched(self._keep_alive()))
                return assigned

    async def _join_and_sync(self, topics: list[str], owned: Sequence[TopicPartition]) -> list[TopicPartition]:
        settings = self._settings
        timeout_ms = settings.rebalance_timeout_ms + self._router.request_timeout_ms
        protocols = [
            JoinGroupRequestProtocol(
                name=name + settings.kept_apart_by,
                metadata=subscription_bytes(name, topics, owned, self._last, settings.rack_id),
            )
            for name in settings.assignors
        ]
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
        )
        reply: JoinGroupResponse = await self._link.call(JOIN_GROUP, request, timeout_ms=timeout_ms)
        if reply.member_id:
            self.member_id = reply.member_id
        check(reply.error_code, f"joining group {settings.group_id}")
        self.generation = reply.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if reply.leader == reply.member_id and not reply.skip_assignment:
            assignments = await self._assign(reply)
        answer = await self._link.call(
            SYNC_GROUP,
            SyncGroupRequest(
                group_id=settings.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=settings.group_instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=reply.protocol_name,
                assignments=assignments,
            ),
            timeout_ms=timeout_ms,
        )
        check(answer.error_code, f"joining group {settings.group_id}")
        return read_assignment(answer.assignment)

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Assign the partitions to all members, as the group's leader."""
        members = {m.member_id: Subscriber(m.group_instance_id, read_subscription(m.metadata)) for m in joined.members}
        topics = sorted({topic for one in members.values() for topic in one.subscription.topics})
        await self._router.retrying(lambda: self._router.refresh(topics))
        view = self._router.view
        known = {topic: view.replica_racks(topic) for topic in topics if topic in view.topics}
        assign = ASSIGNORS.get((joined.protocol_name or "").removesuffix(self._settings.kept_apart_by))
        if assign is None:
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            raise KafkaError(code, f"group {self._settings.group_id} uses the assignor {joined.protocol_name!r}")
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=versioned(assignment_of(partitions), 1))
            for member, partitions in assign(members, known).items()
        ]

    # -- heartbeats

    async def _stop_heartbeats(self) -> None:
        await ended(self._heartbeats)
        self._heartbeats = None

    async def _keep_alive(self) -> None:
        """Send heartbeats until the next join; also while the group waits for it, because a member whose application is
        slow to poll would be taken out of the group otherwise."""
        settings = self._settings
        backoff = self._router.backoff(f"heartbeat to group {settings.group_id}")
        while self.generation >= 0:
            if self.overdue():
                await self._say_goodbye("the application did not poll in time")
                break
            wait_ms = settings.heartbeat_interval_ms
            request = HeartbeatRequest(
                group_id=settings.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=settings.group_instance_id,
            )
            try:
                reply = await self._link.call(HEARTBEAT, request, timeout_ms=settings.session_timeout_ms)
                check(reply.error_code, f"heartbeat to group {settings.group_id}")
                backoff.reset()
            except KafkaError as failure:
                self.note(failure.code)
                if failure.code == ErrorCode.REBALANCE_IN_PROGRESS:
                    self._wake()
                elif failure.retriable:
                    wait_ms = min(backoff.after_ms(failure), wait_ms)
                elif failure.code not in LOST_MEMBERSHIP:
                    self.fatal = failure
                    break
            if self.generation >= 0:
                await asyncio.sleep(wait_ms / 1000)
        self._wake()
