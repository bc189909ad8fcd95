"""Message streams of the asyncio face: asynchronous iterators for tasks, each over its share of the partitions."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.patience import within
from moldau import TopicFilter, TopicPartition, aio
from moldau.errors import ConfigError, KafkaError
from tests.client.consuming.test_streams import fill


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(within(work))


async def first(stream: aio.MessageStream) -> aio.Record:
    async for record in stream:
        return record
    raise AssertionError("the stream has ended")


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def read(stream: aio.MessageStream, into: list[aio.Record]) -> None:
    async for record in stream:
        into.append(record)


def test_the_partitions_of_a_topic_are_shared_out_to_tasks_in_order(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 4, 500)
    seen: list[list[aio.Record]] = [[], []]

    async def work() -> None:
        consumer = aio.Consumer(bootstrap, group_id=group, auto_offset_reset="earliest")
        async with asyncio.TaskGroup() as tasks, consumer:
            for stream, into in zip(consumer.create_message_streams({topic: 2})[topic], seen, strict=True):
                tasks.create_task(read(stream, into))
            await until(lambda: len(seen[0]) + len(seen[1]) == 2_000)

    run(work())
    for records in seen:
        partitions = sorted({record.partition for record in records})
        assert len(partitions) == 2
        for partition in partitions:
            assert [r.offset for r in records if r.partition == partition] == list(range(500))


def test_only_records_that_a_stream_came_back_from_are_committed(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 2, 100)

    async def work() -> None:
        async with aio.Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            for stream, last in zip(consumer.create_message_streams({topic: 2})[topic], (7, 42), strict=True):
                async for record in stream:
                    if record.offset == last:
                        break
        async with aio.Consumer(bootstrap, group_id=group) as after:
            found = await after.committed([TopicPartition(topic, number) for number in range(2)])
        assert sorted(at.offset for at in found.values()) == [7, 42]

    run(work())


def test_a_slow_stream_delays_no_other_one_and_is_held_back(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 2, 2_000)
    seen: list[aio.Record] = []

    async def work() -> None:
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", "max_poll_records": 100}
        async with asyncio.TaskGroup() as tasks, aio.Consumer(bootstrap, group_id=group, **settings) as consumer:
            slow, fast = consumer.create_message_streams({topic: 2})[topic]
            await first(slow)
            tasks.create_task(read(fast, seen))
            await until(lambda: len(seen) == 2_000)
            held = [p for p in consumer.paused() if p.partition != seen[0].partition]
            assert len(held) == 1
            assert await consumer.position(held[0]) < 2_000

    run(work())


def test_a_loop_over_a_stream_that_was_left_is_continued_by_the_next_one(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 1, 100)
    offsets: list[int] = []

    async def work() -> None:
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", "max_poll_records": 30}
        async with aio.Consumer(bootstrap, group_id=group, **settings) as consumer:
            [stream] = consumer.create_message_streams({topic: 1})[topic]
            for last in (7, 42, 99):
                async for record in stream:
                    offsets.append(record.offset)
                    if record.offset == last:
                        break

    run(work())
    assert offsets == list(range(100))


def test_filters_select_topics(bootstrap: str, fresh: Callable[[], str], group: str) -> None:
    prefix = fresh()
    for name in ("a", "b"):
        fill(bootstrap, f"{prefix}-{name}", 1, 1)

    async def work() -> None:
        allowed = TopicFilter.allow(f"{prefix}-.")
        async with aio.Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            streams = consumer.create_message_streams({f"{prefix}-a": 1, allowed: 1})
            found = [(await first(streams[key][0])).topic for key in (f"{prefix}-a", allowed)]
        assert found == [f"{prefix}-a", f"{prefix}-b"]

    run(work())


def test_a_failure_comes_out_of_the_streams_and_wrong_uses_are_refused(bootstrap: str, topic: str, group: str) -> None:
    async def work() -> None:
        async with aio.Consumer(bootstrap, group_id=group, default_api_timeout_ms=500) as consumer:
            with pytest.raises(ConfigError, match="number of streams"):
                consumer.create_message_streams({topic: 0})
            [stream] = consumer.create_message_streams({topic: 1})[topic]
            with pytest.raises(KafkaError, match=topic):
                await first(stream)
            with pytest.raises(ConfigError, match="subscribed already"):
                consumer.create_message_streams({topic: 1})
        async with aio.Consumer(bootstrap) as consumer:
            with pytest.raises(ConfigError, match="group_id"):
                consumer.create_message_streams({topic: 1})

    run(work())
