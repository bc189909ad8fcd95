"""A program cancels all tasks of its loop, as some frameworks do: clients either go on, or say why they do not."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from harness.patience import within
from moldau import aio
from moldau.errors import ClientClosed, NetworkException


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(within(scenario))


async def cancel_all_others(spared: set["asyncio.Task[Any]"]) -> None:
    others = asyncio.all_tasks() - spared
    assert others
    for task in others:
        task.cancel()
    await asyncio.wait(others)


async def filled(bootstrap: str, topic: str) -> None:
    async with aio.Producer(bootstrap) as producer:
        await producer.send(topic, b"x")


def test_a_producer_takes_no_records_that_nobody_would_send(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        before = asyncio.all_tasks()
        producer = aio.Producer(bootstrap, linger_ms=3_600_000)
        await producer.start()
        waiting = await producer.send(topic, b"x")
        await cancel_all_others(before)
        with pytest.raises(NetworkException, match="task was cancelled"):
            await waiting
        with pytest.raises(ClientClosed, match="the task that sends its records was cancelled"):
            await producer.send(topic, b"y")
        await producer.close()

    run(scenario())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_joins_its_group_again(bootstrap: str, topic: str, group: str, protocol: str) -> None:
    async def scenario() -> None:
        await filled(bootstrap, topic)
        before, told = asyncio.all_tasks(), list[object]()
        async with aio.Consumer(bootstrap, group_id=group, group_protocol=protocol) as consumer:
            consumer.subscribe(topic, on_assigned=told.append)
            while not told:
                await consumer.poll(50)
            await cancel_all_others(before)
            while len(told) < 2:
                await consumer.poll(50)
            assert consumer.group_metadata().generation_id > 0

    run(scenario())


def test_streams_end_with_a_sentence(bootstrap: str, topic: str, group: str) -> None:
    async def scenario() -> None:
        await filled(bootstrap, topic)
        before = asyncio.all_tasks()
        async with aio.Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            [stream] = consumer.create_message_streams({topic: 1})[topic]
            records = aiter(stream)
            assert (await anext(records)).value == b"x"
            await cancel_all_others(before)
            with pytest.raises(ClientClosed, match="feeds this consumer's streams was cancelled"):
                await anext(records)

    run(scenario())
