"""Synchronous clients that nobody holds any more and nobody has closed: they close themselves, and Python warns."""

import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.background import LoopThread
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from tests.client.producing.beside import values

KINDS: dict[str, Callable[[str], Any]] = {"Producer": Producer, "Consumer": Consumer, "Admin": Admin}


def dropped(held: list[Any], sentence: str) -> None:
    """Let go of what is held, and see the warning of its client."""

    def let_go() -> None:
        held.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match=sentence):
        let_go()


@pytest.mark.parametrize("kind", KINDS)
def test_it_warns_and_its_thread_ends(bootstrap: str, kind: str) -> None:
    held = [KINDS[kind](bootstrap)]
    thread: LoopThread = held[0]._thread
    dropped(held, rf"<moldau\.{kind} .* was not closed: use it in a with-statement")
    wait_until(lambda: not thread.running)
    assert thread._loop.is_closed()


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_was_closed_says_nothing(bootstrap: str, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = [KINDS[kind](bootstrap)]
        held[0].close()
        held.clear()
        gc.collect()


def test_a_producer_delivers_its_records_first(bootstrap: str, topic: str) -> None:
    held = [Producer(bootstrap, linger_ms=60_000)]
    thread = held[0]._thread
    delivery = held[0].send(topic, b"x")
    dropped(held, "1 record waiting> was not closed")
    assert delivery.result().offset == 0
    wait_until(lambda: not thread.running)
    assert values(bootstrap, topic) == [b"x"]


def test_a_consumer_commits_and_leaves_its_group_without_its_listeners(bootstrap: str, topic: str, group: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    told: list[object] = []
    held = [Consumer(bootstrap, group_id=group, auto_offset_reset="earliest")]
    held[0].subscribe(topic, on_revoked=told.append)
    wait_until(lambda: bool(held[0].poll(100)))
    held[0].poll(0)
    dropped(held, "was not closed")
    with Admin(bootstrap) as admin:
        wait_until(lambda: not admin.describe_group(group).members)
        assert admin.group_offsets(group)[TopicPartition(topic, 0)].offset == 1
    assert told == []


def test_its_parts_hold_it(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    parts: list[list[Any]] = [
        [Admin(bootstrap).configs],
        [Admin(bootstrap).transactions],
        [Consumer(bootstrap).log(topic)],
    ]
    gc.collect()
    assert parts[0][0].describe("topic", topic)
    assert parts[1][0].list() == []
    assert len(parts[2][0]) == 1
    for held in parts:
        dropped(held, "was not closed")


def test_a_consumer_is_not_held_by_listeners_and_callbacks_that_refer_to_it(
    bootstrap: str, topic: str, group: str
) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    told: list[object] = []

    def listening() -> Consumer:
        consumer = Consumer(bootstrap, group_id=group)
        consumer.subscribe(
            topic,
            on_assigned=lambda _: told.append(consumer.assignment()),
            on_revoked=lambda _: consumer.commit(),
            on_lost=lambda _: consumer.pause([]),
        )
        return consumer

    def commit_later(consumer: Consumer) -> None:
        consumer.commit_async(callback=lambda *_: consumer.commit())

    held = [listening()]
    gc.collect()
    assert wait_until(lambda: held[0].poll(100) is not None and bool(told))
    assert told == [[TopicPartition(topic, 0)]]
    commit_later(held[0])
    thread = held[0]._thread
    dropped(held, "was not closed")
    assert wait_until(lambda: not thread.running)


def test_a_consumer_is_held_by_its_streams_alone(bootstrap: str, topic: str, group: str) -> None:
    with Producer(bootstrap) as producer:
        for value in (b"x", b"y"):
            producer.send(topic, value)

    def streaming() -> list[Any]:
        consumer = Consumer(bootstrap, group_id=group, auto_offset_reset="earliest")
        streams = consumer.create_message_streams({topic: 1})
        assert consumer._streams is not None
        threads.extend((consumer._thread._thread, consumer._streams._feeder))
        return [iter(streams[topic][0])]

    threads: list[threading.Thread] = []
    held = streaming()
    gc.collect()
    assert [next(held[0]).value, next(held[0]).value] == [b"x", b"y"]
    dropped(held, "was not closed")
    assert wait_until(lambda: not any(thread.is_alive() for thread in threads))
    with Consumer(bootstrap, group_id=group) as after:
        tp = TopicPartition(topic, 0)
        assert after.committed([tp])[tp].offset == 1, "what was not come back from is not processed"
