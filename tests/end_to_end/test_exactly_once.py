"""Our producer, idempotent and with acks=all, delivers each record exactly once and in order through every fault: the
broker is killed, connections break within requests and replies, replies get lost, the broker's process stands still.

`MOLDAU_SEED` repeats a run; `MOLDAU_PROFILE=long` sends more, of a new seed.
"""

import asyncio
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import stretched, within
from harness.proxy import Proxy
from moldau import TopicPartition
from moldau.client.administration.admin import Admin
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.client.producing.delivery import Delivered, Delivery
from moldau.client.producing.partitioning import positive_hash
from moldau.client.producing.producer import AsyncProducer, Producer
from tests.end_to_end.faults import KINDS, Faults

LONG = os.environ.get("MOLDAU_PROFILE") == "long"
SEED = int(os.environ.get("MOLDAU_SEED") or (random.randrange(1 << 32) if LONG else 14))
FAULTS = 20 * len(KINDS) if LONG else len(KINDS)
TOPIC = "orders"
PARTITIONS = 3
MESSAGE_BYTES_MAX = 6_000
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


class Load:
    """Numbered records with keys, and what became of each."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self.sent: list[int] = []
        self.deliveries: list[Delivery] = []

    def record(self) -> dict[str, object]:
        """The next record, as the arguments of `send`; its key chooses the partition."""
        number = len(self.sent)
        key = b"key-%d" % self._random.randrange(50)
        self.sent.append(positive_hash(key) % PARTITIONS)
        return {"key": key, "value": b"%06d" % number + b"." * self._random.randrange(1_500)}

    def burst(self) -> int:
        return self._random.randrange(50, 300)

    def problems(self, delivered: list[Delivered], logs: dict[int, list[int]]) -> list[str]:
        """What is wrong with the logs, each a list of numbers; none is the aim."""
        due: dict[int, list[int]] = defaultdict(list)
        for number, partition in enumerate(self.sent):
            due[partition].append(number)
        wrong = []
        for partition, numbers in due.items():
            found = logs[partition]
            if found != numbers:
                at = next((at for at, (a, b) in enumerate(zip(found, numbers, strict=False)) if a != b), len(numbers))
                wrong.append(f"partition {partition}: {len(numbers)} sent, {len(found)} there, unlike from {at} on")
        for number, at in enumerate(delivered):
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
    broker: Broker, proxy: Proxy, seed: int, kinds: Sequence[str] = KINDS, count: int = FAULTS, **settings: object
) -> list[str]:
    """The synchronous producer sends before and during each fault; what is wrong in the end."""
    load, faults = Load(seed), Faults(broker, proxy, seed, kinds)
    with Producer(proxy.address, **{**SETTINGS, **settings}) as producer, ThreadPoolExecutor(1) as aside:  # type: ignore[arg-type]
        for _ in range(count):
            load.deliveries += [producer.send(TOPIC, **load.record()) for _ in range(load.burst())]  # type: ignore[arg-type]
            fault = aside.submit(faults.each)
            while not wait([fault], 0.02).done:
                load.deliveries.append(producer.send(TOPIC, **load.record()))  # type: ignore[arg-type]
            fault.result()
        producer.flush(stretched(100))
        delivered = [delivery.result(0) for delivery in load.deliveries]
    return load.problems(delivered, logs(broker))


async def through_faults_async(broker: Broker, proxy: Proxy, seed: int) -> list[str]:
    """As `through_faults`, with the producer for asyncio; faults run in a thread, and the producer goes on sending."""
    load, faults = Load(seed), Faults(broker, proxy, seed)
    async with AsyncProducer(proxy.address, **SETTINGS) as producer:  # type: ignore[arg-type]
        for _ in range(FAULTS):
            fault = asyncio.create_task(asyncio.to_thread(faults.each))
            for _ in range(load.burst()):
                load.deliveries.append(await producer.send(TOPIC, **load.record()))  # type: ignore[arg-type]
                await asyncio.sleep(0)
            while not fault.done():
                load.deliveries.append(await producer.send(TOPIC, **load.record()))  # type: ignore[arg-type]
                await asyncio.sleep(0.02)
            await fault
        await producer.flush(stretched(100))
        delivered = [await delivery for delivery in load.deliveries]
    return load.problems(delivered, logs(broker))


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_each_record_is_there_once_and_in_order_whatever_befalls_the_broker(
    broker: Broker, proxy: Proxy, codec: str
) -> None:
    assert not through_faults(broker, proxy, SEED, compression_type=codec), f"MOLDAU_SEED={SEED}"


def test_an_asyncio_producer_delivers_each_record_once_and_in_order_whatever_befalls_the_broker(
    broker: Broker, proxy: Proxy
) -> None:
    problems = asyncio.run(within(through_faults_async(broker, proxy, SEED), 200))
    assert not problems, f"MOLDAU_SEED={SEED}"


def test_without_idempotence_a_lost_reply_is_found_to_double_records(broker: Broker, proxy: Proxy) -> None:
    problems = through_faults(broker, proxy, SEED, ["lose_replies"], 1, enable_idempotence=False)
    assert any("sent" in problem for problem in problems)


def test_a_lost_a_doubled_and_a_swapped_record_are_found() -> None:
    load = Load(SEED)
    for _ in range(100):
        load.record()
    right: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    delivered = []
    for number, partition in enumerate(load.sent):
        delivered.append(Delivered(TOPIC, partition, len(right[partition])))
        right[partition].append(number)
    assert not load.problems(delivered, right)
    first, second, *rest = right[0]
    for wrong in ([first, *rest], [first, first, second, *rest], [second, first, *rest], [first, second, *rest[:-1]]):
        assert load.problems(delivered, {**right, 0: wrong})
    assert load.problems([delivered[0]._replace(offset=3), *delivered[1:]], right)
