"""A member by the classic protocol: it joins, assigns for all if it leads, syncs, is heard from, commits, leaves.

Eager members give everything back before they join; cooperative ones (KIP-429) keep what they have, say so, and give
back what they are not given any more, for which they join once more. The leader takes from one member before it gives
to another. The same member in a group that has gone on to the consumer protocol notices only that nobody leads.

A static member that comes back is not told how many partitions there were when its group was assigned (KIP-814): a real
one, and Kafka's coordinator with it, overlooks until the next rebalance what grew while nobody watched. This one knows.
"""

import asyncio
from typing import Any

from moldau.assignors import range_assign
from moldau.assignors.sticky import Claim, cooperative_assign
from moldau.client.consuming.assigning import assignment_of, read_assignment, read_subscription
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from moldau.protocol.consumer import ConsumerProtocolSubscription, OwnedPartitions, versioned
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.worlds.groups.member import ELSEWHERE, Fenced, SimulatedMember

SUBSCRIPTION_VERSION = 3
PARKED_MS = 6_000
"""Answers travel: so much longer than its rebalance timeout nobody waits."""
LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ClassicMember(SimulatedMember):
    @property
    def _protocol(self) -> str:
        return "range" if self.seat.kind == "eager" else "cooperative-sticky"

    async def step(self) -> None:
        watches = self._leads or self.seat.instance_id is not None
        rejoin = not self.settled or (watches and self._assigned_for != self.scene.partitions)
        if rejoin and not self.is_busy:
            await self._rebalance()
        if self.settled and self.now < self.only_commits_until_s:
            await self._keep_in_by_commits()
            return
        if self.epoch >= 0 and self.member_id:
            await self._beat()
        if self.settled and not self.is_busy:
            await self.maybe_commit()

    only_commits_until_s = 0.0
    """Until then it sends no heartbeat. Its coordinator has to take commits as a sign of life."""

    async def _keep_in_by_commits(self) -> None:
        sent_s = self.now
        await self._commit(sorted(self.owned))
        self.is_well(sent_s)

    _leads = False
    """As far as it knows: a static member that comes back before KIP-814 leads without being told."""
    _assigned_for: dict[str, int] | None = None

    async def _beat(self) -> ErrorCode:
        sent_s, is_known, newest = self.now, self.scene.shard(self.group) is not None, self._newest()
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.seat.instance_id,
        )
        error = self.understood((await self.call(HEARTBEAT, request)).error_code)
        if error is ErrorCode.NONE:
            if not is_known or self.ledger.coordinator_went(self.group, sent_s):
                return error  # whoever is loading the group takes every heartbeat
            self.heard(sent_s)
            self.ledger.is_newest(self.group, self.epoch, newest, self.name)
            if self.settled:
                self.is_well(sent_s)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.heard(sent_s)
            self.settled = False
        else:
            self._lost(error, sent_s)
        return error

    def _newest(self) -> int:
        """The newest generation of the group so far: all of a classic group are in one, of a newer one they are not."""
        return self.ledger.newest(self.group, self.scene.era(self.group)) if self.scene.is_classic(self.group) else 0

    async def _stall(self) -> bool:
        """It is heard from, and does not go on to its SyncGroup; whether it still is to."""
        while self.now < self.stalls_until_s:
            await asyncio.sleep(self.seat.heartbeat_ms / 1000)
            if await self._beat() is not ErrorCode.NONE:
                return False
        return True

    def _lost(self, error: ErrorCode, sent_s: float) -> None:
        """Raises `Fenced`, or `KafkaError` if it is to be tried again after a while."""
        self.turned_away(error, sent_s)
        self.settled = False
        if error in LOST:
            self.owns(())
            self.epoch = -1
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED):
            raise Fenced
        elif error is not ErrorCode.REBALANCE_IN_PROGRESS:
            raise KafkaError(error)

    async def _rebalance(self) -> None:
        self.settled = False
        if self.seat.kind == "eager":
            self.owns(())
        claimed = frozenset(self.owned)
        sent_s, is_new = self.now, not self.member_id
        claim = self.claims() if is_new else None
        if self.scene.is_limited:
            self.ledger.lets_go(self.group, self.name)  # there may be no room for it, which others know before it does
        reply = await self._join(sorted(claimed))
        self.answered(claim)
        error = self.understood(reply.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            sent_s = self.now
            reply = await self._join(sorted(claimed))
            error = self.understood(reply.error_code)
        if error is not ErrorCode.NONE:
            self._lost(error, sent_s)
            return
        self.joined(sent_s, is_new)
        self.member_id, self.epoch = reply.member_id, reply.generation_id
        self._leads = bool(reply.members) or (self._leads and reply.skip_assignment)
        if not await self._stall():
            return
        await self._sync(reply, claimed)
        if is_new and self.seat.instance_id is not None and reply.leader:  # in a mixed group the broker watches topics
            self._assigned_for = self.scene.assigned_for.get(self.group, self._assigned_for)
        if is_new and self.seat.instance_id is not None and self.seat.kind == "cooperative":
            self.settled = False  # the one before it may have been about to give something back, which nobody knows

    async def _join(self, claimed: list[TopicPartition]) -> JoinGroupResponse:
        owned: dict[str, list[int]] = {}
        for place in claimed:
            owned.setdefault(place.topic, []).append(place.partition)
        subscription = ConsumerProtocolSubscription(
            topics=list(self.seat.topics),
            owned_partitions=[OwnedPartitions(topic=topic, partitions=parts) for topic, parts in owned.items()],
            generation_id=self.epoch,
        )
        metadata = versioned(subscription, SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.seat.session_ms,
            rebalance_timeout_ms=self.seat.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.seat.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self._protocol, metadata=metadata)],
        )
        reply: JoinGroupResponse = await self.call(JOIN_GROUP, request, self.seat.rebalance_ms + PARKED_MS)
        return reply

    async def _sync(self, joined: JoinGroupResponse, claimed: frozenset[TopicPartition]) -> None:
        era, sent_s, newest = self.scene.era(self.group), self.now, self._newest()
        assignments: list[SyncGroupRequestAssignment] = []
        self._assigned_for = dict(self.scene.partitions)
        if joined.members and not joined.skip_assignment:
            assignments = self._assign(joined)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.seat.instance_id,
            protocol_type="consumer",
            protocol_name=self._protocol,
            assignments=assignments,
        )
        reply = await self.call(SYNC_GROUP, request, self.seat.rebalance_ms + PARKED_MS)
        error = self.understood(reply.error_code)
        if error is not ErrorCode.NONE:
            if error not in ELSEWHERE:
                self._lost(error, sent_s)
            return
        self.heard(sent_s)
        self.ledger.is_newest(self.group, self.epoch, newest, self.name)
        if assignments:
            self.scene.assigned_for[self.group] = self._assigned_for
        places = frozenset(read_assignment(reply.assignment))
        if era == self.scene.era(self.group):
            self.ledger.given(self.group, era, self.epoch, self.who, self.name, sorted(places))
        else:
            self.ledger.given_meanwhile(self.group, places)
        new = places - self.owned
        self.well_s = max(self.well_s, sent_s)
        self.owns(places)
        self.settled = claimed <= places
        await self.begin(new)

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        said = {member.member_id: read_subscription(member.metadata) for member in joined.members}
        wanted = {member: list(one.topics) for member, one in said.items()}
        if self.seat.kind == "eager":
            shares = range_assign(wanted, self.scene.partitions)
        else:
            claims = {
                member: Claim(
                    [TopicPartition(t.topic, p) for t in one.owned_partitions for p in t.partitions], one.generation_id
                )
                for member, one in said.items()
            }
            shares = cooperative_assign(wanted, self.scene.partitions, claims)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=versioned(assignment_of(share), 1))
            for member, share in shares.items()
        ]

    def is_outdated(self, member_id: str, epoch: int) -> bool:
        return epoch < self._newest() or super().is_outdated(member_id, epoch)

    async def leave(self) -> None:
        """Say goodbye, unless its place is to be kept."""
        self.owns(())
        if self.member_id and (self.seat.instance_id is None or self._random.random() < 0.5):
            request: Any = LeaveGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                members=[MemberIdentity(member_id=self.member_id, group_instance_id=self.seat.instance_id)],
            )
            sent_s = self.now
            reply = await self.call(LEAVE_GROUP, request, purpose="goodbye")
            if not reply.error_code and not reply.members[0].error_code:
                self.has_left = True
                self.scene.check_left(self.group, self.member_id, sent_s)
