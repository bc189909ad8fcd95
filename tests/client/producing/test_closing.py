"""Callers that wait for room in the buffer while the producer is closed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.brokers import Broker
from harness.patience import stretched, wait_until
from moldau.client.failures import ClientClosed
from moldau.client.producing.producer import AsyncProducer, Producer
from tests.client.producing.beside import paused, values

PIECE = b"x" * 400
ROOM_FOR_TWO = {"buffer_memory": 1_000, "batch_size": 400}


def test_a_send_that_waits_for_room_is_refused_when_the_producer_closes(broker: Broker, topic: str) -> None:
    async def run() -> None:
        producer = AsyncProducer(broker.address, **ROOM_FOR_TWO)
        await producer.start()
        await (await producer.send(topic, b"x"))
        with paused(broker):
            taken = [await producer.send(topic, PIECE) for _ in range(2)]
            waiting = [asyncio.create_task(producer.send(topic, PIECE)) for _ in range(3)]
            table = asyncio.create_task(producer.send_many(topic, [PIECE]))
            await asyncio.sleep(0)
            closing = asyncio.create_task(producer.close())
            for one in (*waiting, table):
                with pytest.raises(ClientClosed, match="this producer is closed"):
                    await asyncio.wait_for(one, stretched())
        await closing
        assert [(await delivery).offset for delivery in taken] == [1, 2]

    asyncio.run(run())
    assert len(values(broker.address, topic)) == 3


def test_a_thread_that_waits_for_room_is_refused_when_another_closes_the_producer(broker: Broker, topic: str) -> None:
    producer = Producer(broker.address, **ROOM_FOR_TWO)
    producer.send(topic, b"x").result(stretched())
    with ThreadPoolExecutor(2) as threads:
        with paused(broker):
            taken = [producer.send(topic, PIECE) for _ in range(2)]
            waiting = threads.submit(producer.send, topic, PIECE)
            assert wait_until(lambda: producer._core.accumulator.pressing)
            closing = threads.submit(producer.close)
            with pytest.raises(ClientClosed, match="this producer is closed"):
                waiting.result(stretched())
        closing.result(stretched())
    assert [delivery.result(0).offset for delivery in taken] == [1, 2]
    assert len(values(broker.address, topic)) == 3
