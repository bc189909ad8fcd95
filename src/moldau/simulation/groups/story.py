"""What happens to groups and their broker in one world: who comes and goes, and what breaks and when.

A seed draws its groups, its settings, its weather, and how likely each event is in it (many not at all). Then follows
a time of trouble, and then a calm one: see `rest`.
"""

import asyncio
import contextlib

from moldau.client.admin import AsyncAdmin
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.simulation.groups.member import Caller
from moldau.simulation.groups.rest import Rest
from moldau.simulation.groups.stage import BOOTSTRAP, BROKER, Played, Process

PARTITIONS_MAX = 8
BUSY_S_MAX = 25.0


class Story(Rest):
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

    # -- the broker

    def _do_kill_broker(self) -> None:
        self._kill_broker()

    def _do_kill_broker_at_call(self) -> None:
        if self._is_up:
            power_loss = self.power_loss and self.random.random() < 0.7
            self.world.kill_broker_at_call(BROKER, self.random.randint(1, 12), power_loss, self._dies)

    def _do_stop_broker(self) -> None:
        if self._is_up:
            self._begin(self._stop_cleanly())

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

    def _do_leave(self) -> None:
        if some := self._some():
            self._leave(some[1])

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

    def _some(self) -> tuple[Played, Process] | None:
        living = self._living()
        return self.random.choice(living) if living else None
