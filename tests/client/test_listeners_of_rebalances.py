"""Listeners of rebalances run inside `poll`, in the caller's thread or on its loop, and may use the consumer."""

import asyncio
import threading

import pytest

from harness.patience import Deadline, stretched, within
from moldau.client.administration.admin import Admin
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError
from moldau.names import TopicPartition


def fill(bootstrap: str, topic: str, count: int) -> TopicPartition:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number)
    return TopicPartition(topic, 0)


def first_offset(consumer: Consumer) -> int:
    deadline = Deadline()
    while not (records := consumer.poll(500, 1)):
        assert not deadline.passed
    return records[0].offset


def test_a_listener_of_the_synchronous_consumer_may_use_every_method(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 20)
    threads: list[threading.Thread] = []
    found: dict[str, object] = {}
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:

        def assigned(partitions: list[TopicPartition]) -> None:
            threads.append(threading.current_thread())
            found["position"] = consumer.position(tp)
            consumer.seek(tp, 15)
            consumer.pause(partitions)
            found["paused"] = consumer.paused()
            consumer.resume(partitions)
            found["lag"] = consumer.lag()
            found["committed"] = consumer.committed([tp])

        def revoked(partitions: list[TopicPartition]) -> None:
            threads.append(threading.current_thread())
            consumer.commit({tp: 12})

        consumer.subscribe(topic, on_assigned=assigned, on_revoked=revoked)
        assert first_offset(consumer) == 15
        consumer.unsubscribe()
        assert consumer.committed([tp])[tp].offset == 12
    assert found == {"position": 0, "paused": [tp], "lag": {tp: 5}, "committed": {}}
    assert threads == [threading.current_thread()] * 2


def test_a_slow_loop_keeps_its_membership_and_takes_part_in_a_rebalance_before_its_records_are_used_up(
    bootstrap: str, topic: str, group: str
) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    with Producer(bootstrap) as producer:
        for number in range(2_000):
            producer.send(topic, b"x", partition=number % 2)
    settings = {
        "group_id": group,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 50,
        "max_poll_interval_ms": int(stretched(2.0) * 1000),
        "auto_commit_interval_ms": 100,
    }
    lost: list[object] = []
    taken: list[Record] = []
    seen: dict[int, list[int]] = {0: [], 1: []}
    with Consumer(bootstrap, **settings) as first, Consumer(bootstrap, **settings) as second:
        first.subscribe(topic, on_lost=lost.append)
        second.subscribe(topic)
        for count, record in enumerate(first, 1):
            seen[record.partition].append(record.offset)
            taken += second.poll(100, 1)
            if count > 25 and taken:
                assert len(second.assignment()) == len(first.assignment()) == 1
                assert len(seen[taken[0].partition]) - taken[0].offset in (0, 1)
                break
            assert count < 300
        kept = first.assignment()[0].partition
        assert seen[kept] == sorted(set(seen[kept]))
    assert lost == []


def test_what_a_listener_raises_comes_out_of_poll(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 1)

    def assigned(_: list[TopicPartition]) -> None:
        raise ZeroDivisionError

    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic, on_assigned=assigned)
        with pytest.raises(ZeroDivisionError):
            first_offset(consumer)
        assert first_offset(consumer) == 0


def test_partitions_are_given_up_in_front_of_the_listener_when_the_consumer_closes(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, 5)
    gone: list[object] = []
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic, on_revoked=lambda partitions: gone.append((partitions, consumer.position(tp))))
        first_offset(consumer)
    assert gone == [([tp], 1)]


@pytest.mark.parametrize("call", ["unsubscribe", "close"])
def test_a_listener_of_partitions_that_are_given_up_may_give_all_up(
    bootstrap: str, topic: str, group: str, call: str
) -> None:
    fill(bootstrap, topic, 1)
    told: list[list[TopicPartition]] = []
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:

        def revoked(partitions: list[TopicPartition]) -> None:
            told.append(partitions)
            consumer.unsubscribe()

        consumer.subscribe(topic, on_revoked=revoked)
        first_offset(consumer)
        getattr(consumer, call)()
    assert told == [[TopicPartition(topic, 0)]]


def test_listeners_on_asyncio_may_be_coroutine_functions(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 20)
    called: list[object] = []

    async def run() -> None:
        async with AsyncConsumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:

            async def assigned(partitions: list[TopicPartition]) -> None:
                called.append((partitions, await consumer.position(tp)))
                consumer.seek(tp, 15)

            async def revoked(partitions: list[TopicPartition]) -> None:
                await consumer.commit({tp: 17})
                called.append(partitions)

            consumer.subscribe(topic, on_assigned=assigned, on_revoked=revoked)
            async for record in consumer:
                assert record.offset == 15
                break
            await consumer.unsubscribe()
            assert (await consumer.committed([tp]))[tp].offset == 17

    async def limited() -> None:
        await within(run())

    asyncio.run(limited())
    assert called == [([tp], 0), [tp]]


def test_the_synchronous_consumer_refuses_listeners_that_it_cannot_await(bootstrap: str, group: str) -> None:
    async def assigned(_: list[TopicPartition]) -> None:
        pass

    with Consumer(bootstrap, group_id=group) as consumer, pytest.raises(ConfigError, match=r"moldau\.aio"):
        consumer.subscribe("t", on_assigned=assigned)
