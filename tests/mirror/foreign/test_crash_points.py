"""A worker dies before or after any step of a transaction, and leaves it open: each record is in the target once."""

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.tiers import seed_or, sized
from moldau.client.producing.async_producer import AsyncProducer
from moldau.client.producing.producer import Producer
from moldau.mirror.foreign.copy_positions import CopyPosition, position_record
from moldau.mirror.foreign.foreign_worker import ForeignWorker
from moldau.mirror.foreign.lane import Lane
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.mirror.foreign.foreign_mirroring import ForeignMirroring, foreign_mirroring
from tests.replacing import Instead, replaced

POINTS = sized(10, 20, 1_000)
STEPS = ("init_transactions", "begin_transaction", "send_table", "send", "commit_transaction")
PARTITIONS = 2


class Died(Exception):
    """The worker is gone."""


class Crashes:
    """At the call `left`, counted down, of this step of a mirror's producer the worker dies: `late` after it."""

    def __init__(self) -> None:
        self.step, self.left, self.late = "", 0, False

    def of(self, name: str) -> Callable[..., Any]:
        step = getattr(AsyncProducer, name)

        async def stepped(producer: AsyncProducer, *args: Any, **kwargs: Any) -> Any:
            if producer.settings.transactional_id is None or name != self.step:
                return await step(producer, *args, **kwargs)
            self.left -= 1
            if self.left == 0 and not self.late:
                raise Died
            done = await step(producer, *args, **kwargs)
            if self.left == 0:
                raise Died
            return done

        return stepped


async def nothing(producer: AsyncProducer) -> None:
    """In place of an abort: the dead do not end their transactions."""


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Crashes:
    made = Crashes()
    for name in STEPS:
        monkeypatch.setattr(AsyncProducer, name, made.of(name))
    monkeypatch.setattr(AsyncProducer, "abort_transaction", nothing)
    return made


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


def crash(clusters: tuple[Broker, Broker], crashes: Crashes, alias: str) -> None:
    """Copy while workers die at drawn steps; compare at the end."""
    seed = seed_or(7)
    print(f"MOLDAU_SEED={seed}")
    chance, (source, target) = random.Random(seed), clusters
    topic = f"crashed.{alias}"
    source.create_topic(topic, PARTITIONS)

    def fill(first: int, count: int) -> None:
        with Producer(source.address, linger_ms=0) as producer:
            for number in range(first, first + count):
                producer.send(topic, b"%d" % number, partition=number % PARTITIONS)

    async def worked(mirror: ForeignMirroring) -> None:
        """A worker works until it dies, or has nothing left to do."""
        worker = ForeignWorker(mirror.source, mirror.target, mirror.settings)
        await worker.prepare()
        work = asyncio.ensure_future(Lane(worker.board, 0).run())
        level = asyncio.ensure_future(mirror.until_equal(TopicPartition(topic, 0)))
        try:
            await asyncio.wait([work, level], return_when=asyncio.FIRST_COMPLETED)
            if level.done():
                level.result()
                await mirror.until_equal(TopicPartition(topic, 1))
        finally:
            for task in (work, level):
                task.cancel()
            await asyncio.gather(work, level, return_exceptions=True)

    async def scenario() -> None:
        changes = {"lanes": 1, "policy": ReplicationPolicy(alias, "B"), "lag_max": 3}
        async with foreign_mirroring(source.address, target.address, topic, start=False, **changes) as mirror:
            for point in range(POINTS):
                await asyncio.to_thread(fill, point * 10, 10)
                crashes.step, crashes.left = chance.choice(STEPS), chance.randrange(1, 4)
                crashes.late = chance.random() < 0.5
                await worked(mirror)
            crashes.step = ""
            await worked(mirror)
            for number in range(PARTITIONS):
                assert len(await mirror.until_equal(TopicPartition(topic, number))) == POINTS * 10 // 2

    asyncio.run(scenario())


def test_each_record_comes_once_at_whatever_step_workers_die(clusters: tuple[Broker, Broker], crashes: Crashes) -> None:
    crash(clusters, crashes, "A")


async def apart(
    original: Callable[..., Any], lane: Lane, _: AsyncProducer, tp: TopicPartition, upstream: int, *at: Any
) -> None:
    """Write a position by a producer of its own."""
    epoch, downstream = at
    board = lane._board
    key, value = position_record(tp, CopyPosition(upstream, epoch, downstream, *lane._ids[tp], board.source.cluster_id))
    async with AsyncProducer(board.target.brokers) as producer:
        await producer.send(board.positions, value, key, partition=lane._number)


@pytest.mark.bug
def test_positions_outside_of_the_transaction_are_found(clusters: tuple[Broker, Broker], crashes: Crashes) -> None:
    with replaced([Instead("moldau.mirror.foreign.lane:Lane._send_position", apart)]):
        with pytest.raises(AssertionError):
            crash(clusters, crashes, "C")
