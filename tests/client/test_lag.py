"""The age of the oldest unread record, where the broker cannot say which it is."""

import asyncio

import moldau
from moldau.client.lag import first_timestamp
from moldau.client.routing import Router
from moldau.names import TopicPartition


def test_a_fetch_that_returns_nothing_is_no_age_instead_of_zero(bootstrap: str, topic: str) -> None:
    with moldau.Producer(bootstrap) as producer:
        producer.send(topic, b"x", timestamp_ms=5).result()

    async def found(offset: int, end: int) -> int | None:
        async with Router(bootstrap) as router:
            return await first_timestamp(router, TopicPartition(topic, 0), offset, end)

    assert asyncio.run(found(0, 1)) == 5
    assert asyncio.run(found(1, 1)) is None
    assert asyncio.run(found(1, 2)) == -1
