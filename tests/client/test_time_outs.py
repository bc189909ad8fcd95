"""Time-outs: `timeout` in seconds and `timeout_ms` are known to each call by name; seconds are not taken for ms."""

import asyncio
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import moldau
from moldau import TopicPartition, aio
from moldau.client.time_outs import S_MAX, milliseconds, time_out_s
from moldau.errors import ConfigError
from tests.client.test_faces import FACES

BY_NAME = {"timeout", "timeout_ms"}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 1.0),
        ({"timeout_ms": 0}, 0.0),
        ({"timeout_ms": 1500}, 1.5),
        ({"timeout": 0.25}, 0.25),
        ({"timeout": 3}, 3),
        ({"timeout_s": 2.5}, 2.5),
        ({"timeout": math.inf}, S_MAX),
        ({"timeout": 10**400}, S_MAX),
        ({"timeout_ms": 10**400}, S_MAX),
        ({"timeout": numpy.int64(3)}, 3),
        ({"timeout": numpy.float32(0.5)}, 0.5),
        ({"timeout_ms": numpy.int64(1500)}, 1.5),
        ({"timeout_ms": 10**40}, S_MAX),
    ],
)
def test_a_time_out_is_given_in_seconds_or_milliseconds(given: dict[str, Any], seconds: float) -> None:
    assert time_out_s("poll", **given, usual_s=1.0) == seconds


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"timeout_ms": 1.0}, "poll takes milliseconds, a whole number: poll(1000), or poll(timeout=1) in seconds"),
        ({"timeout_ms": 0.1}, "poll takes milliseconds, a whole number: poll(100), or poll(timeout=0.1) in seconds"),
        ({"timeout_ms": 500.5}, "poll(500), or poll(timeout=0.5)"),
        ({"timeout_ms": math.nan}, "poll(nan): a time-out is a whole number of milliseconds"),
        ({"timeout_ms": math.inf}, "poll(inf): a time-out is a whole number of milliseconds"),
        ({"timeout_ms": True}, "poll(True): a time-out is a whole number of milliseconds"),
        ({"timeout_ms": "1"}, "poll('1'): a time-out is a whole number of milliseconds"),
        ({"timeout_ms": -1}, "timeout_ms=-1: a time-out is not negative"),
        ({"timeout": -0.5}, "timeout=-0.5: a time-out is not negative"),
        ({"timeout": math.nan}, "poll(timeout=nan): a time-out is a number of seconds"),
        ({"timeout": "1"}, "poll(timeout='1'): a time-out is a number of seconds"),
        ({"timeout": True}, "poll(timeout=True): a time-out is a number of seconds"),
        ({"timeout": 1, "timeout_ms": 1000}, "poll takes one time-out, not timeout_ms and timeout"),
    ],
)  # fmt: skip
def test_a_wrong_time_out_is_refused_with_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        time_out_s("poll", **given)


def test_a_number_of_milliseconds_with_another_name_is_refused_as_well() -> None:
    assert milliseconds("tables", 20, "idle_ms") == 0.02
    with pytest.raises(ConfigError, match=re.escape("tables takes milliseconds, a whole number: tables(idle_ms=2000)")):
        milliseconds("tables", 2.0, "idle_ms")


def timed(face: type) -> list[str]:
    """The public methods that take a time-out."""
    public = [name for name in dir(face) if not name.startswith("_") and inspect.isfunction(getattr(face, name))]
    return [name for name in public if any("timeout" in p for p in inspect.signature(getattr(face, name)).parameters)]


CLASSES = [face for both in FACES.values() for face in both] + [moldau.Delivery, moldau.TableDelivery]


def test_each_call_that_takes_a_time_out_takes_both_by_name() -> None:
    found = {f"{face.__name__}.{name}" for face in CLASSES for name in timed(face)}
    assert found == {
        *("Consumer.poll", "Consumer.poll_table", "AsyncConsumer.poll", "AsyncConsumer.poll_table"),
        *("Producer.flush", "Producer.close", "AsyncProducer.flush", "AsyncProducer.close"),
        *("Delivery.result", "Delivery.exception", "TableDelivery.result"),
    }
    for face in CLASSES:
        for name in timed(face):
            assert inspect.signature(getattr(face, name)).parameters.keys() >= BY_NAME, f"{face.__name__}.{name}"
    for function in (moldau.read_table, aio.read_table):
        assert inspect.signature(function).parameters.keys() >= BY_NAME


CALLS: dict[str, Callable[[Any], Any]] = {
    "poll": lambda one: one.poll(1.0),
    "poll_table": lambda one: one.poll_table(0.5),
    "tables": lambda one: next(one.tables(0.5)) if hasattr(one.tables(1), "__next__") else anext(one.tables(0.5)),
    "process": lambda one: one.process(print, idle_ms=0.5),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_float_in_place_of_milliseconds_is_refused_on_both_faces(bootstrap: str, topic: str, call: str) -> None:
    async def scenario() -> None:
        async with aio.Consumer(bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            with pytest.raises(ConfigError, match=f"{call} takes milliseconds"):
                await CALLS[call](consumer)

    with moldau.Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ConfigError, match=f"{call} takes milliseconds"):
            CALLS[call](consumer)
    asyncio.run(scenario())


def test_time_outs_by_name_on_the_synchronous_face(bootstrap: str, topic: str) -> None:
    with moldau.Producer(bootstrap) as producer:
        delivery = producer.send(topic, b"x")
        for by_name in ({"timeout": 30}, {"timeout": 30.0}, {"timeout_ms": 30_000}, {"timeout_s": 30}):
            assert delivery.result(**by_name).offset == 0
            assert delivery.exception(**by_name) is None
            producer.flush(**by_name)
        rows = producer.send_many(topic, [b"y"])
        assert [rows.result(**by_name)[0].offset for by_name in ({"timeout": 30}, {"timeout_ms": 30_000})] == [1, 1]
        producer.close(timeout=30)
    with moldau.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert len(consumer.poll(timeout=30, max_records=1)) == 1
        assert len(consumer.poll_table(timeout=30.0)) == 1
        assert consumer.poll(timeout=0) == consumer.poll(timeout_ms=0) == consumer.poll(0) == []
    assert len(moldau.read_table(topic, bootstrap, timeout=30)) == len(moldau.read_table(topic, bootstrap)) == 2


def test_time_outs_by_name_on_the_asyncio_face(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        async with aio.Producer(bootstrap) as producer:
            await producer.send(topic, b"x")
            for by_name in ({"timeout": 30}, {"timeout": 30.0}, {"timeout_ms": 30_000}, {"timeout_s": 30}):
                await producer.flush(**by_name)
            await producer.close(timeout_ms=30_000)
        async with aio.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert len(await consumer.poll(timeout=30)) == 1
            assert len(await consumer.poll_table(timeout=0.0)) == 0
            assert await consumer.poll(timeout_ms=0) == []

    asyncio.run(scenario())
