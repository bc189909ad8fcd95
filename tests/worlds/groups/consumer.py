"""A member by the consumer protocol (KIP-848): heartbeats that say what it has, answered with what it is to have.

It makes its own id, says everything when it joins and after whatever went wrong, and gives back at once what it is not
given any more, unless it is busy.
"""

import uuid

from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import CONSUMER_GROUP_HEARTBEAT
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.worlds.groups.member import Fenced, GroupScene, Seat, SimulatedMember

LEAVES, LEAVES_FOR_NOW = -1, -2
BEGIN_ANEW = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})


class ConsumerMember(SimulatedMember):
    """`names` gives the topic of an id."""

    def __init__(self, scene: GroupScene, seat: Seat, name: str, host: str, ids: dict[str, uuid.UUID]):
        super().__init__(scene, seat, name, host)
        self._ids = ids
        self._names = {one: topic for topic, one in ids.items()}
        self.member_id = str(scene.world.runtime(scene.world.host(host)).random.uuid())
        self.epoch = 0
        self._full = True
        self._to_have: set[TopicPartition] | None = None
        self._believed: set[TopicPartition] = set()
        """What the coordinator takes to be in its hands: what it last said, and what it was given since."""

    async def step(self) -> None:
        if self._to_have is not None and not self.is_busy:
            await self._take()
        await self._beat()
        if self.epoch > 0 and not self.is_busy:
            await self.maybe_commit()
        if self._to_have is not None and not self.is_busy:
            await self._take()
            await self._beat()

    async def _beat(self) -> None:
        sent_s, era = self.now, self.scene.era(self.group)
        joins, full = self.epoch == 0, self._full or self.epoch == 0
        self._full = True
        owned = None
        if full or self._changed:
            owned = [TopicPartitions(topic_id=self._ids[t], partitions=p) for t, p in self._by_topic().items()]
            self._believed = set(self.owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.seat.instance_id,
            rebalance_timeout_ms=self.seat.rebalance_ms if full else -1,
            subscribed_topic_names=list(self.seat.topics) if full else None,
            topic_partitions=owned,
        )
        self._changed = False
        claim = self.claims() if joins else None
        try:
            reply = await self.call(CONSUMER_GROUP_HEARTBEAT, request)
        except KafkaError:
            if owned is not None:
                self._to_have = None  # it may be another's by now: this member has said that it does not have it
            raise
        self.answered(claim)
        error = self.understood(reply.error_code)
        if error is not ErrorCode.NONE:
            self._lost(error, sent_s)
            return
        self.joined(sent_s, joins)
        self._full = False
        self._answered(reply, sent_s, era)
        if joins:
            self.is_well(sent_s)

    _changed = False

    def _answered(self, reply: ConsumerGroupHeartbeatResponse, sent_s: float, era: int) -> None:
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self._to_have = {
                TopicPartition(self._names[one.topic_id], number)
                for one in reply.assignment.topic_partitions
                for number in one.partitions
            }
        has = self.owned if self._to_have is None else self._to_have
        if era == self.scene.era(self.group):
            self.ledger.given(self.group, era, self.epoch, self.who, self.name, sorted(has))
        else:
            self.ledger.given_meanwhile(self.group, has)
        self._believed |= has
        if self._believed <= has:  # nothing is asked of it
            self.is_well(sent_s)
        self.settled = has == self.owned

    async def _take(self) -> None:
        assert self._to_have is not None
        wanted, self._to_have = self._to_have, None
        new = wanted - self.owned
        if wanted != self.owned:
            self._changed = True
        self.owns(wanted)
        await self.begin(new)

    def _lost(self, error: ErrorCode, sent_s: float) -> None:
        """Raises `Fenced`, or `KafkaError` if it is to be tried again after a while."""
        self.turned_away(error, sent_s)
        self.settled = False
        if error in BEGIN_ANEW:
            self._forget()
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            raise Fenced
        raise KafkaError(error)

    def _forget(self) -> None:
        self.owns(())
        self.epoch, self._full, self._to_have = 0, True, None

    def too_late(self) -> None:
        self._forget()
        self.settled = False

    def _by_topic(self) -> dict[str, list[int]]:
        topics: dict[str, list[int]] = {}
        for place in sorted(self.owned):
            topics.setdefault(place.topic, []).append(place.partition)
        return topics

    def as_reader(self) -> tuple[str | None, int]:
        return self.member_id, self.epoch

    async def leave(self) -> None:
        """Say goodbye; a static member may say that it comes back."""
        self.owns(())
        if self.epoch > 0:
            for_now = self.for_now or (self.seat.instance_id is not None and self._random.random() < 0.5)
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=LEAVES_FOR_NOW if for_now else LEAVES,
                instance_id=self.seat.instance_id,
            )
            sent_s = self.now
            reply = await self.call(CONSUMER_GROUP_HEARTBEAT, request, purpose="goodbye")
            if not reply.error_code and not for_now:
                self.has_left = True
                self.scene.check_left(self.group, self.member_id, sent_s)
