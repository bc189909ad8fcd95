"""What happens to transactions in one world: producers that write, a second instance that fences the first, a reader of
committed records, and a broker that dies at any write; and what must be true when all is over.

At last nobody writes any more, and every transaction that was left open runs out of time: then all that readers may
see reaches to the end of every partition, and each transaction is there as a whole or not at all.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from moldau.broker import Broker
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.consuming.consumer import AsyncConsumer
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.replication.replica import Replica
from moldau.simulation.faults import PowerLoss
from moldau.simulation.world import World
from tests.worlds.transactions.ledger import TransactionLedger
from tests.worlds.transactions.producer import TIMEOUT_MS, TOPIC, SimulatedProducer
from tests.worlds.workload import Broken

BROKER = "broker"
BOOTSTRAP = f"{BROKER}:9092"
PARTITIONS = 3
OVER_S = 3 * TIMEOUT_MS / 1000
"""After so long every transaction that was left open has run out of time and is aborted."""
READS_S = 60.0
"""So long a reader needs at most to get to the end: to where it may read, which is the end once all is over."""


@dataclass
class ProducerProcess:
    producer: SimulatedProducer
    task: asyncio.Task[None]


class TransactionStory:
    bootstrap = BOOTSTRAP
    producer_kind = SimulatedProducer

    def __init__(self, world: World, power_loss: bool):
        self.world, self.random = world, world.random
        self.power_loss = power_loss
        self.ledger = TransactionLedger()
        self._ids = [f"x{number}" for number in range(self.random.randint(1, 3))]
        self._processes: list[ProducerProcess] = []
        self._started = 0
        self._over = False
        slow_s = self.random.choice((0.0, 0.02, 0.2, 0.2))
        if slow_s:
            world.loop.work_s = lambda: self.random.random() * slow_s
        settings: dict[str, object] = {
            "transaction_state_log_num_partitions": self.random.randint(1, 3),
            "offsets_topic_num_partitions": self.random.randint(1, 3),
            "transaction_abort_timed_out_transaction_cleanup_interval_ms": 1000,
        }
        self._settings = settings | ({"log_flush_interval_messages": 1} if power_loss or slow_s else {})

    async def tell(self) -> None:
        await self._start_broker()
        runtime = self.world.runtime(self.world.host("admin"))
        async with AsyncAdmin(self.bootstrap, runtime=runtime) as admin:
            await admin.create_topic(TOPIC, partitions=PARTITIONS)
            reader = self.world.loop.create_task(self.world.on("reader", self._read()))
            for transactional_id in self._ids:
                self._start(transactional_id)
            await self._trouble()
            await asyncio.sleep(0.1)  # who was started last is there
            for process in self._processes:
                self.world.kill(process.producer.name)
            await self._heal()
            await asyncio.sleep(OVER_S)
            self._over = True
            try:
                await asyncio.wait_for(reader, READS_S)
            except TimeoutError:
                raise Broken(f"a reader of what is committed does not get to the end: {self._ends()}") from None
            await self._check(admin)
        await self._stop()

    async def _heal(self) -> None:
        self.world.network.heal()

    async def _stop(self) -> None:
        await self.world.stop_broker(BROKER)

    # -- trouble

    async def _trouble(self) -> None:
        events = [self._kill_broker, self._kill_broker_at_call, self._second, self._die, self._cut]
        weights = [self.random.random() for _ in events]
        for _ in range(self.random.randint(4, 12)):
            await asyncio.sleep(self.random.random() * self.random.choice((0.3, 3)))
            (event,) = self.random.choices(events, weights)
            event()
            if self._broker is None:
                await asyncio.sleep(self.random.random() * self.random.choice((0.1, 3)))
                await self._start_broker()
        self.world.host(BROKER).disk.faults = None
        if self._broker is None:
            await self._start_broker()

    @property
    def _broker(self) -> Broker | None:
        return self.world.host(BROKER).broker

    async def _start_broker(self) -> None:
        while self._broker is None:
            try:
                await self.world.start_broker(BROKER, **self._settings)
            except (PowerLoss, asyncio.CancelledError):
                if self._broker is not None:
                    raise

    def _kill_broker(self) -> None:
        if self._broker is not None:
            self.world.kill_broker(BROKER, self.power_loss and self.random.random() < 0.7)

    def _kill_broker_at_call(self) -> None:
        if self._broker is not None:
            power_loss = self.power_loss and self.random.random() < 0.7
            self.world.kill_broker_at_call(BROKER, self.random.randint(1, 20), power_loss, lambda: None)

    def _start(self, transactional_id: str) -> None:
        self._started += 1
        name = f"{transactional_id}-{self._started}"
        producer = self.producer_kind(self.world, self.ledger, self.bootstrap, transactional_id, name)
        self._processes.append(
            ProducerProcess(producer, self.world.loop.create_task(self.world.on(name, producer.live())))
        )

    def _second(self) -> None:
        """Somebody starts another process with the same transactional id."""
        self._start(self.random.choice(self._ids))

    def _die(self) -> None:
        process = self.random.choice(self._processes)
        self.world.kill(process.producer.name)
        self._start(process.producer.transactional_id)

    def _cut(self) -> None:
        name = self.random.choice(self._processes).producer.name
        self.world.network.partition(name, BROKER, both_ways=self.random.random() < 0.5)
        self.world.loop.call_later(self.random.random() * 8, self.world.network.heal, name)

    # -- readers and the end

    async def _read(self) -> None:
        """What is committed, as it comes, from the start of each partition."""
        runtime = self.world.runtime(self.world.host("reader"))
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with AsyncConsumer(self.bootstrap, runtime=runtime, **settings) as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
            while not (self._over and await self._is_at_end(consumer)):
                try:
                    records = await consumer.poll(timeout_ms=500)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    continue
                for record in records:
                    place = TopicPartition(record.topic, record.partition)
                    self.ledger.read(bytes(record.value or b"").decode(), place, record.offset)

    async def _is_at_end(self, consumer: AsyncConsumer) -> bool:
        for number in range(PARTITIONS):
            replica = self._replica(number)
            position = await consumer.position(TopicPartition(TOPIC, number))
            if replica is None or position < replica.log.log_end_offset:
                return False
        return True

    def _replica(self, number: int) -> Replica | None:
        """The replica that leads, or is to."""
        return None if self._broker is None else self._broker.replicas.find(TOPIC, None, number)

    def _ends(self) -> list[tuple[int, int]]:
        """Up to where each partition is stable, and where it ends."""
        found = [self._replica(number) for number in range(PARTITIONS)]
        return [(replica.last_stable_offset, replica.log.log_end_offset) for replica in found if replica is not None]

    async def _check(self, admin: AsyncAdmin) -> None:
        for process in self._processes:
            failure = process.task.exception() if process.task.done() and not process.task.cancelled() else None
            if failure is not None:
                raise failure
        if any(stable != end for stable, end in self._ends()):
            raise Broken(f"partitions are stable up to where they do not end, though all is over: {self._ends()}")
        offsets = {}
        for transactional_id in self._ids:
            found = await admin.group_offsets(f"group-{transactional_id}")
            first = found.get(TopicPartition(TOPIC, 0))
            offsets[transactional_id] = None if first is None else first.offset
        self.ledger.check(offsets)
