"""Groups on three brokers with three replicas of everything: brokers are killed, lose power and are cut off from each
other, and the coordinators move. At last all members are at rest, and every offset that was acknowledged is there.

What the calm of one broker checks beyond that (nobody joins again when the broker comes back, nobody is refused) holds
for one coordinator that never moves.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moldau.broker import Broker
from moldau.cluster.state.image import Image
from moldau.coordinators.groups.shard import GroupShard
from moldau.errors import ErrorCode, KafkaError
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.replication.replica import Replica
from moldau.simulation.network import Weather
from moldau.simulation.world import World
from tests.worlds.brokers import BOOTSTRAP, CUT_S_MAX, NAMES, ThreeBrokers
from tests.worlds.groups.calm import SLACK_S, Calm
from tests.worlds.groups.member import GroupCaller
from tests.worlds.groups.plan import SESSION_MS
from tests.worlds.groups.stage import GroupStage
from tests.worlds.groups.story import live_through
from tests.worlds.groups.trouble import Trouble
from tests.worlds.workload import Broken

FAIL_OVER_S = 15.0
"""The session of a broker, and what loading takes."""


class Leading:
    """The three brokers as checkers see one: of every partition, the leader's replica and coordinator."""

    def __init__(self, brokers: ThreeBrokers):
        self._brokers = brokers
        self.cluster = self.replicas = self.coordinators = self.groups = self

    @property
    def image(self) -> Image:
        return max(
            (one.cluster.image for one in self._brokers.up), key=lambda image: len(image.topics), default=Image("c")
        )

    def find(self, topic: str, _: None, number: int) -> Replica | None:
        return self._brokers.leader(TopicPartition(topic, number))

    def shard(self, number: int) -> GroupShard:
        replica = self._brokers.leader(TopicPartition(OFFSETS_TOPIC, number))
        broker = None if replica is None else self._brokers.broker(NAMES[replica.leadership.local - 1])
        if broker is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return broker.coordinators.groups.shard(number)

    def partition_of(self, group: str) -> int:
        return self._brokers.up[0].coordinators.groups.partition_of(group)


class ReplicatedGroupStage(GroupStage):
    def __init__(self, world: World, power_loss: bool):
        super().__init__(world, power_loss, ReplicatedTrouble.events())
        self.scene.bootstrap = BOOTSTRAP
        settings = {name: value for name, value in self.plan.settings.items() if name != "log_flush_interval_messages"}
        self.brokers = ThreeBrokers(world, settings, power_loss)
        self._leading = Leading(self.brokers)
        self.ledger.troubled_s[""] = 1e9

    @property
    def broker(self) -> Broker:
        return self._leading  # type: ignore[return-value]

    @property
    def is_up(self) -> bool:
        return bool(self.brokers.up)

    def look(self) -> None:
        self.ledger.check()
        if self.brokers.watch.failure:
            raise Broken(self.brokers.watch.failure)

    def moved(self) -> None:
        """Coordinators may be elsewhere from now on."""
        for group in self.groups:
            self.ledger.coordinator_goes(group)


class ReplicatedTrouble(Trouble):
    """What happens to brokers happens to one of three."""

    _do_move = _do_stop_broker = None  # type: ignore[assignment]
    _stage: ReplicatedGroupStage

    @classmethod
    def events(cls) -> list[str]:
        return [name for name in super().events() if getattr(cls, f"_do_{name}") is not None]

    def _do_kill_broker(self) -> None:
        self._harm(self._stage.brokers.kill)

    def _do_kill_broker_at_call(self) -> None:
        self._harm(self._stage.brokers.kill_at_call)

    def _do_cut_off_broker(self) -> None:
        self._cut_brokers(self._stage.brokers.cut_off)

    def _do_cut_two_brokers(self) -> None:
        self._cut_brokers(self._stage.brokers.cut)

    def _cut_brokers(self, cut: Callable[[], None]) -> None:
        self._stage.moved()
        cut()
        self._world.loop.call_later(CUT_S_MAX + 3, self._stage.moved)

    def _harm(self, harm: Callable[[], None]) -> None:
        self._stage.moved()
        harm()
        for name in NAMES:
            if self._stage.brokers.broker(name) is None:
                self._stage.begin(self._back(name))

    async def _back(self, name: str) -> None:
        await asyncio.sleep(self._random.random() * self._random.choice((0.1, 3, 15)))
        await self._stage.brokers.start(name)
        self._stage.moved()

    def _do_cut(self) -> None:
        """A member and a broker cannot hear each other, or one of them not the other."""
        if some := self._someone():
            host, both = some[1].host, self._random.random() < 0.6
            ends = (host, self._random.choice(NAMES))
            self._world.network.partition(*(ends if self._random.random() < 0.5 else ends[::-1]), both_ways=both)
            self._ledger.troubled_s[host] = self._world.loop.time() + 1000
            self._world.loop.call_later(self._random.random() * 12, self._stage.heal, host)


class ReplicatedCalm(Calm):
    _stage: ReplicatedGroupStage

    async def settle(self) -> None:
        self._world.network.weather = Weather(delay_ms_max=10)
        self._stage.outsider.is_calm = True
        await asyncio.gather(*self._stage.errands, return_exceptions=True)
        await self._stage.brokers.heal()
        while self._stage.outsider.interferes:
            await asyncio.sleep(0.1)
        self._one_member_a_seat()
        for _, process in self._stage.living():
            self._stage.heal(process.host)
            process.member.frozen_until_s = process.member.busy_until_s = 0.0
        begun_s = self._world.loop.time()
        bound_s = (SESSION_MS + 2 * self._plan.rebalance_ms + self._plan.initial_delay_ms) / 1000
        await self._come_to_rest(begun_s, begun_s + bound_s + SLACK_S + FAIL_OVER_S)
        self._stage.look()

    async def end(self) -> None:
        """What was acknowledged is there, also after the coordinators have moved once more."""
        for _, process in self._stage.living():
            self._stage.kill(process)
        for victim in (None, self._random.choice(NAMES)):
            if victim is not None:
                self._stage.moved()
                self._world.kill_broker(victim)
                await asyncio.sleep(FAIL_OVER_S)
            for group in self._stage.groups:
                await self._reads(group)
        await self._stage.brokers.heal()
        self._stage.brokers.check_equal()
        self._stage.look()

    async def _reads(self, group: str) -> None:
        """Read until a coordinator answers. Raises `Broken` if none does in time."""
        caller = GroupCaller(self._stage.scene, "reader", group)
        places = [TopicPartition(t, n) for t, count in self._stage.partitions.items() for n in range(count)]
        until_s = self._world.loop.time() + FAIL_OVER_S
        while await self._world.on("reader", _answer(caller.fetch(places))) is not ErrorCode.NONE:
            if self._world.loop.time() > until_s:
                raise self._ledger.broken(f"nobody tells the offsets of {group}")
            await asyncio.sleep(0.2)
        await self._world.on("reader", caller.close())


async def _answer(fetching: Coroutine[Any, Any, ErrorCode]) -> ErrorCode:
    try:
        return await fetching
    except KafkaError as error:
        return error.code


async def live_replicated_groups(world: World, power_loss: bool) -> None:
    """Raises `Broken` if an invariant does not hold."""
    stage = ReplicatedGroupStage(world, power_loss)
    await stage.brokers.start_all()
    await live_through(stage, ReplicatedTrouble, ReplicatedCalm(stage))
    stage.ledger.check()
    await stage.brokers.stop()
