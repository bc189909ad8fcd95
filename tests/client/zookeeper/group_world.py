"""A group in ZooKeeper in a simulated world: consumers join, leave, die, and lose ZooKeeper, in virtual time.

Looked at while it lives:

- what a consumer hands out, it may: no other session has the partition's owner node at that moment;
- an offset in ZooKeeper never falls;
- no record is skipped: nobody is handed one before all that are before it were handed out to somebody;
- what is handed out again was handed out before at most one interval of automatic commits before its owner's end.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.consuming.consumer import AsyncConsumer
from moldau.client.producing.producer import AsyncProducer
from moldau.errors import ClientClosed, KafkaError
from moldau.metadata_store.store import Node, NodeOperation, Written
from moldau.names import TopicPartition
from moldau.simulation.world import World
from moldau.simulation.zookeeper import Manners, ModelZooKeeper, ServedSession
from moldau.simulation.zookeeper_session import ModelSession

GROUP, TOPIC = "group", "events"
OWNERS, OFFSETS = f"/consumers/{GROUP}/owners/{TOPIC}", f"/consumers/{GROUP}/offsets/{TOPIC}"
ENSEMBLE = Manners(servers=3, answer_s=0.01, lag_s=0.02)
UNSTEADY = Manners(servers=3, answer_s=0.01, lag_s=0.02, drop=0.002, away_s=1.0)
SESSION_MS, COMMIT_MS, BACKOFF_MS = 6_000, 1_000, 500
CONSUMERS_MIN, CONSUMERS_MAX = 3, 10
READ_UP_S = 25


class Broken(AssertionError):
    """What must hold does not."""


class Reader:
    """One consumer, and the session that it has now."""

    def __init__(self, name: str):
        self.name = name
        self.session: ModelSession | None = None
        self.working: asyncio.Task[None] | None = None
        self.consumer: AsyncConsumer | None = None


class GroupWorld:
    """The story of one seed."""

    def __init__(self, world: World, partitions: int, events: int):
        self.world, self.partitions, self.events = world, partitions, events
        self.readers: dict[str, Reader] = {}
        self.made = self.records = self.again = self.kills = 0
        self.next: dict[TopicPartition, int] = {}
        """The first offset of each partition that nobody was handed."""
        self.handed_s: dict[TopicPartition, list[float]] = {}
        """When each offset was handed out the last time."""
        self.lasts: dict[TopicPartition, tuple[int, float]] = {}
        """The offset that was handed out last, and when."""
        self.ends_s: dict[TopicPartition, float] = {}
        """When the last record was handed out before an earlier one was again."""
        self.away_s = 0.0
        """For how long commits could not be made, at most."""
        self.stops = False
        self._guard_offsets(world.zookeeper)

    def _guard_offsets(self, zookeeper: ModelZooKeeper) -> None:
        write = zookeeper.write

        def guarded(operations: Sequence[NodeOperation], link: ServedSession) -> list[Written | None]:
            before = {one.path: zookeeper.nodes.get(one.path) for one in operations if one.path.startswith(OFFSETS)}
            results = write(operations, link)
            for path, node in before.items():
                if node is not None and node.data and int(node.data) > int(zookeeper.nodes[path].data):
                    raise Broken(f"{path} fell from {node.data!r} to {zookeeper.nodes[path].data!r}")
            return results

        zookeeper.write = guarded  # type: ignore[method-assign]

    # -- what happens

    async def play(self) -> None:
        world = self.world
        await world.join_broker("broker")
        async with AsyncAdmin("broker:9092", runtime=world.runtime(world.host("admin"))) as admin:
            await admin.create_topic(TOPIC, partitions=self.partitions)
        producing = asyncio.ensure_future(world.on("producer", self._produce()))
        for _ in range(CONSUMERS_MIN):
            await self.join()
        for _ in range(self.events):
            await asyncio.sleep(world.random.uniform(0.5, 8))
            await self._one_event()
        self.stops = True
        await producing
        await self._read_up()
        for reader in list(self.readers.values()):
            await self.leave(reader)

    async def _one_event(self) -> None:
        count, chance = len(self.readers), self.world.random
        if count <= CONSUMERS_MIN or (count < CONSUMERS_MAX and chance.random() < 0.4):
            await self.join()
            return
        reader = chance.choice(list(self.readers.values()))
        kind = chance.random()
        if kind < 0.5:
            self.kill(reader)
        elif kind < 0.7:
            await self.leave(reader)
        elif kind < 0.9:
            await self.cut(reader, chance.uniform(0, 15))
        else:
            away_s = chance.uniform(0, 4)
            self.away_s = max(self.away_s, away_s)
            self.world.zookeeper.lose_quorum()
            await asyncio.sleep(away_s)
            self.world.zookeeper.regain_quorum()

    async def join(self) -> None:
        reader = Reader(f"reader-{self.made}")
        self.made += 1
        self.readers[reader.name] = reader
        reader.working = asyncio.ensure_future(self.world.on(reader.name, self._read(reader)))

    def kill(self, reader: Reader) -> None:
        del self.readers[reader.name]
        self.kills += 1
        self.world.kill(reader.name)
        if reader.session is not None:
            reader.session.abandon()

    async def leave(self, reader: Reader) -> None:
        del self.readers[reader.name]
        if reader.consumer is not None:
            await self.world.on(reader.name, reader.consumer.close())
        self.world.kill(reader.name)

    async def cut(self, reader: Reader, away_s: float) -> None:
        """It does not reach ZooKeeper for a while: its session may be over meanwhile, and a new one has to begin."""
        if reader.session is not None:
            link = reader.session.link
            self.away_s = max(self.away_s, away_s)
            self.world.zookeeper.cut(link)
            await asyncio.sleep(away_s)
            self.world.zookeeper.mend(link)

    # -- programs

    async def _produce(self) -> None:
        async with AsyncProducer("broker:9092", runtime=self.world.runtime(self.world.host("producer"))) as producer:
            while not self.stops:
                for _ in range(5):
                    partition = self.world.random.randrange(self.partitions)
                    await producer.send(TOPIC, b"", partition=partition)
                await asyncio.sleep(0.1)

    async def _read(self, reader: Reader) -> None:
        async def opened() -> ModelSession:
            reader.session = ModelSession(self.world.zookeeper, SESSION_MS / 1000)
            return reader.session

        settings: dict[str, Any] = {"zookeeper_connect": "zk:2181", "zookeeper_session": opened, "group_id": GROUP}
        async with AsyncConsumer(
            **settings,
            runtime=self.world.runtime(self.world.host(reader.name)),
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_MS,
            rebalance_backoff_ms=BACKOFF_MS,
            rebalance_retries_max=40,
            heartbeat_interval_ms=200,
        ) as consumer:
            reader.consumer = consumer
            consumer.subscribe(TOPIC)
            while True:
                try:
                    record = await anext(consumer)
                except KafkaError:
                    continue
                except ClientClosed:
                    return
                self._handed_out(reader, record.place.tp, record.offset)
                await asyncio.sleep(0.001)

    def _handed_out(self, reader: Reader, tp: TopicPartition, offset: int) -> None:
        now_s = self.world.loop.time()
        owner = self.world.zookeeper.nodes.get(f"{OWNERS}/{tp.partition}")
        assert reader.session is not None
        if owner is not None and owner.owner != reader.session.session_id:
            raise Broken(f"{reader.name} was handed {tp}@{offset}, and {owner.data!r} owns it")
        handed_s, expected = self.handed_s.setdefault(tp, []), self.next.get(tp, 0)
        self.records += 1
        if offset > expected:
            raise Broken(f"{reader.name} was handed {tp}@{offset} before {expected}")
        last_offset, last_s = self.lasts.get(tp, (-1, 0.0))
        if offset <= last_offset:
            self.ends_s[tp] = last_s
        if offset == expected:
            self.next[tp] = offset + 1
            handed_s.append(now_s)
        else:
            self.again += 1
            back_s, handed_s[offset] = self.ends_s[tp] - handed_s[offset], now_s
            if back_s > COMMIT_MS / 1000 + self.away_s + 0.5:
                raise Broken(f"{tp}@{offset} is handed out again, {back_s:.1f} s before its owner's end")
        self.lasts[tp] = offset, now_s

    # -- the end

    async def _read_up(self) -> None:
        """Within `READ_UP_S` everything was handed out."""
        world, parts = self.world, [TopicPartition(TOPIC, number) for number in range(self.partitions)]
        async with AsyncConsumer("broker:9092", runtime=world.runtime(world.host("asker"))) as asker:
            ends = await asker.end_offsets(parts)
        try:
            async with asyncio.timeout(READ_UP_S):
                while any(self.next.get(tp, 0) < end for tp, end in ends.items()):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            left = {str(tp): (self.next.get(tp, 0), end) for tp, end in ends.items() if self.next.get(tp, 0) < end}
            raise Broken(f"after {READ_UP_S} s these are not read up: {left}, {self.owners()}") from None

    def owners(self) -> dict[str, Node]:
        return {path: node for path, node in self.world.zookeeper.nodes.items() if path.startswith(OWNERS + "/")}


def play(seed: int, partitions: int = 8, events: int = 20, manners: Manners = ENSEMBLE) -> GroupWorld:
    """Live through one seed. Raises `Broken`."""
    world = World(seed, manners=manners)
    group = GroupWorld(world, partitions, events)

    async def scenario(_: World) -> None:
        playing = asyncio.ensure_future(group.play())
        while not playing.done():
            for reader in list(group.readers.values()):
                if reader.working is not None and reader.working.done():
                    reader.working.result()
                    raise Broken(f"{reader.name} has ended")
            await asyncio.sleep(0.1)
        await playing

    world.run(scenario)
    return group
