"""A call that waits for long does meanwhile what a loop of short polls does: it takes in topics and partitions that
appear, raises what `poll` promises to raise, commits automatically, and is a sign of life."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from harness.patience import Deadline, wait_until, within
from moldau.client.administration.admin import Admin
from moldau.client.consuming import preparing
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.groups.membership import GroupMembership
from moldau.client.consuming.rebalancing import Rebalancing
from moldau.client.producing.producer import Producer
from moldau.errors import NoSuchPartition
from moldau.names import TopicPartition

LONG_MS = 3_600_000
SETTINGS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "metadata_max_age_ms": 50,
    "fetch_max_wait_ms": LONG_MS,
    "request_timeout_ms": LONG_MS,
}
"""Metadata are looked at often, and no reply to a Fetch ends a wait."""


def processed(consumer: Consumer) -> bytes | None:
    values: list[bytes | None] = []
    consumer.process(lambda record: values.append(record.value), until=lambda: bool(values))
    return values[0]


SYNC: dict[str, Callable[[Consumer], bytes | None]] = {
    "for": lambda consumer: next(record.value for record in consumer),
    "next": lambda consumer: next(consumer).value,
    "poll": lambda consumer: consumer.poll(LONG_MS)[0].value,
    "poll_table": lambda consumer: consumer.poll_table(LONG_MS)["value"][0].as_py(),
    "tables": lambda consumer: next(consumer.tables(LONG_MS))["value"][0].as_py(),
    "process": processed,
}


async def polled(consumer: AsyncConsumer) -> bytes | None:
    return (await consumer.poll(LONG_MS))[0].value


async def polled_table(consumer: AsyncConsumer) -> bytes | None:
    value: bytes | None = (await consumer.poll_table(LONG_MS))["value"][0].as_py()
    return value


async def iterated(consumer: AsyncConsumer) -> bytes | None:
    async for record in consumer:
        return record.value
    return None


async def iterated_tables(consumer: AsyncConsumer) -> bytes | None:
    async for table in consumer.tables(LONG_MS):
        value: bytes | None = table["value"][0].as_py()
        return value
    return None


async def next_one(consumer: AsyncConsumer) -> bytes | None:
    return (await anext(consumer)).value


async def processed_on_loop(consumer: AsyncConsumer) -> bytes | None:
    values: list[bytes | None] = []
    await consumer.process(lambda record: values.append(record.value), until=lambda: bool(values))
    return values[0]


ASYNC: dict[str, Callable[[AsyncConsumer], Awaitable[bytes | None]]] = {
    "async for": iterated,
    "anext": next_one,
    "await poll": polled,
    "await poll_table": polled_table,
    "async tables": iterated_tables,
    "await process": processed_on_loop,
}
each_way = pytest.mark.parametrize("way", [*SYNC, *ASYNC])

Begin = Callable[[Any], object]
"""What is done with a consumer before it waits; it may return something to await."""


@contextmanager
def closed_if_it_hangs(consumer: Consumer) -> Iterator[None]:
    done = threading.Event()
    watcher = threading.Thread(target=lambda: wait_until(done.is_set) or consumer.close())
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def first(way: str, bootstrap: str, begin: Begin, **settings: Any) -> bytes | None:
    """The value of the first record that a consumer gets in this way; a way that hangs raises."""
    if way in SYNC:
        with Consumer(bootstrap, **SETTINGS | settings) as consumer, closed_if_it_hangs(consumer):
            begin(consumer)
            return SYNC[way](consumer)

    async def read() -> bytes | None:
        async with AsyncConsumer(bootstrap, **SETTINGS | settings) as consumer:
            begun = begin(consumer)
            if isinstance(begun, Awaitable):
                await begun
            return await within(ASYNC[way](consumer))

    return asyncio.run(read())


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Grows with each look of a consumer at the metadata of its subscription."""
    seen: list[bool] = []
    watch = Rebalancing._watch

    async def counted(rebalancing: Rebalancing, subscription: Any) -> bool:
        missing = await watch(rebalancing, subscription)
        seen.append(missing)
        return missing

    monkeypatch.setattr(Rebalancing, "_watch", counted)
    return seen


@each_way
@pytest.mark.parametrize("by_pattern", [False, True], ids=["name", "pattern"])
def test_a_waiting_consumer_takes_in_a_topic_that_is_made_later(
    way: str, by_pattern: bool, bootstrap: str, topic: str, group: str, looks: list[bool]
) -> None:
    wanted = re.compile(re.escape(topic)) if by_pattern else topic
    # A topic that appears while the member joins makes it join again; what it fetched between is fetched anew, when its
    # next Fetch has been answered. Before the topic exists there is no Fetch whose reply could end the wait.
    settings = {"group_id": group, "fetch_max_wait_ms": 100}
    with ThreadPoolExecutor(1) as pool, Producer(bootstrap) as producer:
        reading = pool.submit(first, way, bootstrap, lambda consumer: consumer.subscribe(wanted), **settings)
        assert wait_until(lambda: looks)
        producer.send(topic, b"late").result()
        assert reading.result() == b"late"


@each_way
def test_a_consumer_that_finds_it_time_to_look_at_its_topics_whenever_it_can_still_reads_them(
    way: str, bootstrap: str, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moldau.client.consuming.rebalancing.PAUSE_S_MIN", 0.0)
    with Producer(bootstrap) as producer:
        producer.send(topic, b"read").result()
    settings = {"group_id": group, "metadata_max_age_ms": 0}
    assert first(way, bootstrap, lambda consumer: consumer.subscribe(topic), **settings) == b"read"


@each_way
def test_a_waiting_consumer_raises_that_no_subscribed_topic_exists(
    way: str, bootstrap: str, topic: str, group: str
) -> None:
    with pytest.raises(NoSuchPartition, match=f"no subscribed topic has existed for .* s: {topic}"):
        first(way, bootstrap, lambda c: c.subscribe(topic), group_id=group, default_api_timeout_ms=300)


@pytest.mark.parametrize(
    ("way", "protocol"),
    [(way, "classic") for way in (*SYNC, *ASYNC)] + [("next", "consumer"), ("await poll", "consumer")],
)
def test_a_waiting_consumer_takes_in_a_partition_that_is_made_later(
    way: str, protocol: str, bootstrap: str, topic: str, group: str
) -> None:
    old, waits = TopicPartition(topic, 0), threading.Event()

    def begin(consumer: Consumer) -> None:
        consumer.subscribe(topic)
        assert wait_until(lambda: consumer.poll(20) or consumer.assignment())
        consumer.pause([old])
        assert wait_until(lambda: consumer.poll(20) or not consumer._core._poller._fetches)
        waits.set()

    async def begin_on_loop(consumer: AsyncConsumer) -> None:
        consumer.subscribe(topic)
        deadline = Deadline()
        while not consumer.assignment():
            assert not deadline.passed
            await consumer.poll(20)
        consumer.pause([old])
        while consumer._poller._fetches:
            assert not deadline.passed
            await consumer.poll(20)
        waits.set()

    with ThreadPoolExecutor(1) as pool, Producer(bootstrap) as producer, Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
        chosen: Begin = begin if way in SYNC else begin_on_loop
        settings = {"group_id": group, "group_protocol": protocol, "fetch_max_wait_ms": 100}
        reading = pool.submit(first, way, bootstrap, chosen, **settings)
        assert wait_until(lambda: waits.is_set() or reading.done())
        admin.create_partitions(topic, 2)
        producer.send(topic, b"late", partition=1).result()
        assert reading.result() == b"late"


def test_a_waiting_consumer_commits_automatically_what_was_processed(bootstrap: str, topic: str, group: str) -> None:
    settings = SETTINGS | {"metadata_max_age_ms": LONG_MS}
    with (
        ThreadPoolExecutor(1) as pool,
        Producer(bootstrap) as producer,
        Consumer(bootstrap, group_id=group, auto_commit_interval_ms=1_000, **settings) as consumer,
        Consumer(bootstrap, group_id=group) as other,
    ):
        tp = TopicPartition(topic, 0)
        producer.send(topic, b"0", partition=0).result()
        consumer.subscribe(topic)
        assert next(consumer).value == b"0"
        waiting = pool.submit(next, consumer)
        assert wait_until(lambda: other.committed([tp]))
        assert not waiting.done()
        producer.send(topic, b"1", partition=0).result()
        assert waiting.result().value == b"1"


def test_a_waiting_member_without_records_shows_that_it_is_alive(
    bootstrap: str, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs: list[float] = []
    noted = GroupMembership.polled
    monkeypatch.setattr(GroupMembership, "polled", lambda self, now_s: (signs.append(now_s), noted(self, now_s)))
    monkeypatch.setattr(preparing, "LOOK_S", 0.02)
    settings = SETTINGS | {"metadata_max_age_ms": LONG_MS}
    with (
        ThreadPoolExecutor(1) as pool,
        Producer(bootstrap) as producer,
        Admin(bootstrap) as admin,
        Consumer(bootstrap, group_id=group, **settings) as consumer,
    ):
        admin.create_topic(topic, partitions=1)
        consumer.subscribe(topic)
        assert wait_until(lambda: consumer.poll(20) or consumer.assignment())
        before = len(signs)
        waiting = pool.submit(consumer.poll, LONG_MS)
        assert wait_until(lambda: len(signs) > before + 20)
        assert not waiting.done()
        producer.send(topic, b"x").result()
        assert len(waiting.result()) == 1


def test_a_waiting_consumer_turns_a_few_times_for_each_look_at_the_metadata(
    bootstrap: str, topic: str, group: str, looks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[float] = []
    ready = AsyncConsumer.ready

    async def counted(consumer: AsyncConsumer, deadline_s: float) -> bool:
        turns.append(deadline_s)
        return await ready(consumer, deadline_s)

    monkeypatch.setattr(AsyncConsumer, "ready", counted)
    with (
        ThreadPoolExecutor(1) as pool,
        Producer(bootstrap) as producer,
        Consumer(bootstrap, group_id=group, **SETTINGS) as consumer,
        closed_if_it_hangs(consumer),
    ):
        consumer.subscribe(topic)
        waiting = pool.submit(next, consumer)
        assert wait_until(lambda: len(looks) > 20)
        assert len(turns) < 10 * len(looks)
        producer.send(topic, b"x").result()
        assert waiting.result().value == b"x"
