"""The broker, the seats and the members of one world of groups, and how each of them starts and ends.

Each member is a process on a host of its own; the broker is started again whenever it has died. When things happen is
drawn elsewhere (`trouble`, `calm`). Checkers, and nothing else, look into the broker's coordinators through this class.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.broker import Broker
from moldau.coordinators.groups.shard import GroupShard
from moldau.errors import KafkaError
from moldau.simulation.faults import PowerLoss
from moldau.simulation.world import World
from tests.worlds.groups.classic import ClassicMember
from tests.worlds.groups.committed import CommittedLog
from tests.worlds.groups.consumer import ConsumerMember
from tests.worlds.groups.ledger import GroupLedger
from tests.worlds.groups.member import GroupScene, Seat, SimulatedMember
from tests.worlds.groups.outsider import Outsider
from tests.worlds.groups.plan import RETENTION_S, draw

BROKER = "broker"
BOOTSTRAP = f"{BROKER}:9092"
OUTSIDE = "outside"
"""A group that nobody joins: it only has offsets."""
DIES_AGAIN = 0.2
"""How often a broker dies right after it has come back."""


@dataclass
class MemberProcess:
    member: SimulatedMember
    task: asyncio.Task[None]
    host: str


@dataclass
class TakenSeat:
    """One seat and the processes in it."""

    seat: Seat
    processes: list[MemberProcess] = field(default_factory=list)


class GroupStage:
    """`events` are the names of what may happen; the seed draws how likely each one is."""

    def __init__(self, world: World, power_loss: bool, events: Sequence[str]):
        self.world = world
        self.power_loss = power_loss
        self.random = world.random
        plan = self.plan = draw(self.random, events, power_loss)
        self.partitions = plan.partitions
        self.seats = [TakenSeat(seat) for seat in plan.seats]
        self.groups = [OUTSIDE, *dict.fromkeys(seat.group for seat in plan.seats)]
        self.ledger = GroupLedger(world.loop.time, RETENTION_S)
        self.committed = CommittedLog()
        self.ids: dict[str, uuid.UUID] = {}
        self.scene = GroupScene(world, self.ledger, BOOTSTRAP, self.partitions, self._era, self._shard)
        self.outsider = Outsider(self.scene, self.groups, plan.seats, self.random)
        self.max_size = 0
        """The most members a classic group may have from the broker's next start on; 0 is no limit."""
        self._down = asyncio.Event()
        self._serving = False
        self.errands: set[asyncio.Task[None]] = set()
        """Tasks that were begun and have not ended."""
        self._hosts = 0
        if plan.work_s:
            world.loop.work_s = lambda: self.random.random() * plan.work_s

    def begin(self, errand: Coroutine[Any, Any, None], host: str = "story") -> "asyncio.Task[None]":
        task = self.world.loop.create_task(self.world.on(host, errand))
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)
        return task

    def look(self) -> None:
        self.ledger.check()
        if self.is_up:
            self.committed.check_coordinator(self.broker)

    # -- the broker

    @property
    def broker(self) -> Broker:
        broker = self.world.host(BROKER).broker
        assert broker is not None
        return broker

    @property
    def is_up(self) -> bool:
        return self._serving

    def _era(self, group: str) -> int:
        return self.committed.era(self.broker if self.is_up else None, group)

    def _shard(self, group: str) -> GroupShard | None:
        """The coordinator's partition that has the group in memory; None if it is not loaded."""
        if not self.is_up:
            return None
        groups = self.broker.coordinators.groups
        try:
            return groups.shard(groups.partition_of(group))
        except KafkaError:
            return None

    def _goes(self) -> None:
        """The broker is about to stop serving."""
        if self._serving:
            self.committed.follow(self.broker)
        self._serving = False
        for group in self.groups:
            self.ledger.coordinator_goes(group)
        self.ledger.troubled_s[""] = self.world.loop.time() + 1000

    def dies(self) -> None:
        self._goes()
        self._down.set()

    async def start_broker(self) -> None:
        """Start the broker again and again until it serves: it may die before that."""
        fewer = {"group_max_size": self.max_size} if self.max_size else {}
        while not self._serving:
            self._down.clear()
            try:
                await self.world.start_broker(BROKER, **self.plan.settings, **fewer)
            except (PowerLoss, asyncio.CancelledError):
                if self.world.host(BROKER).broker is not None:
                    raise
                continue
            self._serving = True
            self.ledger.troubled_s[""] = self.world.loop.time()
            self.committed.check_kept(self.broker)

    async def supervise(self) -> None:
        try:
            while True:
                await self._down.wait()
                share, longest_s = self.random.random(), self.random.choice((0.2, 3, 10))
                await asyncio.sleep(share * (0.2 if self.outsider.is_calm else longest_s))
                await self.start_broker()
                if not self.outsider.is_calm and self.random.random() < DIES_AGAIN:
                    await asyncio.sleep(self.random.random() * 0.1)
                    self.kill_broker()
        except Exception as error:
            self.ledger.broken(f"the broker does not start: {error!r}")
            raise

    def kill_broker(self) -> None:
        if self.is_up:
            self.dies()
            self.world.kill_broker(BROKER, self.power_loss and self.random.random() < 0.7)

    async def stop_cleanly(self) -> None:
        self._goes()
        try:
            await self.world.stop_broker(BROKER)
        except (PowerLoss, asyncio.CancelledError, AssertionError):
            if self.world.host(BROKER).broker is not None:
                raise
        self._down.set()

    # -- members

    def sit(self, taken: TakenSeat) -> None:
        """Start a new process in the seat."""
        seat = taken.seat
        self._hosts += 1
        host, name = f"{seat.name}-{self._hosts}", f"{seat.name}#{self._hosts}"
        member: SimulatedMember
        if seat.kind == "consumer":
            member = ConsumerMember(self.scene, seat, name, host, self.ids)
        else:
            member = ClassicMember(self.scene, seat, name, host)
        task = self.world.loop.create_task(self.world.on(host, self._live(member)))
        taken.processes.append(MemberProcess(member, task, host))

    async def _live(self, member: SimulatedMember) -> None:
        try:
            await member.live()
        except Exception as error:
            self.ledger.broken(f"{member.name} failed: {error!r}")
            raise
        finally:
            self.ledger.lets_go(member.group, member.name)
            if not member.leaves:
                await member.close()

    def living(self) -> list[tuple[TakenSeat, MemberProcess]]:
        for taken in self.seats:
            taken.processes = [process for process in taken.processes if not process.task.done()]
        return [(taken, process) for taken in self.seats for process in taken.processes]

    def kill(self, process: MemberProcess) -> None:
        process.member.is_dead = True
        self.world.kill(process.host)
        self.ledger.lets_go(process.member.group, process.member.name)

    def leave(self, process: MemberProcess) -> asyncio.Task[None]:
        async def leave() -> None:
            goodbye = process.member
            goodbye.leaves = True
            process.task.cancel()
            await asyncio.gather(process.task, return_exceptions=True)
            with contextlib.suppress(KafkaError):
                await goodbye.leave()
            await goodbye.close()

        return self.begin(leave(), process.host)

    def members(self, group: str) -> list[SimulatedMember]:
        return [process.member for taken, process in self.living() if taken.seat.group == group]

    def epochs(self) -> dict[str, int]:
        return {process.member.name: process.member.epoch for _, process in self.living()}

    def heal(self, host: str) -> None:
        self.ledger.troubled_s[host] = self.world.loop.time()
        self.world.network.heal(host)

    def count_partitions(self) -> None:
        """Take over the cluster's partition counts: clients may not know the new ones yet."""
        if self.is_up:
            topics = self.broker.cluster.image.topics
            self.partitions.update({topic: len(topics[topic].partitions) for topic in self.partitions})
