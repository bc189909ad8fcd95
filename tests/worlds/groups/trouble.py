"""The time of trouble in a world of groups: what may happen to its broker and its members, one event at a time."""

import asyncio
import contextlib

from moldau.client.administration.admin import AsyncAdmin
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import KafkaError
from moldau.names import OFFSETS_TOPIC, TopicPartition
from tests.worlds.groups.member import GroupCaller
from tests.worlds.groups.stage import BROKER, GroupStage, MemberProcess, TakenSeat

PARTITIONS_MAX = 8
BUSY_S_MAX = 25.0


class Trouble:
    """Each method `_do_...` is an event; `events()` are their names."""

    def __init__(self, stage: GroupStage, admin: AsyncAdmin):
        self._stage = stage
        self._world, self._random, self._ledger = stage.world, stage.random, stage.ledger
        self._admin = admin

    @classmethod
    def events(cls) -> list[str]:
        return [name.removeprefix("_do_") for name in dir(cls) if name.startswith("_do_")]

    async def live_through(self) -> None:
        weights = self._stage.plan.weights
        events = [getattr(self, f"_do_{name}") for name in weights]
        for seat in self._stage.seats[:: self._random.randint(1, 3)]:
            self._stage.sit(seat)
        for _ in range(self._random.randint(8, 24)):
            await asyncio.sleep(self._random.random() * self._random.choice((0.2, 2, 6)))
            (event,) = self._random.choices(events, list(weights.values()))
            event()
            self._stage.look()

    # -- the broker

    def _do_kill_broker(self) -> None:
        self._stage.kill_broker()

    def _do_kill_broker_at_call(self) -> None:
        if self._stage.is_up:
            power_loss = self._stage.power_loss and self._random.random() < 0.7
            self._world.kill_broker_at_call(BROKER, self._random.randint(1, 12), power_loss, self._stage.dies)

    def _do_stop_broker(self) -> None:
        if self._stage.is_up:
            self._stage.begin(self._stage.stop_cleanly())

    def _do_move(self) -> None:
        """The coordinator of a partition goes elsewhere, perhaps in the middle of a commit, and comes back."""
        if self._stage.is_up:
            groups, group = self._stage.broker.coordinators.groups, self._random.choice(self._stage.groups)
            self._stage.begin(self._commit_once(group))
            self._stage.begin(self._move(groups, groups.partition_of(group)), BROKER)

    async def _commit_once(self, group: str) -> None:
        caller = GroupCaller(self._stage.scene, "story", group)
        with contextlib.suppress(KafkaError):
            await caller.commit([TopicPartition("t", 0)])
        await caller.close()

    async def _move(self, groups: GroupCoordinator, number: int) -> None:
        epoch = self._stage.broker.cluster.image.topics[OFFSETS_TOPIC].partitions[number].leader_epoch
        patience = self._random.randint(0, 100)
        while patience > 0 and not (self._stage.is_up and self._stage.committed.is_behind(self._stage.broker, number)):
            patience -= 1
            await asyncio.sleep(0.01)
        groups.resign(number)
        for group in self._stage.groups:
            if groups.partition_of(group) == number:
                self._ledger.coordinator_goes(group)
        await asyncio.sleep(self._random.random() * self._random.choice((0.02, 2)))
        groups.lead(number, epoch)

    # -- members

    def _do_arrive(self) -> None:
        self._stage.living()
        empty = [taken for taken in self._stage.seats if not taken.processes]
        if empty:
            self._stage.sit(self._random.choice(empty))

    def _do_duplicate(self) -> None:
        """Somebody starts a second process with the same instance id."""
        if (some := self._someone()) and some[0].seat.instance_id is not None:
            self._stage.sit(some[0])

    def _do_die(self) -> None:
        if some := self._someone():
            self._stage.kill(some[1])
            if self._random.random() < 0.4:
                self._stage.sit(some[0])

    def _do_leave(self) -> None:
        if some := self._someone():
            self._stage.leave(some[1])

    def _do_busy(self) -> None:
        if some := self._someone():
            self._random.choice((self._do_arrive, self._do_arrive, self._do_leave))()
            some[1].member.busy_until_s = self._world.loop.time() + self._random.random() * BUSY_S_MAX

    def _do_freeze(self) -> None:
        if some := self._someone():
            some[1].member.frozen_until_s = self._world.loop.time() + self._random.random() * 12

    def _do_cut(self) -> None:
        """A member and the broker cannot hear each other, or one of them not the other."""
        if some := self._someone():
            host, both = some[1].host, self._random.random() < 0.6
            ends = (host, BROKER) if self._random.random() < 0.5 else (BROKER, host)
            self._world.network.partition(*ends, both_ways=both)
            self._ledger.troubled_s[host] = self._world.loop.time() + 1000
            self._world.loop.call_later(self._random.random() * 12, self._stage.heal, host)

    def _do_break_connections(self) -> None:
        if some := self._someone():
            self._world.network.break_connections(some[1].host)

    def _do_grow(self) -> None:
        topic = self._random.choice(list(self._stage.partitions))
        if self._stage.partitions[topic] < PARTITIONS_MAX:
            self._stage.begin(self._grow(topic, self._stage.partitions[topic] + 1))

    async def _grow(self, topic: str, count: int) -> None:
        with contextlib.suppress(KafkaError):
            await self._admin.create_partitions(topic, count)
        self._stage.count_partitions()

    def _someone(self) -> tuple[TakenSeat, MemberProcess] | None:
        living = self._stage.living()
        return self._random.choice(living) if living else None
