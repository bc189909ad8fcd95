"""Three brokers of one cluster in a simulated world, with three replicas of every partition: they are killed, also in
the middle of a write, and lose power, and are cut off from each other; at last all is whole again.

At most one broker has lost power and is not in sync again: what is acknowledged is promised while one in-sync replica
has kept it.
"""

import asyncio

from moldau.broker import Broker
from moldau.names import TopicPartition
from moldau.replication.lookups import active_producers
from moldau.replication.replica import Replica
from moldau.simulation.faults import PowerLoss
from moldau.simulation.world import World
from moldau.simulation.zookeeper import Manners
from tests.testing.replicas import committed_bytes
from tests.worlds.workload import Broken

NAMES = ("one", "two", "three")
BOOTSTRAP = ",".join(f"{name}:9092" for name in NAMES)
SETTINGS: dict[str, object] = {
    "default_replication_factor": 3,
    "min_insync_replicas": 2,
    "replica_lag_time_max_ms": 5000,
    "offsets_topic_replication_factor": 3,
    "transaction_state_log_replication_factor": 3,
    "transaction_state_log_min_isr": 2,
}
ENSEMBLE = Manners(servers=3, answer_s=0.05, lag_s=0.05)
"""An election takes a few of its answers one after the other, so that things happen between two of its steps."""
HEALED_S, CUT_S_MAX = 90.0, 12.0
LOOK_EVERY = 5
"""Messages that are delivered between two looks at the leaders."""


class LeaderWatch:
    """What leaders may never do, looked at while the world lives:

    - two brokers lead a partition in one leader epoch, or one does after it was started again: it may have lost records
      of that epoch, and no follower could tell the new ones from them;
    - the high watermark falls while a leader leads, or is above the end of its log;
    - the leader of the newest epoch lacks what an earlier one has committed.
    """

    def __init__(self, brokers: "ThreeBrokers"):
        self._brokers = brokers
        self._leaders: dict[tuple[TopicPartition, int], Broker] = {}
        self._watermarks: dict[tuple[TopicPartition, int], int] = {}
        self._newest: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self.failure = ""

    def look(self) -> None:
        for broker in self._brokers.running:
            for replica in broker.replicas:
                if replica.leadership.leads and not self.failure:
                    self.failure = self._wrong(broker, replica) or ""

    def _wrong(self, broker: Broker, replica: Replica) -> str | None:
        tp, me, epoch = replica.tp, replica.leadership.local, replica.leadership.leader_epoch
        watermark, end = replica.high_watermark, replica.log.log_end_offset
        before = self._leaders.setdefault((tp, epoch), broker)
        if before is not broker:
            if before.config.node_id == me:
                return f"broker {me} leads {tp} in epoch {epoch} again, after it was started again"
            return f"brokers {before.config.node_id} and {me} lead {tp} in epoch {epoch}"
        if not self._watermarks.get((tp, epoch), 0) <= watermark <= end:
            return f"the high watermark of {tp} is {watermark} after {self._watermarks[tp, epoch]}, its end is {end}"
        self._watermarks[tp, epoch] = watermark
        self._newest[tp] = max(self._newest.get(tp, 0), epoch)
        if epoch == self._newest[tp] and end < self._committed.get(tp, 0):
            return f"broker {me} leads {tp} in epoch {epoch} up to {end}, and {self._committed[tp]} was committed"
        self._committed[tp] = max(self._committed.get(tp, 0), watermark)
        return None


class ThreeBrokers:
    """`settings` are added to those that make a cluster of three."""

    def __init__(self, world: World, settings: dict[str, object], power_loss: bool):
        self.world, self.random = world, world.random
        self.power_loss = power_loss
        self._settings = SETTINGS | settings
        self._starting: set[str] = set()
        self.watch = LeaderWatch(self)
        self._delivered = 0
        note = world.network.on_deliver

        def noted(target: str, source: str, data: bytes) -> None:
            note(target, source, data)
            self._delivered += 1
            if not self._delivered % LOOK_EVERY:
                self.watch.look()

        world.network.on_deliver = noted

    def broker(self, name: str) -> Broker | None:
        return self.world.host(name).broker

    @property
    def running(self) -> list[Broker]:
        """Also those that are starting, once they have opened their partitions."""
        return [broker for name in NAMES if (broker := self.broker(name)) is not None and hasattr(broker, "replicas")]

    @property
    def up(self) -> list[Broker]:
        return [broker for name in NAMES if name not in self._starting and (broker := self.broker(name)) is not None]

    async def start(self, name: str) -> None:
        """Start it again and again until it serves: it may die before that."""
        if name in self._starting:
            return
        self._starting.add(name)
        try:
            while self.broker(name) is None:
                try:
                    await self.world.join_broker(name, **self._settings)
                except (PowerLoss, asyncio.CancelledError):
                    if self.broker(name) is not None:
                        raise
        finally:
            self._starting.discard(name)

    async def start_all(self) -> None:
        for name in NAMES:
            await self.start(name)

    # -- faults

    def _victim(self) -> str | None:
        """A broker that may come to harm while a majority stays."""
        living = [name for name in NAMES if name not in self._starting and self.broker(name) is not None]
        return self.random.choice(living) if len(living) == len(NAMES) else None

    def _loses_power(self) -> bool:
        disks = [self.world.host(name).disk for name in NAMES]
        is_armed = any(disk.faults is not None and disk.faults.watch is not None for disk in disks)
        return self.power_loss and not is_armed and self.is_whole() and self.random.random() < 0.7

    def kill(self) -> None:
        if victim := self._victim():
            self.world.kill_broker(victim, self._loses_power())

    def kill_controller(self) -> None:
        """If it is back before another broker is the controller, nobody has noticed that it was away."""
        if self._victim() and (victim := self._controller()):
            self.world.kill_broker(victim, self._loses_power())

    def cut_controller(self) -> None:
        """The controller hears one of the others no more, or is not heard by it."""
        if controller := self._controller():
            other = self.random.choice([name for name in NAMES if name != controller])
            one, another = self.random.sample((controller, other), 2)
            self.world.network.partition(one, another, both_ways=False)
            self.world.loop.call_later(self.random.random() * CUT_S_MAX, self.world.network.heal, controller)

    def _controller(self) -> str | None:
        return next((name for name in NAMES if (broker := self.broker(name)) is not None and broker.controls), None)

    def kill_at_call(self) -> None:
        if victim := self._victim():
            self.world.kill_broker_at_call(victim, self.random.randint(1, 20), self._loses_power(), lambda: None)

    def cut(self) -> None:
        """Two brokers cannot hear each other, or one of them not the other."""
        one, other = self.random.sample(NAMES, 2)
        self.world.network.partition(one, other, both_ways=self.random.random() < 0.5)
        self.world.loop.call_later(self.random.random() * CUT_S_MAX, self.world.network.heal, one)

    def cut_off(self) -> None:
        """One broker cannot hear the others."""
        one = self.random.choice(NAMES)
        for other in NAMES:
            if other != one:
                self.world.network.partition(one, other)
        self.world.loop.call_later(self.random.random() * CUT_S_MAX, self.world.network.heal, one)

    # -- how things are

    def replicas(self, tp: TopicPartition) -> list[Replica]:
        return [replica for broker in self.up if (replica := broker.replicas.hosted.get(tp)) is not None]

    def leader(self, tp: TopicPartition) -> Replica | None:
        """The replica that leads in the newest epoch, if its broker is up."""
        led = [one for one in self.replicas(tp) if one.leadership.leads]
        return max(led, key=lambda one: one.leadership.leader_epoch, default=None)

    def partitions(self) -> list[TopicPartition]:
        topics = {name: topic for broker in self.up for name, topic in broker.cluster.image.topics.items()}
        return [
            TopicPartition(name, number) for name, topic in topics.items() for number in range(len(topic.partitions))
        ]

    def is_whole(self) -> bool:
        """Whether all brokers are up and all replicas in sync, at the same end."""
        if len(self.up) < len(NAMES):
            return False
        return all(self._is_whole(tp) for tp in self.partitions())

    def _is_whole(self, tp: TopicPartition) -> bool:
        found = self.replicas(tp)
        ends = {(one.high_watermark, one.log.log_end_offset) for one in found}
        return len(found) == len(NAMES) and len(ends) == 1 and all(len(one.leadership.isr) == 3 for one in found)

    async def heal(self) -> None:
        """No fault any more: all is in sync again within a bound."""
        for name in NAMES:
            self.world.host(name).disk.faults = None
        self.world.network.heal()
        await self.start_all()
        try:
            async with asyncio.timeout(HEALED_S):
                while not self.is_whole():
                    await asyncio.sleep(0.1)
        except TimeoutError:
            if self.watch.failure:
                raise Broken(self.watch.failure) from None
            away = [tp for tp in self.partitions() if not self._is_whole(tp)]
            raise Broken(f"not all is in sync again within {HEALED_S:.0f} s: {[*map(str, away)]}") from None

    def check_equal(self) -> None:
        """All replicas are the same bytes, with the same epochs and producers, and no leader has done wrong; nothing is
        written meanwhile."""
        if self.watch.failure:
            raise Broken(self.watch.failure)
        for tp in self.partitions():
            found = self.replicas(tp)
            if len({committed_bytes(one, one.high_watermark) for one in found}) > 1:
                raise Broken(f"the replicas of {tp} differ")
            epochs = [[*map(tuple, one.log.epochs.starts)] for one in found]
            if any(one != epochs[0] for one in epochs):
                raise Broken(f"the replicas of {tp} know different leader epochs: {epochs}")
            producers = [_producers(one) for one in found]
            if any(one != producers[0] for one in producers):
                raise Broken(f"the replicas of {tp} know different producers: {producers}")
            if len({one.last_stable_offset for one in found}) > 1:
                raise Broken(f"the replicas of {tp} are stable up to different offsets")

    async def stop(self) -> None:
        for name in NAMES:
            await self.world.stop_broker(name)


def _producers(replica: Replica) -> dict[int, tuple[int, int, int | None]]:
    """Epoch, last sequence and open transaction of each producer."""
    return {one.producer_id: (one.epoch, one.last_sequence, one.transaction_start) for one in active_producers(replica)}
