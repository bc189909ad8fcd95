"""What clients hold: at most `buffer_memory` in a producer, at most `fetch_max_bytes` and one batch in a consumer."""

import asyncio
import threading

import pytest

from harness.patience import Deadline, stretched, wait_until
from harness.proxy import Proxy
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.producing.async_producer import AsyncProducer
from moldau.client.producing.batching import Accumulator
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.records.batch import HEADER_SIZE
from moldau.records.columns import RECORD_SIZE_MAX
from moldau.testing import Broker
from tests.client.programs.faces import AsyncFace, Face, SyncFace
from tests.replacing import Instead, replaced, returns

TOPIC = "orders"
PARTITIONS = 4
RECORD_BYTES = 1_000
BUFFER_BYTES = 200_000
BATCH_BYTES = 16_000
FETCH_BYTES = 100_000


@pytest.fixture
def broker(proxied: Broker) -> Broker:
    proxied.create_topic(TOPIC, PARTITIONS)
    return proxied


SETTINGS = {"buffer_memory": BUFFER_BYTES, "batch_size": BATCH_BYTES, "max_block_ms": 1_000_000}


def held(accumulator: Accumulator) -> int:
    """The bytes of the batches that are not acknowledged."""
    return sum(len(batch.encoded or batch.records) for batch in accumulator.outstanding())


def is_full(accumulator: Accumulator) -> bool:
    return accumulator.held_bytes + RECORD_BYTES + RECORD_SIZE_MAX + HEADER_SIZE > BUFFER_BYTES


def trickle(proxy: Proxy, accumulator: Accumulator) -> None:
    """Let a slow broker have a few batches at a time, and look at what is held each time the buffer is full again."""
    for _ in range(5):
        assert wait_until(lambda: is_full(accumulator))
        assert held(accumulator) <= BUFFER_BYTES
        assert accumulator.held_bytes <= BUFFER_BYTES
        passed = proxy.requested_bytes
        proxy.allow(requests=BATCH_BYTES * 3)
        assert wait_until(lambda: proxy.requested_bytes >= passed + BATCH_BYTES * 3)  # noqa: B023
    proxy.heal()


def send_to_a_slow_broker(proxy: Proxy) -> None:
    sent = BUFFER_BYTES * 5 // RECORD_BYTES
    with Producer(proxy.address, **SETTINGS) as producer:  # type: ignore[arg-type]
        producer.send(TOPIC, b"first").result(stretched())
        proxy.allow(requests=0)
        value = b"x" * RECORD_BYTES
        sending = threading.Thread(target=lambda: [producer.send(TOPIC, value, key=b"%d" % n) for n in range(sent)])
        sending.start()
        try:
            trickle(proxy, producer._core.accumulator)
        finally:
            proxy.heal()
            sending.join()
        producer.flush(stretched())
        assert producer._core.accumulator.held_bytes == 0


def test_a_producer_of_a_slow_broker_holds_at_most_its_buffer(broker: Broker, proxy: Proxy) -> None:
    send_to_a_slow_broker(proxy)


def test_an_asyncio_producer_of_a_slow_broker_holds_at_most_its_buffer(broker: Broker, proxy: Proxy) -> None:
    async def run() -> None:
        async with AsyncProducer(proxy.address, **SETTINGS) as producer:  # type: ignore[arg-type]
            await (await producer.send(TOPIC, b"first"))
            proxy.allow(requests=0)
            looking = asyncio.create_task(asyncio.to_thread(trickle, proxy, producer.accumulator))
            for number in range(BUFFER_BYTES * 5 // RECORD_BYTES):
                await producer.send(TOPIC, b"x" * RECORD_BYTES, key=b"%d" % number)
            await looking
            await producer.flush(stretched())
            assert producer.accumulator.held_bytes == 0

    asyncio.run(run())


@pytest.mark.bug
def test_a_producer_that_takes_no_account_of_its_batches_is_found(broker: Broker, proxy: Proxy) -> None:
    bug = Instead("moldau.client.producing.batching:Accumulator._reserve", _counts_nothing)
    with replaced([bug, Instead("tests.client.test_memory:is_full", _holds_too_much)]), pytest.raises(AssertionError):
        send_to_a_slow_broker(proxy)


def _counts_nothing(_: object, accumulator: Accumulator, needed: int, wanted: int = 0) -> int:
    return max(needed, wanted)


def _holds_too_much(_: object, accumulator: Accumulator) -> bool:
    return held(accumulator) > BUFFER_BYTES


def unread(consumer: AsyncConsumer) -> int:
    """The bytes of the values that were fetched and not handed out."""
    states = list(consumer._poller.assigned.values())
    return RECORD_BYTES * sum(s.fetch_from - s.position for s in states if s.fetch_from and s.position is not None)


def read_slowly(broker: Broker, face: type[Face]) -> None:
    """Poll records one by one, and look after each at what is held."""
    with Producer(broker.address, batch_size=BATCH_BYTES) as producer:
        for number in range(1_000):
            producer.send(TOPIC, b"x" * RECORD_BYTES, partition=number % PARTITIONS)
    loop = asyncio.new_event_loop()
    settings = {"auto_offset_reset": "earliest", "fetch_max_bytes": FETCH_BYTES, "max_partition_fetch_bytes": 60_000}
    consumer = face({"bootstrap_servers": broker.address, **settings}, loop)
    core = consumer.consumer._core if isinstance(consumer, SyncFace) else consumer.consumer
    try:
        taken, most, deadline = 0, 0, Deadline()
        consumer("assign", [TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
        while taken < 500:
            assert not deadline.passed
            taken += len(consumer("poll", 100, 1))
            most = max(most, unread(core))
        assert FETCH_BYTES / 2 < most <= FETCH_BYTES + BATCH_BYTES
    finally:
        consumer("close")
        loop.close()


@pytest.mark.parametrize("face", [SyncFace, AsyncFace])
def test_a_consumer_that_is_read_slowly_holds_one_fetch_and_a_batch(broker: Broker, face: type[Face]) -> None:
    read_slowly(broker, face)


@pytest.mark.bug
def test_a_consumer_that_fetches_more_than_its_limit_is_found(broker: Broker) -> None:
    bug = Instead("moldau.client.consuming.polling:Poller._budget", returns(1 << 30))
    with replaced([bug]), pytest.raises(AssertionError):
        read_slowly(broker, SyncFace)
