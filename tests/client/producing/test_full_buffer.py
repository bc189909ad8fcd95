"""A producer whose buffer is full, or whose broker does not answer: who waits, how long, and with how much memory."""

import asyncio
import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau.client.producing.batching import BufferFull
from moldau.client.producing.producer import AsyncProducer, Producer
from moldau.errors import (
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from tests.client.producing.beside import paused, values


def send_often(producer: Producer, topic: str) -> None:
    for _ in range(10):
        producer.send(topic, b"x" * 400)


@pytest.mark.parametrize("acks", ["all", 1])
def test_more_than_the_buffer_holds_waits_for_room(bootstrap: str, topic: str, acks: str | int) -> None:
    with Producer(bootstrap, acks=acks, buffer_memory=20_000, batch_size=5_000) as producer:
        for number in range(3_000):
            producer.send(topic, b"%0100d" % number)
    assert [int(str(value, "ascii")) for value in values(bootstrap, topic)] == list(range(3_000))  # type: ignore[call-overload]


def short_ms() -> int:
    """A `max_block_ms` that is over soon, yet leaves a broker the time to answer."""
    return int(stretched(0.5) * 1000)


def test_a_topic_that_does_not_exist_is_an_error_after_max_block_ms(
    tmp_path: Path, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path, {"auto.create.topics.enable": "false"})
    broker.start()
    try:
        with caplog.at_level("DEBUG", "moldau"), Producer(broker.address, max_block_ms=short_ms()) as producer:
            with pytest.raises(UnknownTopicOrPartition, match=f"topic {topic}"):
                producer.send(topic, b"x")
        assert f"topic {topic}: unknown topic or partition (attempt 1" in caplog.text
    finally:
        broker.stop()


def test_a_broker_that_never_answers_is_an_error_after_max_block_ms(topic: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with Producer(address, max_block_ms=300) as producer, pytest.raises(RequestTimedOut, match=r"max\.block\.ms"):
            producer.send(topic, b"x")


def test_a_full_buffer_is_an_error_after_max_block_ms(broker: Broker, topic: str) -> None:
    block_ms = short_ms()
    with Producer(broker.address, max_block_ms=block_ms, buffer_memory=1_000) as producer:
        producer.send(topic, b"x").result(stretched(10))
        with paused(broker):
            with pytest.raises(RequestTimedOut, match=f"buffer was full for {block_ms} ms"):
                send_often(producer, topic)


@pytest.mark.parametrize("size", [10, 100, 1_000])
@pytest.mark.parametrize("headers", [(), [("trace", b"0123456789"), ("empty", None)]], ids=["plain", "headers"])
def test_records_that_wait_for_a_slow_broker_take_no_more_memory_than_the_buffer(
    broker: Broker, topic: str, size: int, headers: list[tuple[str, bytes | None]]
) -> None:
    buffer_bytes, refused = 2_000_000, False
    patient = {"request_timeout_ms": 1_000_000, "delivery_timeout_ms": 2_000_000}  # filling it may take minutes
    with Producer(broker.address, buffer_memory=buffer_bytes, **patient) as producer:
        producer.send(topic, b"x").result(stretched(10))
        with paused(broker):
            tracemalloc.start()
            while not refused:
                try:
                    producer._core.appender.place(  # as `send` does, which would wait for room
                        producer._core.routes[topic],
                        producer._core.now_s(),
                        os.urandom(size),
                        None,
                        0,
                        None,
                        headers,
                        None,
                    )
                except BufferFull:
                    refused = True
            taken, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert producer.metrics().buffer_used_bytes > buffer_bytes - 5_000
    assert 0.5 * buffer_bytes < taken < 1.2 * buffer_bytes


def test_a_full_buffer_is_an_error_of_the_asyncio_producer_too(broker: Broker, topic: str) -> None:
    block_ms = short_ms()

    async def run() -> None:
        async with AsyncProducer(broker.address, max_block_ms=block_ms, buffer_memory=1_000) as producer:
            await (await producer.send(topic, b"x"))
            with paused(broker):
                with pytest.raises(RequestTimedOut, match=f"buffer was full for {block_ms} ms"):
                    await asyncio.gather(*(producer.send(topic, b"x" * 400) for _ in range(10)))

    asyncio.run(run())
