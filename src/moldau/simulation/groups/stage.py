"""The stage on which groups are played: one broker, who sits in which seat, and how both come and go.

Processes are members on hosts of their own; the broker is started again whenever it has died. Nothing here draws when
something happens: see `story`. What the coordinators have is looked at from here, for checkers alone.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from moldau.broker import Broker
from moldau.coordinators.groups.shard import GroupShard
from moldau.errors import KafkaError
from moldau.simulation.faults import PowerLoss
from moldau.simulation.groups.classic import ClassicMember
from moldau.simulation.groups.committed import Committed
from moldau.simulation.groups.consumer import ConsumerMember
from moldau.simulation.groups.ledger import Ledger
from moldau.simulation.groups.member import Member, Scene, Seat
from moldau.simulation.groups.outsider import Outsider
from moldau.simulation.groups.plan import RETENTION_S, draw
from moldau.simulation.world import World

BROKER = "broker"
BOOTSTRAP = f"{BROKER}:9092"
OUTSIDE = "outside"
"""A group that nobody joins: it only has offsets."""
DIES_AGAIN = 0.2
"""How often a broker dies right after it has come back."""


@dataclass
class Process:
    member: Member
    task: asyncio.Task[None]
    host: str


@dataclass
class Played:
    """One seat, and who sits there."""

    seat: Seat
    processes: list[Process] = field(default_factory=list)


class Stage:
    def __init__(self, world: World, power_loss: bool):
        self.world = world
        self.power_loss = power_loss
        self.random = world.random
        events = [name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_")]
        plan = self._plan = draw(self.random, events, power_loss)
        self.partitions = plan.partitions
        self.seats = [Played(seat) for seat in plan.seats]
        self.groups = [OUTSIDE, *dict.fromkeys(seat.group for seat in plan.seats)]
        self.ledger = Ledger(world.loop.time, RETENTION_S)
        self.committed = Committed()
        self.ids: dict[str, uuid.UUID] = {}
        self.scene = Scene(world, self.ledger, BOOTSTRAP, self.partitions, self._era, self._shard)
        self.outsider = Outsider(self.scene, self.groups, plan.seats, self.random)
        self.settled_after_s = 0.0
        """How long the slowest group took to come to rest."""
        self.max_size = 0
        """How many members a classic group may have from the next start on, if that is not 0."""
        self._down = asyncio.Event()
        self._serving = False
        self._errands: set[asyncio.Task[None]] = set()
        """What was begun and takes a while."""
        self._hosts = 0
        if plan.work_s:
            world.loop.work_s = lambda: self.random.random() * plan.work_s

    def _begin(self, errand: Coroutine[Any, Any, None], host: str = "story") -> "asyncio.Task[None]":
        task = self.world.loop.create_task(self.world.on(host, errand))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task

    def _look(self) -> None:
        self.ledger.check()
        if self._is_up:
            self.committed.check_coordinator(self._broker)

    # -- the broker

    @property
    def _broker(self) -> Broker:
        broker = self.world.host(BROKER).broker
        assert broker is not None
        return broker

    @property
    def _is_up(self) -> bool:
        return self._serving

    def _era(self, group: str) -> int:
        return self.committed.era(self._broker if self._is_up else None, group)

    def _shard(self, group: str) -> GroupShard | None:
        """Where a coordinator has the group in memory."""
        if not self._is_up:
            return None
        groups = self._broker.coordinators.groups
        try:
            return groups.shard(groups.partition_of(group))
        except KafkaError:
            return None

    def _goes(self) -> None:
        """It is about to serve nobody any more."""
        if self._serving:
            self.committed.follow(self._broker)
        self._serving = False
        for group in self.groups:
            self.ledger.coordinator_goes(group)
        self.ledger.troubled_s[""] = self.world.loop.time() + 1000

    def _dies(self) -> None:
        self._goes()
        self._down.set()

    async def _start_broker(self) -> None:
        """Until it serves: it may die before it does."""
        fewer = {"group_max_size": self.max_size} if self.max_size else {}
        while not self._serving:
            self._down.clear()
            try:
                await self.world.start_broker(BROKER, **self._plan.settings, **fewer)
            except (PowerLoss, asyncio.CancelledError):
                if self.world.host(BROKER).broker is not None:
                    raise
                continue
            self._serving = True
            self.ledger.troubled_s[""] = self.world.loop.time()
            self.committed.check_kept(self._broker)

    async def _supervise(self) -> None:
        try:
            while True:
                await self._down.wait()
                share, longest_s = self.random.random(), self.random.choice((0.2, 3, 10))
                await asyncio.sleep(share * (0.2 if self.outsider.is_calm else longest_s))
                await self._start_broker()
                if not self.outsider.is_calm and self.random.random() < DIES_AGAIN:
                    await asyncio.sleep(self.random.random() * 0.1)
                    self._kill_broker()
        except Exception as error:
            self.ledger.broken(f"the broker does not start: {error!r}")
            raise

    def _kill_broker(self) -> None:
        if self._is_up:
            self._dies()
            self.world.kill_broker(BROKER, self.power_loss and self.random.random() < 0.7)

    async def _stop_cleanly(self) -> None:
        self._goes()
        try:
            await self.world.stop_broker(BROKER)
        except (PowerLoss, asyncio.CancelledError, AssertionError):
            if self.world.host(BROKER).broker is not None:
                raise
        self._down.set()

    # -- members

    def _sit(self, played: Played) -> None:
        """A new process takes the seat."""
        seat = played.seat
        self._hosts += 1
        host, name = f"{seat.name}-{self._hosts}", f"{seat.name}#{self._hosts}"
        member: Member
        if seat.kind == "consumer":
            member = ConsumerMember(self.scene, seat, name, host, self.ids)
        else:
            member = ClassicMember(self.scene, seat, name, host)
        task = self.world.loop.create_task(self.world.on(host, self._live(member)))
        played.processes.append(Process(member, task, host))

    async def _live(self, member: Member) -> None:
        try:
            await member.live()
        except Exception as error:
            self.ledger.broken(f"{member.name} failed: {error!r}")
            raise
        finally:
            self.ledger.lets_go(member.group, member.name)
            if not member.leaves:
                await member.close()

    def _living(self) -> list[tuple[Played, Process]]:
        for played in self.seats:
            played.processes = [process for process in played.processes if not process.task.done()]
        return [(played, process) for played in self.seats for process in played.processes]

    def _kill(self, process: Process) -> None:
        process.member.is_dead = True
        self.world.kill(process.host)
        self.ledger.lets_go(process.member.group, process.member.name)

    def _leave(self, process: Process) -> asyncio.Task[None]:
        async def leave() -> None:
            goodbye = process.member
            goodbye.leaves = True
            process.task.cancel()
            await asyncio.gather(process.task, return_exceptions=True)
            with contextlib.suppress(KafkaError):
                await goodbye.leave()
            await goodbye.close()

        return self._begin(leave(), process.host)

    def _members(self, group: str) -> list[Member]:
        return [process.member for played, process in self._living() if played.seat.group == group]

    def _epochs(self) -> dict[str, int]:
        return {process.member.name: process.member.epoch for _, process in self._living()}

    def _heal(self, host: str) -> None:
        self.ledger.troubled_s[host] = self.world.loop.time()
        self.world.network.heal(host)

    def _count_partitions(self) -> None:
        """As the cluster has them: nobody may have heard that there are more."""
        if self._is_up:
            topics = self._broker.cluster.image.topics
            self.partitions.update({topic: len(topics[topic].partitions) for topic in self.partitions})
