"""Transactions over partitions of several leaders, on three brokers with three replicas of everything: their leaders
and coordinators move, and each transaction is there as a whole or not at all."""

import asyncio
from typing import Any

from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import PRODUCE, Api
from moldau.replication.replica import Replica
from moldau.simulation.world import World
from tests.worlds.brokers import BOOTSTRAP, NAMES, ThreeBrokers
from tests.worlds.transactions.producer import CALL_MS, TOPIC, SimulatedProducer
from tests.worlds.transactions.story import TransactionStory


class RoutedProducer(SimulatedProducer):
    """It sends each batch to the leader of its partition."""

    async def _call(self, api: Api, request: Any) -> Any:
        if api is not PRODUCE:
            return await super()._call(api, request)
        try:
            partition = request.topic_data[0].partition_data[0].index
            node = await self._router.leader(TopicPartition(TOPIC, partition))
            link = await self._router.broker(node, "transactions")
            reply = await link.call(api, request, CALL_MS)
        except KafkaError:
            self._router.stale(TOPIC)
            raise
        if reply.responses[0].partition_responses[0].error_code:
            self._router.stale(TOPIC)
        return reply


class ReplicatedTransactionStory(TransactionStory):
    bootstrap = BOOTSTRAP
    producer_kind = RoutedProducer

    def __init__(self, world: World, power_loss: bool):
        super().__init__(world, power_loss)
        self._settings.pop("log_flush_interval_messages", None)
        self._brokers = ThreeBrokers(world, self._settings, power_loss)
        self._coming: set[asyncio.Task[None]] = set()

    async def _start_broker(self) -> None:
        await self._brokers.start_all()

    async def _trouble(self) -> None:
        brokers = self._brokers
        events = [brokers.kill, brokers.kill_at_call, brokers.cut, brokers.cut_off, self._second, self._die]
        if self.power_loss:
            events += [brokers.kill_controller, brokers.cut_controller]
        weights = [self.random.random() for _ in events]
        for _ in range(self.random.randint(4, 12)):
            await asyncio.sleep(self.random.random() * self.random.choice((0.3, 3, 12)))
            (event,) = self.random.choices(events, weights)
            event()
            for name in NAMES:
                if brokers.broker(name) is None:
                    self._coming.add(self.world.loop.create_task(self._back(name)))

    async def _back(self, name: str) -> None:
        await asyncio.sleep(self.random.random() * self.random.choice((0.1, 3, 15)))
        await self._brokers.start(name)

    async def _heal(self) -> None:
        await asyncio.gather(*self._coming)
        await self._brokers.heal()

    async def _check(self, admin: Any) -> None:
        await super()._check(admin)
        await self._brokers.heal()
        self._brokers.check_equal()

    async def _stop(self) -> None:
        await self._brokers.stop()

    def _replica(self, number: int) -> Replica | None:
        return self._brokers.leader(TopicPartition(TOPIC, number))
