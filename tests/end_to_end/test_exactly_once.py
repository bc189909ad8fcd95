"""Our producer, idempotent and with acks=all, delivers each record exactly once and in order through every fault,
whether sent one by one, as a list or as a table: the broker is killed, connections break within requests and replies,
replies get lost or come late, the broker's process stands still.

`MOLDAU_SEED` repeats a run; `MOLDAU_TIER=long` sends more, of a new seed.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pytest

from harness.brokers import Broker
from harness.patience import stretched, within
from harness.proxy import Proxy
from harness.tiers import seed_or, sized
from moldau import TopicPartition
from moldau.client.administration.admin import Admin
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.client.producing.delivery import Delivered
from moldau.client.producing.partitioning import positive_hash
from moldau.client.producing.producer import AsyncProducer, Producer
from tests.end_to_end.faults import KINDS, Faults

SEED = seed_or(14)
FAULTS = sized(1, 1, 20) * len(KINDS)
TOPIC = "orders"
PARTITIONS = 3
MESSAGE_BYTES_MAX = 6_000
WAYS = ("send", "send_many", "send_table")
ROWS_MAX = 100
SETTINGS = {
    "batch_size": 16_000,
    "linger_ms": 2,
    "buffer_memory": 256 * 1024,
    "request_timeout_ms": 1_000,
    "delivery_timeout_ms": 1_000_000,
    "max_block_ms": 1_000_000,
}
"""Batches are larger than the topic takes, so they are split. No record is given up as too late."""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.fixture
def broker(tmp_path: Path, proxy: Proxy) -> Iterator[Broker]:
    ours = Broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"})
    ours.start()
    try:
        proxy.target = ours.address
        with Admin(ours.address) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS, configs={"max.message.bytes": str(MESSAGE_BYTES_MAX)})
        yield ours
    finally:
        ours.kill()


class Sent(NamedTuple):
    """The numbers of records that one call has sent, and its `Delivery` or `TableDelivery`."""

    numbers: list[int]
    delivery: Any


class Load:
    """Numbered records with keys, sent in these ways, and what became of each."""

    def __init__(self, seed: int, ways: Sequence[str] = WAYS[:1]):
        self._random = random.Random(seed)
        self._ways = ways
        self.partitions: list[int] = []
        """Where each number is due."""
        self.sent: list[Sent] = []

    def record(self) -> tuple[bytes, bytes]:
        """Value and key of the next record; the key chooses the partition."""
        number = len(self.partitions)
        key = b"key-%d" % self._random.randrange(50)
        self.partitions.append(positive_hash(key) % PARTITIONS)
        return b"%06d" % number + b"." * self._random.randrange(1_500), key

    def call(self) -> tuple[str, list[Any], list[int]]:
        """The next call of a producer: its method, the arguments after the topic, and the numbers it sends."""
        way, first = self._random.choice(self._ways), len(self.partitions)
        if way == "send":
            return way, [*self.record()], [first]
        rows = [self.record() for _ in range(self._random.randrange(1, ROWS_MAX))]
        values, keys = [value for value, _ in rows], [key for _, key in rows]
        numbers = list(range(first, len(self.partitions)))
        if way == "send_many":
            return way, [values, keys], numbers
        return way, [pyarrow.table({"value": values, "key": keys})], numbers

    def send(self, producer: Producer) -> int:
        """Make the next call; returns how many records it sent."""
        way, arguments, numbers = self.call()
        self.sent.append(Sent(numbers, getattr(producer, way)(TOPIC, *arguments)))
        return len(numbers)

    async def send_async(self, producer: AsyncProducer) -> int:
        """As `send`."""
        way, arguments, numbers = self.call()
        self.sent.append(Sent(numbers, await getattr(producer, way)(TOPIC, *arguments)))
        return len(numbers)

    def burst(self) -> int:
        return self._random.randrange(50, 300)

    def delivered(self) -> dict[int, Delivered]:
        """Where each number was acknowledged. Raises the failure of the first that was not."""
        places: dict[int, Delivered] = {}
        for numbers, delivery in self.sent:
            outcome = delivery.result(0)
            if isinstance(outcome, Delivered):
                places[numbers[0]] = outcome
                continue
            offsets: dict[int, list[int]] = defaultdict(list)
            for at in outcome:
                offsets[at.partition] += range(at.offset, at.offset + at.rows)
            of_partition = {partition: iter(found) for partition, found in offsets.items()}
            for number in numbers:
                partition = self.partitions[number]
                places[number] = Delivered(TOPIC, partition, next(of_partition[partition]))
        return places

    def problems(self, delivered: Mapping[int, Delivered], logs: Mapping[int, list[int]]) -> list[str]:
        """What is wrong with the logs, each a list of numbers; none is the aim."""
        due: dict[int, list[int]] = defaultdict(list)
        for number, partition in enumerate(self.partitions):
            due[partition].append(number)
        wrong = []
        for partition, numbers in due.items():
            found = logs[partition]
            if found != numbers:
                at = next((at for at, (a, b) in enumerate(zip(found, numbers, strict=False)) if a != b), len(numbers))
                wrong.append(f"partition {partition}: {len(numbers)} sent, {len(found)} there, unlike from {at} on")
        for number in range(len(self.partitions)):
            at = delivered[number]
            log = logs[at.partition]
            if at.offset >= len(log) or log[at.offset] != number:
                wrong.append(f"number {number} was acknowledged at {at.partition}@{at.offset}, where it is not")
        return wrong[:5]


def logs(broker: Broker) -> dict[int, list[int]]:
    """The numbers in each partition, read from the broker itself."""
    found = {}
    for partition in range(PARTITIONS):
        tp = TopicPartition(TOPIC, partition)
        end = list_offsets(broker.address, {tp: LATEST})[tp]
        read = (columns.column("value").to_pylist() for columns in read_columns(broker.address, *tp, 0, end))
        found[partition] = [int(value[:6]) for values in read for value in values]
    return found


def through_faults(
    broker: Broker,
    proxy: Proxy,
    seed: int,
    ways: Sequence[str] = WAYS[:1],
    kinds: Sequence[str] = KINDS,
    count: int = FAULTS,
    **settings: Any,
) -> list[str]:
    """The synchronous producer sends before and during each fault; what is wrong in the end."""
    load, faults = Load(seed, ways), Faults(broker, proxy, seed, kinds)
    with Producer(proxy.address, **{**SETTINGS, **settings}) as producer, ThreadPoolExecutor(1) as aside:  # type: ignore[arg-type]
        for _ in range(count):
            left = load.burst()
            while left > 0:
                left -= load.send(producer)
            fault = aside.submit(faults.each)
            while not wait([fault], 0.02).done:
                load.send(producer)
            fault.result()
        producer.flush(stretched(100))
        delivered = load.delivered()
    return load.problems(delivered, logs(broker))


async def through_faults_async(broker: Broker, proxy: Proxy, seed: int) -> list[str]:
    """As `through_faults`, with the producer for asyncio; faults run in a thread, and the producer goes on sending."""
    load, faults = Load(seed, WAYS), Faults(broker, proxy, seed)
    async with AsyncProducer(proxy.address, **SETTINGS) as producer:  # type: ignore[arg-type]
        for _ in range(FAULTS):
            fault = asyncio.create_task(asyncio.to_thread(faults.each))
            left = load.burst()
            while left > 0:
                left -= await load.send_async(producer)
                await asyncio.sleep(0)
            while not fault.done():
                await load.send_async(producer)
                await asyncio.sleep(0.02)
            await fault
        await producer.flush(stretched(100))
        delivered = load.delivered()
    return load.problems(delivered, logs(broker))


@pytest.mark.parametrize(
    ("codec", "ways"),
    [
        pytest.param("none", ["send"], id="send"),
        pytest.param("lz4", ["send_many"], id="send_many"),
        pytest.param("none", ["send_table"], id="send_table"),
        pytest.param("lz4", WAYS, id="all in turn"),
    ],
)
def test_each_record_is_there_once_and_in_order_whatever_befalls_the_broker(
    broker: Broker, proxy: Proxy, codec: str, ways: Sequence[str]
) -> None:
    assert not through_faults(broker, proxy, SEED, ways, compression_type=codec), f"MOLDAU_SEED={SEED}"


def test_an_asyncio_producer_delivers_each_record_once_and_in_order_whatever_befalls_the_broker(
    broker: Broker, proxy: Proxy
) -> None:
    problems = asyncio.run(within(through_faults_async(broker, proxy, SEED), 200))
    assert not problems, f"MOLDAU_SEED={SEED}"


@pytest.mark.parametrize("way", WAYS)
def test_without_idempotence_a_lost_reply_is_found_to_double_records(broker: Broker, proxy: Proxy, way: str) -> None:
    # a connection may break, and a reply that is not of Produce be lost, for another reason
    problems = through_faults(broker, proxy, SEED, [way], ["lose_replies"], 3, enable_idempotence=False)
    assert any("sent" in problem for problem in problems)


def test_a_lost_a_doubled_and_a_swapped_record_are_found() -> None:
    load = Load(SEED)
    for _ in range(100):
        load.record()
    right: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    delivered = {}
    for number, partition in enumerate(load.partitions):
        delivered[number] = Delivered(TOPIC, partition, len(right[partition]))
        right[partition].append(number)
    assert not load.problems(delivered, right)
    first, second, *rest = right[0]
    for wrong in ([first, *rest], [first, first, second, *rest], [second, first, *rest], [first, second, *rest[:-1]]):
        assert load.problems(delivered, {**right, 0: wrong})
    assert load.problems({**delivered, 0: delivered[0]._replace(offset=3)}, right)
