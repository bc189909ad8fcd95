"""A partition as a sequence of records."""

import asyncio

import pytest

from moldau.client.administration.admin import Admin
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.client.producing.serializers import from_text
from moldau.errors import UnknownTopicOrPartition
from moldau.names import TopicPartition


def fill(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap, batch_size=500) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number)


def test_a_log_is_read_by_offset_slice_and_loop(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 1_000)
    with Consumer(bootstrap, max_partition_fetch_bytes=2_000) as consumer:
        log = consumer.log(topic)
        assert (log.start, log.end, len(log)) == (0, 1_000, 1_000)
        assert log[7].value == b"7"
        assert log[-1].offset == 999
        assert [record.offset for record in log[100:200]] == list(range(100, 200))
        assert [record.offset for record in log[-3:]] == [997, 998, 999]
        assert [record.offset for record in log[:2]] == [0, 1]
        assert log[2_000:] == log[5:5] == []
        assert [record.offset for record in log] == list(range(1_000))
        assert repr(log) == f"<Log {topic}-0>"
        for index in (1_000, -1_001):
            with pytest.raises(IndexError, match="from 0 to 999"):
                log[index]
        with pytest.raises(ValueError, match="step"):
            log[::2]


def test_a_log_begins_where_its_oldest_records_were_deleted(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 50)
    with Admin(bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 20})
    with Consumer(bootstrap, value_deserializer=from_text) as consumer:
        log = consumer.log(topic, 0)
        assert (log.start, len(log)) == (20, 50)
        assert [record.value for record in log[:22]] == ["20", "21"]
        assert next(iter(log)).offset == 20
        with pytest.raises(IndexError, match="from 20 to 49"):
            log[0]


def test_a_log_that_does_not_exist_is_one_sentence(bootstrap: str, topic: str) -> None:
    with Consumer(bootstrap) as consumer, pytest.raises(UnknownTopicOrPartition, match=f"topic {topic} does not exist"):
        len(consumer.log(topic))


def test_a_log_is_read_on_asyncio(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 100)

    async def run() -> None:
        async with AsyncConsumer(bootstrap) as consumer:
            log = consumer.log(topic, 0)
            assert (await log.start(), await log.end()) == (0, 100)
            assert (await log[-1]).value == b"99"
            assert [record.offset for record in await log[10:13]] == [10, 11, 12]
            assert [record.offset async for record in log] == list(range(100))

    asyncio.run(run())


def test_an_offset_without_a_record_is_named_with_the_reason(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, transactional_id=topic) as producer, producer.transaction():
        producer.send(topic, b"x")
    with Consumer(bootstrap) as consumer:
        log = consumer.log(topic)
        assert log[0].value == b"x"
        with pytest.raises(IndexError, match="no record at offset 1: it is the marker of a transaction"):
            log[-1]
