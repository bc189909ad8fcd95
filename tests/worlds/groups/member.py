"""One process that is a member of a group, whichever protocol it speaks: its connections, what it holds, its commits.

`Seat` is what a place in the group is configured with; a process sits there until it leaves, dies or is fenced, and
another may take the seat after it. What it is told goes into the ledger. A process may be `busy`, as an application
that takes long over its records: it goes on to be heard from, but gives nothing back and joins no rebalance. It may be
`frozen`, and does nothing at all; one that stalls joins, and asks for nothing after that. Then, as when nobody answers
it, it stops working in time.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from moldau.client.failures import error_of
from moldau.client.routing import Router
from moldau.coordinators.groups.shard import GroupShard
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.peers.link import Link
from moldau.protocol.apis import JOIN_GROUP, OFFSET_COMMIT, OFFSET_FETCH, Api
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.simulation.world import World
from tests.worlds.groups.ledger import Claim, GroupLedger

ELSEWHERE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
PERHAPS = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR})
"""After these nobody knows whether a commit was done."""
CALL_MS = 15_000
LATE_S_MAX = 2.0


class Fenced(Exception):
    """Another process has this one's place, or there is none for it."""


@dataclass(frozen=True)
class Seat:
    """`kind`: "eager", "cooperative" or "consumer" (KIP-848); `join_version` is the newest JoinGroup that it knows."""

    group: str
    name: str
    kind: str
    instance_id: str | None
    topics: tuple[str, ...]
    session_ms: int
    rebalance_ms: int
    heartbeat_ms: int
    join_version: int


@dataclass
class GroupScene:
    """What all members play on; `partitions` is how many each topic has, `assigned_for` how many each had when the
    leader of a group last assigned; `shard` is where a coordinator has a group in memory, if one has. There may be more
    members than are allowed where it `is_limited`."""

    world: World
    ledger: GroupLedger
    bootstrap: str
    partitions: dict[str, int]
    era: Callable[[str], int]
    shard: Callable[[str], GroupShard | None]
    assigned_for: dict[str, dict[str, int]] = field(default_factory=dict)
    is_limited: bool = False

    def is_classic(self, group: str) -> bool:
        """Whether a coordinator has the group, as one of the classic protocol, and the log has no other."""
        shard = self.shard(group)
        if shard is None or group in shard.consumer.live or group in shard.consumer.stored:
            return False
        return group in shard.classic.live

    def check_left(self, group: str, member_id: str, sent_s: float) -> None:
        """A coordinator answered just now that the member with that id, which is never given again, is out."""
        shard = self.shard(group)
        if shard is None or self.ledger.coordinator_went(group, sent_s):
            return
        groups = (shard.classic.live.get(group), shard.consumer.live.get(group))
        if any(one is not None and member_id in one.members for one in groups):
            raise self.ledger.broken(f"{member_id} has left {group} and is still there")


class GroupCaller:
    """Questions to the coordinator of a group, from one host."""

    def __init__(self, scene: GroupScene, host: str, group: str, join_version: int = 99):
        self.scene, self.host, self.group = scene, host, group
        self.ledger = scene.ledger
        runtime = scene.world.runtime(scene.world.host(host))
        self._router = Router(
            scene.bootstrap,
            host,
            runtime=runtime,
            request_timeout_ms=CALL_MS,
            highest={JOIN_GROUP.key: join_version},
        )
        self._node: int | None = None

    @property
    def now(self) -> float:
        return self.scene.world.loop.time()

    async def close(self) -> None:
        await self._router.close()

    async def call(self, api: Api, request: Any, timeout_ms: int = CALL_MS, purpose: str = "group") -> Any:
        """Raises `KafkaError` if there is no answer."""
        sent_s = self.now
        try:
            if self._node is None:
                self._node = await self._router.coordinator(self.group)
            link: Link = await self._router.broker(self._node, purpose)
            sent_s = self.now
            return await link.call(api, request, timeout_ms)
        except KafkaError as failure:
            self._node = None
            if failure.code is ErrorCode.REQUEST_TIMED_OUT:
                self.ledger.unanswered(self.host, api.name, sent_s)
            raise

    def understood(self, code: int) -> ErrorCode:
        """The error, after which another broker may have to be looked for."""
        error = error_of(code)
        if error in ELSEWHERE:
            self._node = None
        return error

    async def commit(
        self,
        places: Collection[TopicPartition],
        member_id: str = "",
        epoch: int = -1,
        instance_id: str | None = None,
        who: str | None = None,
        judged: Callable[[], Collection[TopicPartition]] | None = None,
    ) -> dict[TopicPartition, ErrorCode]:
        """Commit offsets that were never committed before, as `who`: places that are another's have to be refused, of
        those that are to be `judged` when the answer is there. Raises `KafkaError` if nobody knows whether they are
        committed."""
        ledger = self.ledger
        topics: dict[str, OffsetCommitRequestTopic] = {}
        writes = {}
        for place in places:
            value = ledger.value()
            writes[place] = ledger.writes(self.group, place, value)
            part = OffsetCommitRequestPartition(
                partition_index=place.partition, committed_offset=value, committed_metadata=""
            )
            topics.setdefault(place.topic, OffsetCommitRequestTopic(name=place.topic)).partitions.append(part)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=list(topics.values()),
        )
        reply = await self.call(OFFSET_COMMIT, request, purpose="commits")
        errors = {}
        judged_places = places if judged is None else judged()
        for topic in reply.topics:
            for part in topic.partitions:
                place = TopicPartition(topic.name, part.partition_index)
                error = errors[place] = self.understood(part.error_code)
                if error is ErrorCode.NONE:
                    ledger.wrote(self.group, place, writes[place], who if place in judged_places else None)
                elif error not in PERHAPS:
                    ledger.did_not_write(self.group, place, writes[place])
        return errors

    async def fetch(
        self, places: Collection[TopicPartition], member_id: str | None = None, epoch: int = -1
    ) -> ErrorCode:
        """Read committed offsets, and let the ledger check them."""
        by_topic: dict[str, list[int]] = {}
        for place in places:
            by_topic.setdefault(place.topic, []).append(place.partition)
        asked = [OffsetFetchRequestTopics(name=name, partition_indexes=parts) for name, parts in by_topic.items()]
        group = OffsetFetchRequestGroup(group_id=self.group, member_id=member_id, member_epoch=epoch, topics=asked)
        sent_s = self.now
        reply = (await self.call(OFFSET_FETCH, OffsetFetchRequest(groups=[group]), purpose="commits")).groups[0]
        error = self.understood(reply.error_code)
        if error is ErrorCode.NONE:
            for topic in reply.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.name, part.partition_index)
                    offset = part.committed_offset if part.committed_offset >= 0 else None
                    if not part.error_code:
                        self.ledger.read(self.group, place, offset, sent_s)
        return error


class SimulatedMember(GroupCaller, ABC):
    """The process `name` in a seat, on a host of its own."""

    def __init__(self, scene: GroupScene, seat: Seat, name: str, host: str):
        super().__init__(scene, host, seat.group, seat.join_version)
        self.seat = seat
        self.name = name
        self.who = seat.instance_id or name
        self.member_id = ""
        self.epoch = -1
        self.owned: set[TopicPartition] = set()
        self.settled = False
        """Whether it is in the newest generation, as far as it knows."""
        self.busy_until_s = self.frozen_until_s = self.stalls_until_s = 0.0
        self.well_s = 0.0
        self.times_too_late = 0
        self.leaves = self.has_left = self.for_now = self.is_dead = False
        self._commits: set[asyncio.Task[None]] = set()
        self._random = scene.world.random

    @property
    def is_busy(self) -> bool:
        return self.now < self.busy_until_s

    async def live(self) -> None:
        """Until it is fenced or cancelled."""
        try:
            while not self.is_dead:  # a request that fails at the moment of death swallows that
                try:
                    await self.step()
                    pause_ms = self.seat.heartbeat_ms * (0.8 + 0.4 * self._random.random())
                except Fenced:
                    self.owns(())
                    return
                except KafkaError:
                    pause_ms = 50 + self._random.random() * 500
                await asyncio.sleep(pause_ms / 1000)
                if self.now < self.frozen_until_s:
                    await asyncio.sleep(self.frozen_until_s - self.now)
                    self._commit_late(self.owned, 0.0)
                self._stop_if_too_late()
        finally:
            for task in list(self._commits):
                task.cancel()
            await asyncio.gather(*self._commits, return_exceptions=True)

    @abstractmethod
    async def step(self) -> None:
        """What its protocol has it do next: join, beat, poll, commit."""

    @abstractmethod
    async def leave(self) -> None:
        """Say goodbye, as its protocol does."""

    # -- what it holds

    def owns(self, places: Collection[TopicPartition]) -> None:
        """It works on these and nothing else."""
        gone, self.owned = self.owned.difference(places), set(places)
        if gone and self._random.random() < 0.4:
            self._commit_late(gone, self._random.random() * LATE_S_MAX)
        patience_s = min(self.seat.session_ms, self.seat.rebalance_ms) / 1000
        if places:
            self.ledger.holds(self.group, self.who, self.name, places, self.well_s + patience_s)
        else:
            self.ledger.lets_go(self.group, self.name)

    def is_well(self, sent_s: float) -> None:
        """What it sent then was answered: it is a member, and nothing is asked of it."""
        self.well_s = max(self.well_s, sent_s)
        self.owns(self.owned)

    def _stop_if_too_late(self) -> None:
        patience_s = min(self.seat.session_ms, self.seat.rebalance_ms) / 1000
        if self.owned and self.now >= self.well_s + patience_s:
            self.times_too_late += 1
            self.too_late()

    def too_late(self) -> None:
        """It was not heard in time: what it had may be another's."""
        self.owns(())
        self.settled = False

    def claims(self) -> Claim | None:
        """It asks to be let in as a new member."""
        instance_id = self.seat.instance_id
        return None if instance_id is None else self.ledger.claims(self.group, instance_id, self.name)

    def answered(self, claim: Claim | None) -> None:
        if claim is not None:
            claim.done_s = self.now

    def joined(self, sent_s: float, is_new: bool) -> None:
        """Its JoinGroup was taken; as a new member's it fences whoever had the instance id."""
        if is_new and self.seat.instance_id is not None:
            self.ledger.joined_as(self.group, self.seat.instance_id, self.name, sent_s)
        self.heard(sent_s)

    def heard(self, sent_s: float) -> None:
        self.ledger.accepted(self.group, self.seat.instance_id, self.name, sent_s)

    def turned_away(self, error: ErrorCode, sent_s: float) -> None:
        if error is ErrorCode.FENCED_INSTANCE_ID and self.seat.instance_id is not None:
            self.ledger.fenced(self.group, self.seat.instance_id, self.name, sent_s)
        self.ledger.refused(self.group, self.name, error, sent_s)

    # -- offsets

    async def begin(self, places: Collection[TopicPartition]) -> None:
        """Look where the group stands in places that are new to this member."""
        if places:
            await self.fetch(sorted(places), *self.as_reader())

    def as_reader(self) -> tuple[str | None, int]:
        """As what it reads offsets."""
        return None, -1

    async def maybe_commit(self) -> None:
        """Now and then, some of what it owns; sometimes without waiting for the answer."""
        if not self.owned or self._random.random() < 0.4:
            return
        places = [place for place in sorted(self.owned) if self._random.random() < 0.7]
        if not places:
            return
        if self._random.random() < 0.3:
            self._in_the_background(lambda: self._commit(places))
        else:
            await self._commit(places)

    async def _commit(self, places: list[TopicPartition]) -> None:
        sent_s = self.now
        errors = await self.commit(places, self.member_id, self.epoch, self.seat.instance_id, self.who)
        if ErrorCode.NONE in errors.values():
            self.heard(sent_s)
        for error in dict.fromkeys(errors.values()):
            if error is not ErrorCode.NONE:
                self.turned_away(error, sent_s)

    def _commit_late(self, places: Collection[TopicPartition], seconds: float) -> None:
        """Something in the process commits what it had a while ago, as if it still had it."""
        member_id, epoch, sorted_places = self.member_id, self.epoch, sorted(places)

        async def commit() -> None:
            await asyncio.sleep(seconds)
            outdated, held = self.is_outdated(member_id, epoch), self.owned.copy()

            def judged() -> Collection[TopicPartition]:
                """By its answer the member may be in an epoch of that number again, in a group that was made anew."""
                era = self.scene.era(self.group)
                was_in = self.ledger.was_in(self.group, era, self.name, epoch)
                return sorted_places if outdated and was_in and self.is_outdated(member_id, epoch) else held

            await self.commit(sorted_places, member_id, epoch, self.seat.instance_id, self.who, judged)

        if member_id and epoch >= 0 and places and not self.leaves:
            self._in_the_background(commit)

    def is_outdated(self, member_id: str, epoch: int) -> bool:
        """Whether the coordinator has to refuse what is committed with these, should the place be another's by then. It
        looks at epochs, not at places: who lets go of these in several steps stays in its epoch meanwhile, and a
        generation whose assignment was not in the log yet is counted once more after a crash. That is for what the
        member has let go of; what it still holds is never another's."""
        return (member_id, epoch) != (self.member_id, self.epoch)

    def _in_the_background(self, work: Callable[[], Awaitable[None]]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(KafkaError):
                await work()

        task = asyncio.ensure_future(quietly())
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
