"""Closing a client of asyncio twice, or giving up while it closes: its connections are closed all the same."""

import asyncio

import pytest

from harness.patience import within
from moldau import aio


@pytest.mark.parametrize("kind", ["consumer", "producer"])
def test_a_close_that_is_given_up_closes_the_connections_and_another_closer_waits_for_that(
    bootstrap: str, topic: str, kind: str
) -> None:
    async def scenario() -> None:
        client: aio.Consumer | aio.Producer
        if kind == "consumer":
            client = aio.Consumer(bootstrap, group_id=topic)
            await client.start()
            client.subscribe(topic)
            await client.poll(1)
        else:
            client = aio.Producer(bootstrap, linger_ms=60_000)
            await client.start()
            await client.send(topic, b"v")
        first = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        second = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        assert not second.done()
        first.cancel()
        await within(second)
        assert client._router.closed
        await within(client.close())

    asyncio.run(scenario())


def test_a_listener_may_close_the_consumer_that_is_closed(bootstrap: str, topic: str) -> None:
    """`close` revokes the partitions, and the listener closes the consumer as well."""

    async def scenario() -> list[str]:
        told: list[str] = []

        async def on_revoked(_: object) -> None:
            await consumer.close()
            told.append("revoked")

        async with aio.Admin(bootstrap) as admin:
            await admin.create_topic(topic)
        consumer = aio.Consumer(bootstrap, group_id=topic)
        await consumer.start()
        consumer.subscribe(topic, on_revoked=on_revoked)
        while not consumer.assignment():
            await consumer.poll(50)
        await within(consumer.close())
        return told

    assert asyncio.run(scenario()) == ["revoked"]
