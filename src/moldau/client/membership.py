"""One member of a classic group: it joins, is assigned partitions, sends heartbeats, commits and leaves.

The member that the coordinator elects as leader assigns partitions for all members, with the assignor "range" that
every client supports (`assignors`). `Membership` sends the requests and keeps the member id and the generation; the
consumer decides when. While the member is in a generation, a task sends heartbeats. If a heartbeat reports a rebalance
or a lost membership, `rejoin_needed` is set.

Sources: "Consumer Rebalance Protocol" of Kafka's protocol guide; KIP-62 (heartbeats), KIP-345 (static members), KIP-394
(MEMBER_ID_REQUIRED).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.assignors import range_assign
from moldau.client.failures import check, error_of
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.names import OffsetAndMetadata as OffsetAndMetadata
from moldau.names import TopicPartition
from moldau.peers.link import Link
from moldau.protocol import consumer
from moldau.protocol.apis import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP, Api
from moldau.protocol.consumer import (
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    versioned,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOL_TYPE, PROTOCOL_NAME = "consumer", "range"
_LOST_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
_LOST_MEMBERSHIP = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """Settings of a group member."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000


class Membership:
    """One membership, described in the module. `wake` is called on the loop when heartbeats stop, for example because
    of a rebalance."""

    def __init__(self, router: Router, settings: GroupSettings, wake: Callable[[], object]):
        self._router = router
        self._settings = settings
        self._wake = wake
        self._coordinator: int | None = None
        self._heartbeats: asyncio.Task[None] | None = None
        self.member_id = ""
        self.generation = -1
        self.rejoin_needed = True
        self.fatal: KafkaError | None = None
        self._polled_s = 0.0

    def polled(self, now_s: float) -> None:
        """Note that the application polled. If it does not poll again within the rebalance time-out, the member
        leaves."""
        self._polled_s = now_s

    async def join(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Take part in a rebalance and return the partitions assigned to this member. Raises `KafkaError`."""
        await self._stop_heartbeats()
        backoff = self._router.backoff(f"joining group {self._settings.group_id}")
        while True:
            try:
                assigned = await self._join_and_sync(sorted(topics))
            except KafkaError as failure:
                if not self._again(failure):
                    raise
                await asyncio.sleep(backoff.after_ms(failure) / 1000)
            else:
                self.rejoin_needed = False
                self._heartbeats = asyncio.get_running_loop().create_task(self._keep_alive())
                return assigned

    async def leave(self) -> None:
        """Leave the group, so that it need not wait for the session time-out. A static member stays in the group."""
        await self._stop_heartbeats()
        await self._say_goodbye("the consumer is closing")

    async def _say_goodbye(self, reason: str) -> None:
        if self.member_id and self._settings.group_instance_id is None:
            member = MemberIdentity(member_id=self.member_id, reason=reason)
            group_id = self._settings.group_id
            request = LeaveGroupRequest(group_id=group_id, member_id=self.member_id, members=[member])
            try:
                await self.call(LEAVE_GROUP, request, timeout_ms=5_000)
            except KafkaError:
                pass
        self.forget()

    def forget(self) -> None:
        """Discard the member id and generation, because the group no longer has this member."""
        self.member_id, self.generation, self.rejoin_needed = "", -1, True

    async def stop(self) -> None:
        """Stop the heartbeats without leaving; the member's session ends by its time-out."""
        await self._stop_heartbeats()

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets as a member of the current generation, or as a non-member if the group only stores offsets."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for tp, (offset, metadata) in offsets.items():
            topics.setdefault(tp.topic, OffsetCommitRequestTopic(name=tp.topic)).partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=tp.partition, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id if self.member_id else None,
            topics=list(topics.values()),
        )
        reply = await self.retrying(
            OFFSET_COMMIT, request, lambda r: [p.error_code for t in r.topics for p in t.partitions]
        )
        for topic in reply.topics:
            for p in topic.partitions:
                self._note(error_of(p.error_code))
                check(p.error_code, f"committing {topic.name}-{p.partition_index} for group {self._settings.group_id}")

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets of these partitions; partitions without a commit are left out. Waits until no
        open transaction is about to change one of them (KIP-447): a consumer that started from the older offset would
        process records twice."""
        by_topic: dict[str, list[int]] = {}
        for tp in partitions:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        group_id = self._settings.group_id
        request = OffsetFetchRequest(
            group_id=group_id,
            topics=[OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in by_topic.items()],
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=[OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in by_topic.items()],
                )
            ],
            require_stable=True,
        )
        reply = await self.retrying(OFFSET_FETCH, request, _unsettled)
        group = reply.groups[0] if reply.groups else reply
        check(group.error_code, f"the committed offsets of group {group_id}")
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for topic in group.topics:
            for p in topic.partitions:
                tp = TopicPartition(topic.name, p.partition_index)
                check(p.error_code, f"the committed offset of {tp}")
                if p.committed_offset >= 0:
                    found[tp] = OffsetAndMetadata(p.committed_offset, p.metadata or "")
        return found

    async def call(self, api: Api, request: Any, *, timeout_ms: int | None = None) -> Any:
        """Send one request to the coordinator. Raises `KafkaError` if it does not answer."""
        try:
            if self._coordinator is None:
                self._coordinator = await self._router.coordinator(self._settings.group_id)
            link: Link = await self._router.broker(self._coordinator, f"group {self._settings.group_id}")
            return await link.call(api, request, timeout_ms or self._router.request_timeout_ms)
        except KafkaError as failure:
            if failure.retriable:
                self._coordinator = None
            raise

    async def retrying(self, api: Api, request: Any, errors: Callable[[Any], list[int]]) -> Any:
        """Send a request to the coordinator, and retry while `errors` of the reply has a retriable error."""

        async def attempt() -> Any:
            reply = await self.call(api, request)
            for code in errors(reply):
                error = error_of(code)
                if error.retriable:
                    self._note(error)
                    check(code, f"group {self._settings.group_id}")
            return reply

        return await self._router.retrying(attempt)

    async def _join_and_sync(self, topics: list[str]) -> list[TopicPartition]:
        settings = self._settings
        subscription = ConsumerProtocolSubscription(topics=topics)
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=versioned(subscription, 1))],
        )
        reply: JoinGroupResponse = await self.call(
            JOIN_GROUP, request, timeout_ms=settings.rebalance_timeout_ms + self._router.request_timeout_ms
        )
        if reply.member_id:
            self.member_id = reply.member_id
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return await self._join_and_sync(topics)
        check(reply.error_code, f"joining group {settings.group_id}")
        self.generation = reply.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if reply.leader == reply.member_id and not reply.skip_assignment:
            assignments = await self._assign(reply)
        answer = await self.call(
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
            timeout_ms=settings.rebalance_timeout_ms + self._router.request_timeout_ms,
        )
        check(answer.error_code, f"joining group {settings.group_id}")
        return read_assignment(answer.assignment)

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Assign the partitions to all members, as the group's leader."""
        wanted = {m.member_id: read_subscription(m.metadata).topics for m in joined.members}
        topics = sorted({topic for topics in wanted.values() for topic in topics})
        await self._router.retrying(lambda: self._router.refresh(topics))
        known = self._router.view.topics
        counts = {topic: len(known[topic].partitions) for topic in topics if topic in known}
        assigned = range_assign(wanted, counts)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=versioned(assignment_of(partitions), 1))
            for member, partitions in assigned.items()
        ]

    def _again(self, failure: KafkaError) -> bool:
        """Note the failure of a rebalance or heartbeat, and return whether to try again."""
        self._note(failure.code)
        lost = failure.code in _LOST_MEMBERSHIP or failure.code == ErrorCode.REBALANCE_IN_PROGRESS
        return lost or failure.retriable

    def _note(self, error: ErrorCode) -> None:
        if error in _LOST_COORDINATOR:
            self._coordinator = None
        elif error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget()
        elif error in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            self.rejoin_needed = True

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None

    async def _keep_alive(self) -> None:
        settings = self._settings
        backoff = self._router.backoff(f"heartbeat to group {self._settings.group_id}")
        loop = asyncio.get_running_loop()
        while not self.rejoin_needed:
            if loop.time() - self._polled_s > settings.rebalance_timeout_ms / 1000:
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
                reply = await self.call(HEARTBEAT, request, timeout_ms=settings.session_timeout_ms)
                check(reply.error_code, f"heartbeat to group {settings.group_id}")
                backoff.reset()
            except KafkaError as failure:
                self._note(failure.code)
                if not self._again(failure):
                    self.fatal = failure
                    break
                wait_ms = min(backoff.after_ms(failure), wait_ms)
            if not self.rejoin_needed:
                await asyncio.sleep(wait_ms / 1000)
        self._wake()


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription. Raises `KafkaError(INCONSISTENT_GROUP_PROTOCOL)` if the bytes are not a subscription."""
    try:
        return consumer.read_subscription(data)
    except ProtocolViolation as violation:
        raise _other_protocol(violation) from None


def read_assignment(data: bytes) -> list[TopicPartition]:
    """A member's partitions; none if the leader sent no assignment. Raises as `read_subscription` does."""
    if not data:
        return []
    try:
        assignment = consumer.read_assignment(data)
    except ProtocolViolation as violation:
        raise _other_protocol(violation) from None
    return [TopicPartition(t.topic, p) for t in assignment.assigned_partitions for p in t.partitions]


def _other_protocol(violation: ProtocolViolation) -> KafkaError:
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return KafkaError(code, f"a member of the group does not use the consumer protocol: {violation}")


def assignment_of(partitions: Iterable[TopicPartition]) -> ConsumerProtocolAssignment:
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return ConsumerProtocolAssignment(
        assigned_partitions=[AssignedPartitions(topic=t, partitions=p) for t, p in by_topic.items()]
    )


def _unsettled(reply: Any) -> list[int]:
    """The error codes of an OffsetFetch reply that `retrying` should check."""
    group = reply.groups[0] if reply.groups else reply
    codes = [p.error_code for topic in group.topics for p in topic.partitions]
    return [group.error_code, *(code for code in codes if code == ErrorCode.UNSTABLE_OFFSET_COMMIT)]
