"""The age of the oldest unread record, where the broker cannot say which it is."""

import asyncio
import contextlib

import pytest

import moldau
from harness.brokers import Broker
from moldau.client import lag
from moldau.client.lag import KnownTimestamps, first_timestamp, lags, waiting_since
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


def test_many_partitions_are_looked_at_together_and_found_as_one_by_one(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with moldau.Admin(broker.address) as admin:
        admin.create_topic(topic, partitions=6)
    with moldau.Producer(broker.address, batch_size=1 << 20, linger_ms=0) as producer:
        for partition in range(5):  # the last one is empty
            large = 40_000 if partition == 3 else 0
            for number in range(4):
                value = f"{number}".ljust(large)
                producer.send(topic, value, partition=partition, timestamp_ms=10 * partition + number + 1).result()
    with moldau.Producer(broker.address, transactional_id=f"{topic}-till") as till:
        with contextlib.suppress(KeyError), till.transaction():
            till.send(topic, "aborted", partition=4, timestamp_ms=5).result()
            raise KeyError
        till.begin_transaction()
        end = till.send(topic, "open", partition=4, timestamp_ms=77).result().offset + 1
        alone = []
        one_batch = lag._one_batch
        monkeypatch.setattr(lag, "_one_batch", lambda *args: alone.append(args[1:3]) or one_batch(*args))

        async def scenario() -> None:
            wanted = {(TopicPartition(topic, number), at): 4 for number in range(4) for at in range(4)}
            wanted |= {(TopicPartition(topic, 4), at): end for at in range(end)}
            async with Router(broker.address) as router:
                found = await waiting_since(router, wanted)
                assert {tp.partition for tp, _ in alone} <= {3, 4}
                assert len([tp for tp, _ in alone if tp.partition == 3]) <= 4, "only what is large is fetched alone"
                for (tp, at), until in wanted.items():
                    assert found[tp, at] == await first_timestamp(router, tp, at, until), (tp, at)
                    assert found[tp, at] == 10 * tp.partition + at + 1 or tp.partition == 4
                assert [found[TopicPartition(topic, 4), at] for at in (3, 4, end - 1)] == [44, 77, 77]

        asyncio.run(scenario())
        till.abort_transaction()


def test_a_batch_that_is_too_large_to_look_into_has_no_age(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with moldau.Producer(bootstrap, compression_type="zstd") as producer:
        producer.send(topic, bytes(100_000), timestamp_ms=5).result()
    monkeypatch.setattr(lag, "INFLATED_MAX", 50_000)

    async def scenario() -> None:
        async with Router(bootstrap) as router:
            assert (await lags(router, {TopicPartition(topic, 0): 0}, 9))[TopicPartition(topic, 0)][2:] == (1, None)

    asyncio.run(scenario())
