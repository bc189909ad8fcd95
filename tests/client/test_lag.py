"""The age of the oldest unread record, where the broker cannot say which it is."""

import asyncio
import contextlib

import moldau
from moldau.client.lag import KnownTimestamps, first_timestamp, lags
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


def test_records_of_aborted_transactions_do_not_wait_and_those_of_open_ones_do(bootstrap: str, topic: str) -> None:
    with moldau.Producer(bootstrap, transactional_id=f"{topic}-till") as producer:
        for time_ms in (1, 2):
            with contextlib.suppress(KeyError), producer.transaction():
                producer.send(topic, b"aborted", timestamp_ms=time_ms).result()
                raise KeyError
        with producer.transaction():
            producer.send(topic, b"committed", timestamp_ms=3).result()
        producer.begin_transaction()
        open_at = producer.send(topic, b"open", timestamp_ms=4).result().offset

        async def found(offset: int) -> int | None:
            async with Router(bootstrap) as router:
                return await first_timestamp(router, TopicPartition(topic, 0), offset, open_at + 1)

        assert [asyncio.run(found(offset)) for offset in (0, 2, open_at - 1, open_at)] == [3, 3, 4, 4]
        producer.abort_transaction()


def test_what_is_known_of_a_group_that_stands_still_is_not_fetched_again(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with moldau.Producer(bootstrap) as producer, moldau.Producer(bootstrap, transactional_id=f"{topic}-t") as till:
        producer.send(topic, b"x", timestamp_ms=5_000).result()
        with till.transaction():
            till.send(topic, b"x", timestamp_ms=6_000).result()

    async def scenario() -> None:
        known: KnownTimestamps = {}
        async with Router(bootstrap) as router:
            for _ in range(2):
                found = await lags(router, {tp: 0}, 9_000, known)
                assert found[tp].seconds == 4.0 and known == {(tp, 0): 5_000}
            known[tp, 0] = 7_000
            assert (await lags(router, {tp: 0}, 9_000, known))[tp].seconds == 2.0
            assert (await lags(router, {tp: 1}, 9_000, known))[tp].seconds == 3.0
            assert (tp, 1) not in known

    asyncio.run(scenario())
