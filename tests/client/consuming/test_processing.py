"""`process` retries records that fail, then sends them to a dead-letter topic, then goes on."""

import asyncio
import threading

import pytest

from harness.patience import wait_until
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.processing import Handling
from moldau.client.producing.producer import Producer
from moldau.client.producing.serializers import from_json, from_text
from moldau.errors import ConfigError
from moldau.names import TopicPartition


def fill(bootstrap: str, topic: str, values: list[bytes]) -> TopicPartition:
    with Producer(bootstrap) as producer:
        for value in values:
            producer.send(topic, value, b"key", headers=[("kept", b"yes")], timestamp_ms=1_700_000_000_000)
    return TopicPartition(topic, 0)


def letters(bootstrap: str, topic: str, count: int) -> list[Record]:
    with Consumer(bootstrap) as consumer:
        log = consumer.log(topic)
        assert len(log) == count
        return log[:]


def test_a_record_that_fails_for_good_becomes_a_dead_letter_that_says_why(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, [b"%d" % number for number in range(20)])
    attempts: list[tuple[int, threading.Thread]] = []

    def handle(record: Record) -> None:
        attempts.append((record.offset, threading.current_thread()))
        if record.offset in (3, 19):
            raise ValueError(f"no {record.offset}")

    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic)
        until = lambda: len(attempts) >= 24  # noqa: E731
        assert consumer.process(handle, retries=2, backoff_ms=1, dead_letter=f"{topic}.dlq", until=until) == 20
        assert consumer.position(tp) == 20
    assert [offset for offset, _ in attempts] == [0, 1, 2, 3, 3, 3, *range(4, 20), 19, 19]
    assert {thread for _, thread in attempts} == {threading.current_thread()}
    first, last = letters(bootstrap, f"{topic}.dlq", 2)
    assert (first.key, first.value, first.timestamp_ms) == (b"key", b"3", 1_700_000_000_000)
    assert first.header("kept") == b"yes"
    said = {name.removeprefix("__moldau.errors."): value for name, value in last.headers}
    assert b"in handle" in (said.pop("stacktrace") or b"")
    assert said == {
        "kept": b"yes",
        "exception": b"builtins.ValueError",
        "message": b"no 19",
        "topic": topic.encode(),
        "partition": b"0",
        "offset": b"19",
    }
    with Consumer(bootstrap, group_id=group) as after:
        assert after.committed([tp])[tp].offset == 20


def test_a_record_that_succeeds_when_it_is_tried_again_is_no_dead_letter(bootstrap: str, topic: str) -> None:
    tp = fill(bootstrap, topic, [b"x"] * 3)
    attempts: list[int] = []

    def handle(record: Record) -> None:
        attempts.append(record.offset)
        if attempts.count(1) == 1:
            raise ValueError

    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        assert consumer.process(handle, backoff_ms=1, until=lambda: 2 in attempts) == 3
    assert attempts == [0, 1, 1, 2]


@pytest.mark.parametrize("commits_automatically", [True, False])
def test_without_a_dead_letter_the_exception_comes_out_and_the_record_is_read_again(
    commits_automatically: bool, bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, [b"x"] * 10)

    def handle(record: Record) -> None:
        if record.offset == 6:
            raise ValueError("six")

    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": commits_automatically}
    with Consumer(bootstrap, **settings) as consumer:
        consumer.subscribe(topic)
        with pytest.raises(ValueError, match="six"):
            consumer.process(handle, retries=0)
        assert consumer.position(tp) == 6
        assert next(iter(consumer)).offset == 6
    with Consumer(bootstrap, **settings) as after:
        assert after.committed([tp])[tp].offset == 6


def test_a_record_that_cannot_be_deserialized_is_a_dead_letter_with_its_bytes(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, [b"1", b"{", b"[2]"])
    handled: list[object] = []
    with Consumer(
        bootstrap, auto_offset_reset="earliest", value_deserializer=from_json, key_deserializer=from_text
    ) as consumer:
        consumer.assign([tp])
        count = consumer.process(
            lambda record: handled.append((record.key, record.value)),
            retries=0,
            dead_letter=f"{topic}.dlq",
            until=lambda: len(handled) == 2,
        )
    assert (count, handled) == (3, [("key", 1), ("key", [2])])
    (one,) = letters(bootstrap, f"{topic}.dlq", 1)
    assert (one.key, one.value) == (b"key", b"{")
    assert (one.header("__moldau.errors.exception") or b"").endswith(b"DeserializationFailed")


def test_processing_ends_when_nothing_came_for_a_while(bootstrap: str, topic: str) -> None:
    tp = fill(bootstrap, topic, [b"x"] * 3)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        counts: list[int] = []
        assert wait_until(lambda: counts.append(consumer.process(lambda record: None, idle_ms=200)) or sum(counts) == 3)


def test_handlers_on_asyncio_may_be_coroutine_functions(bootstrap: str, topic: str) -> None:
    tp = fill(bootstrap, topic, [b"x"] * 5)
    handled: list[int] = []

    async def handle(record: Record) -> None:
        await asyncio.sleep(0)
        if record.offset == 2:
            raise ValueError
        handled.append(record.offset)

    async def run() -> None:
        async with AsyncConsumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([tp])
            dead = f"{topic}.dlq"
            assert await consumer.process(handle, retries=0, dead_letter=dead, until=lambda: 4 in handled) == 5

    asyncio.run(run())
    assert handled == [0, 1, 3, 4]
    letters(bootstrap, f"{topic}.dlq", 1)


def test_waits_double_up_to_a_bound_and_wrong_ones_are_refused(bootstrap: str) -> None:
    handling = Handling(9, 100, 1_000, None)
    assert [handling.wait_ms(attempt) for attempt in (1, 2, 3, 4, 5, 99)] == [100, 200, 400, 800, 1_000, 1_000]
    with Consumer(bootstrap) as consumer:
        for settings in ({"retries": -1}, {"backoff_ms": "5"}):
            with pytest.raises(ConfigError, match=next(iter(settings))):
                consumer.process(lambda record: None, **settings)  # type: ignore[arg-type]
