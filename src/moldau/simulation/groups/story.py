"""What happens to groups and their broker in one world: who comes and goes, what breaks and when, and what must be true
at the end.

A seed draws its groups, its settings, its weather, and how likely each event is in it (many not at all). Then follows
a time of trouble, and then a calm one, in which every group has to come to rest within a bound and stay there: each
partition with one member, nobody turned away. At last all go, the broker starts once more, and the offsets that were
acknowledged are those that are read; or time goes on until even they are forgotten.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from moldau.broker import Broker
from moldau.client.admin import AsyncAdmin
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.simulation.faults import PowerLoss
from moldau.simulation.groups.classic import ClassicMember
from moldau.simulation.groups.committed import Committed
from moldau.simulation.groups.consumer import ConsumerMember
from moldau.simulation.groups.ledger import Ledger
from moldau.simulation.groups.member import Caller, Member, Scene, Seat
from moldau.simulation.groups.outsider import Outsider
from moldau.simulation.groups.plan import FORGETS_S, RETENTION_S, SESSION_MS, draw
from moldau.simulation.network import Weather
from moldau.simulation.world import World

BROKER = "broker"
BOOTSTRAP = f"{BROKER}:9092"
OUTSIDE = "outside"
"""A group that nobody joins: it only has offsets."""
CALM_S = 6.0
QUIET_S = 2.5
"""So long nothing changes in a group that is at rest: longer than an assignment is put off."""
SLACK_S = 25.0
"""For connections that are dialled again, backoffs, and the rounds of a cooperative rebalance."""
PARTITIONS_MAX = 8
DIES_AGAIN = 0.2
"""How often a broker dies right after it has come back."""
BUSY_S_MAX = 25.0


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


class Story:
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
        self.scene = Scene(world, self.ledger, BOOTSTRAP, self.partitions, self._era, self._is_known)
        self.outsider = Outsider(self.scene, self.groups, plan.seats, self.random)
        self.settled_after_s = 0.0
        """How long the slowest group took to come to rest."""
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

    # -- the whole

    async def tell(self) -> None:
        await self._start_broker()
        supervisor = self.world.loop.create_task(self._supervise())
        host = self.world.host("admin")
        async with AsyncAdmin(BOOTSTRAP, runtime=self.world.runtime(host)) as admin:
            for topic, count in self.partitions.items():
                await admin.create_topic(topic, partitions=count)
            self.ids = {topic: view.id for topic, view in self._broker.cluster.image.topics.items()}
            self.admin = admin
            outsider = self.world.loop.create_task(self.world.on("outsider", self.outsider.live()))
            try:
                await self._trouble()
                await self._calm()
            finally:
                outsider.cancel()
                await asyncio.gather(outsider, return_exceptions=True)
            await self._end()
        supervisor.cancel()
        self.ledger.check()
        await self.world.stop_broker(BROKER)

    async def _trouble(self) -> None:
        weights = self._plan.weights
        events = [getattr(self, f"_do_{name}") for name in weights]
        for seat in self.seats[:: self.random.randint(1, 3)]:
            self._sit(seat)
        for _ in range(self.random.randint(8, 24)):
            await asyncio.sleep(self.random.random() * self.random.choice((0.2, 2, 6)))
            (event,) = self.random.choices(events, list(weights.values()))
            event()
            self._look()

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

    def _is_known(self, group: str) -> bool:
        if not self._is_up:
            return False
        groups = self._broker.coordinators.groups
        try:
            groups.shard(groups.partition_of(group))
        except KafkaError:
            return False
        return True

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
        while not self._serving:
            self._down.clear()
            try:
                await self.world.start_broker(BROKER, **self._plan.settings)
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
                await asyncio.sleep(self.random.random() * self.random.choice((0.2, 3, 10)))
                await self._start_broker()
                if not self.outsider.is_calm and self.random.random() < DIES_AGAIN:
                    await asyncio.sleep(self.random.random() * 0.1)
                    self._do_kill_broker()
        except Exception as error:
            self.ledger.broken(f"the broker does not start: {error!r}")
            raise

    def _do_kill_broker(self) -> None:
        if self._is_up:
            self._dies()
            self.world.kill_broker(BROKER, self.power_loss and self.random.random() < 0.7)

    def _do_kill_broker_at_call(self) -> None:
        if self._is_up:
            power_loss = self.power_loss and self.random.random() < 0.7
            self.world.kill_broker_at_call(BROKER, self.random.randint(1, 12), power_loss, self._dies)

    def _do_stop_broker(self) -> None:
        if self._is_up:
            self._begin(self._stop_cleanly())

    async def _stop_cleanly(self) -> None:
        self._goes()
        try:
            await self.world.stop_broker(BROKER)
        except (PowerLoss, asyncio.CancelledError, AssertionError):
            if self.world.host(BROKER).broker is not None:
                raise
        self._down.set()

    def _do_move(self) -> None:
        """The coordinator of a partition goes elsewhere, perhaps in the middle of a commit, and comes back."""
        if self._is_up:
            groups, group = self._broker.coordinators.groups, self.random.choice(self.groups)
            self._begin(self._commit_once(group))
            self._begin(self._move(groups, groups.partition_of(group)), BROKER)

    async def _commit_once(self, group: str) -> None:
        caller = Caller(self.scene, "story", group)
        with contextlib.suppress(KafkaError):
            await caller.commit([TopicPartition("t", 0)])
        await caller.close()

    async def _move(self, groups: GroupCoordinator, number: int) -> None:
        patience = self.random.randint(0, 100)
        while patience > 0 and not (self._is_up and self.committed.is_behind(self._broker, number)):
            patience -= 1
            await asyncio.sleep(0.01)
        groups.resign(number)
        for group in self.groups:
            if groups.partition_of(group) == number:
                self.ledger.coordinator_goes(group)
        await asyncio.sleep(self.random.random() * self.random.choice((0.02, 2)))
        groups.lead(number)

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
            self.ledger.lets_go(member.group, member.who)
            if not member.leaves:
                await member.close()

    def _living(self) -> list[tuple[Played, Process]]:
        for played in self.seats:
            played.processes = [process for process in played.processes if not process.task.done()]
        return [(played, process) for played in self.seats for process in played.processes]

    def _some(self) -> tuple[Played, Process] | None:
        living = self._living()
        return self.random.choice(living) if living else None

    def _do_arrive(self) -> None:
        self._living()
        empty = [played for played in self.seats if not played.processes]
        if empty:
            self._sit(self.random.choice(empty))

    def _do_duplicate(self) -> None:
        """Somebody starts a second process with the same instance id."""
        if (some := self._some()) and some[0].seat.instance_id is not None:
            self._sit(some[0])

    def _do_die(self) -> None:
        if some := self._some():
            self._kill(some[1])
            if self.random.random() < 0.4:
                self._sit(some[0])

    def _kill(self, process: Process) -> None:
        self.world.kill(process.host)
        self.ledger.lets_go(process.member.group, process.member.who)

    def _do_leave(self) -> None:
        if some := self._some():
            self._leave(some[1])

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

    def _do_busy(self) -> None:
        if some := self._some():
            self.random.choice((self._do_arrive, self._do_arrive, self._do_leave))()
            some[1].member.busy_until_s = self.world.loop.time() + self.random.random() * BUSY_S_MAX

    def _do_freeze(self) -> None:
        if some := self._some():
            some[1].member.frozen_until_s = self.world.loop.time() + self.random.random() * 12

    def _do_cut(self) -> None:
        """A member and the broker cannot hear each other, or one of them not the other."""
        if some := self._some():
            host, both = some[1].host, self.random.random() < 0.6
            ends = (host, BROKER) if self.random.random() < 0.5 else (BROKER, host)
            self.world.network.partition(*ends, both_ways=both)
            self.ledger.troubled_s[host] = self.world.loop.time() + 1000
            self.world.loop.call_later(self.random.random() * 12, self._heal, host)

    def _heal(self, host: str) -> None:
        self.ledger.troubled_s[host] = self.world.loop.time()
        self.world.network.heal(host)

    def _do_break_connections(self) -> None:
        if some := self._some():
            self.world.network.break_connections(some[1].host)

    def _do_grow(self) -> None:
        topic = self.random.choice(list(self.partitions))
        if self.partitions[topic] < PARTITIONS_MAX:
            self._begin(self._grow(topic, self.partitions[topic] + 1))

    async def _grow(self, topic: str, count: int) -> None:
        with contextlib.suppress(KafkaError):
            await self.admin.create_partitions(topic, count)
        self._count_partitions()

    def _count_partitions(self) -> None:
        """As the cluster has them: nobody may have heard that there are more."""
        if self._is_up:
            topics = self._broker.cluster.image.topics
            self.partitions.update({topic: len(topics[topic].partitions) for topic in self.partitions})

    # -- the end

    async def _calm(self) -> None:
        """Nothing goes wrong any more: all groups come to rest in time, and stay so."""
        faults = self.world.host(BROKER).disk.faults
        if faults is not None:
            faults.watch = None
        self.world.network.weather = Weather(delay_ms_max=10)
        self.world.network.heal()
        self.outsider.is_calm = True
        await asyncio.gather(*self._errands, return_exceptions=True)
        while not self._is_up or self.outsider.interferes:
            await asyncio.sleep(0.1)
        self._living()
        for played in self.seats:
            for process in played.processes[:-1]:
                self._kill(process)
            if not played.processes and not self._members(played.seat.group):
                self._sit(played)
        self._downgrade()
        for _, process in self._living():
            self._heal(process.host)
            process.member.busy_until_s = process.member.frozen_until_s = 0.0
        begun_s = self.world.loop.time()
        bound_s = begun_s + (SESSION_MS + 2 * self._plan.rebalance_ms + self._plan.initial_delay_ms) / 1000 + SLACK_S
        epochs, since_s = self._epochs(), begun_s
        while self.world.loop.time() < since_s + QUIET_S:
            restless = self._restless(begun_s)
            if restless is not None or epochs != self._epochs():
                epochs, since_s = self._epochs(), self.world.loop.time()
            if since_s > bound_s:
                raise self.ledger.broken(f"not at rest after {bound_s - begun_s:.0f} s: {restless or epochs}")
            await asyncio.sleep(0.25)
            self.ledger.check()
        self.settled_after_s = since_s - begun_s
        self.ledger.calm_s = self.world.loop.time()
        await self._rest()

    def _downgrade(self) -> None:
        """In some groups all who speak the newer protocol go, if there are others."""
        for group in self.groups[1:]:
            mine = [(played, process) for played, process in self._living() if played.seat.group == group]
            newer = [process for played, process in mine if played.seat.kind == "consumer"]
            if 0 < len(newer) < len(mine) and self.random.random() < 0.5:
                for process in newer:
                    self._kill(process)

    def _members(self, group: str) -> list[Member]:
        return [process.member for played, process in self._living() if played.seat.group == group]

    def _epochs(self) -> dict[str, int]:
        return {process.member.name: process.member.epoch for _, process in self._living()}

    def _restless(self, since_s: float = 0.0) -> str | None:
        """What is not yet as it is to be. The dead are missed after a session, and the fenced have to hear of it; each
        time a group changes its protocol its members have a new session, the dead as well."""
        if self.world.loop.time() < since_s + SESSION_MS / 1000 + 1:
            return "it may be quiet only because nobody has noticed yet"
        self._count_partitions()
        for played in self.seats:
            if not self._members(played.seat.group):
                self._sit(played)
        for group in self.groups[1:]:
            members = self._members(group)
            if not members:
                return f"{group} has nobody"
            well = all(member.settled and member.well_s > since_s for member in members)
            if len({member.epoch for member in members}) > 1 or not well:
                said = ", ".join(f"{m.name} at {m.epoch}{'' if m.settled else ' unsettled'}" for m in members)
                return f"{group}: {said}"
            if dead := self.committed.members(self._broker, group) - {member.member_id for member in members}:
                return f"{group} has members that nobody is: {sorted(dead)}"
            topics = dict.fromkeys(topic for member in members for topic in member.seat.topics)
            wanted = sorted(TopicPartition(t, number) for t in topics for number in range(self.partitions[t]))
            owned = sorted(place for member in members for place in member.owned)
            if owned != wanted:
                return f"{group} works on {owned} instead of {wanted}"
        return None

    async def _rest(self) -> None:
        before = self.ledger.errors.copy()
        epochs = self._epochs()
        until_s = self.world.loop.time() + CALM_S
        while self.world.loop.time() < until_s:
            await asyncio.sleep(0.5)
            self._look()
            if (restless := self._restless()) is not None:
                raise self.ledger.broken(f"no longer at rest, though all is well: {restless}")
        self.committed.check_settled(self._broker)
        if self.ledger.errors != before:
            raise self.ledger.broken(f"errors though all is well: {self.ledger.errors - before}")
        if self._epochs() != epochs:
            raise self.ledger.broken(f"rebalances though all is well: {epochs} became {self._epochs()}")

    async def _end(self) -> None:
        """All go; what was acknowledged is there after one more start, and is forgotten when its time has come."""
        goodbyes = []
        for _, process in self._living():
            if self.random.random() < 0.7:
                goodbyes.append(self._leave(process))
            else:
                self._kill(process)
        await asyncio.gather(*goodbyes)
        await self._stop_cleanly()
        while not self._is_up or not self.committed.check_coordinator(self._broker):
            await asyncio.sleep(0.1)
        forgets = self.random.random() < 0.3
        if forgets:
            longest_ms = 2 * SESSION_MS + self._plan.rebalance_ms + self._plan.initial_delay_ms
            await asyncio.sleep(RETENTION_S + 2 * FORGETS_S + longest_ms / 1000)
            self._look()
        for group in self.groups:
            caller = Caller(self.scene, "reader", group)
            await self.world.on("reader", self.outsider.reads(caller))
            await self.world.on("reader", caller.close())
        listed = [listed.group_id for listed in self._broker.coordinators.groups.listed()]
        if forgets and listed:
            raise self.ledger.broken(f"{listed} should be forgotten long ago")
