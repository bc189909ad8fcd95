"""What a user is told where a client would otherwise be silent, or say something that helps nobody."""

import asyncio
import re
from collections.abc import Callable

import pytest

import moldau
from moldau import aio
from moldau.errors import ClientClosed, ConfigError, NotAssigned
from moldau.names import TopicPartition

NOTHING = "this consumer reads nothing: call subscribe, with a group_id, or assign"


@pytest.mark.parametrize("topics", ["^t.*", ["^t.*"], "orders-(a|b)", "t+"])
def test_a_pattern_that_is_text_is_answered_with_re_compile(bootstrap: str, topics: str | list[str]) -> None:
    shown = topics if isinstance(topics, str) else topics[0]
    with moldau.Consumer(bootstrap, group_id="x") as consumer:
        with pytest.raises(ConfigError, match=re.escape(f"for a pattern, give re.compile({shown!r})")):
            consumer.subscribe(topics)


@pytest.mark.parametrize(
    "read",
    [
        lambda consumer: consumer.poll(0),
        lambda consumer: consumer.poll_table(0),
        next,
        lambda consumer: consumer.process(print, idle_ms=1),
    ],
)
def test_a_consumer_that_reads_nothing_says_what_to_call(
    bootstrap: str, read: Callable[[moldau.Consumer], object]
) -> None:
    with moldau.Consumer(bootstrap, group_id="x") as consumer:
        with pytest.raises(NotAssigned, match=NOTHING):
            read(consumer)


@pytest.mark.parametrize(
    "read",
    [
        lambda consumer: consumer.poll(0),
        lambda consumer: consumer.poll_table(0),
        anext,
        lambda consumer: consumer.process(print, idle_ms=1),
    ],
)
def test_a_consumer_for_asyncio_that_reads_nothing_says_what_to_call(
    bootstrap: str, read: Callable[[aio.Consumer], object]
) -> None:
    async def ask() -> None:
        async with aio.Consumer(bootstrap) as consumer:
            with pytest.raises(NotAssigned, match=NOTHING):
                await read(consumer)  # type: ignore[misc]

    asyncio.run(ask())


def test_a_pair_is_a_partition_and_next_continues_where_a_loop_was_left(bootstrap: str, topic: str) -> None:
    with moldau.Producer(bootstrap) as producer:
        producer.send_many(topic, [b"0", b"1", b"2", b"3"])
    with moldau.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert next(consumer).value == b"0"
        for record in consumer:
            assert record.value == b"1"
            break
        assert [next(consumer).value, next(consumer).value] == [b"2", b"3"]
        assert consumer.assignment() == [TopicPartition(topic, 0)]

    async def read() -> list[object]:
        async with aio.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            values: list[object] = [(await anext(consumer)).value]
            async for record in consumer:
                values.append(record.value)
                break
            return [*values, (await anext(consumer)).value]

    assert asyncio.run(read()) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("call", ["assign", "pause", "resume", "committed", "beginning_offsets", "end_offsets", "lag"])
def test_one_partition_where_several_are_taken_is_answered(bootstrap: str, topic: str, call: str) -> None:
    with moldau.Consumer(bootstrap, group_id="x") as consumer:
        for given in (TopicPartition(topic, 0), (topic, 0), topic, None if call == "assign" else 5):
            with pytest.raises(ConfigError, match=rf"{call} takes a list of partitions, such as \[TopicPart"):
                getattr(consumer, call)(given)
        with pytest.raises(ConfigError, match=f"'{topic}' is not a TopicPartition, which has a topic's name"):
            getattr(consumer, call)([topic])


def test_partitions_that_are_none_are_answered_by_the_admin_client_too(bootstrap: str, topic: str) -> None:
    with moldau.Admin(bootstrap) as admin:
        with pytest.raises(ConfigError, match="is not a TopicPartition"):
            admin.delete_records({topic: 1})  # type: ignore[dict-item]


def test_a_subscription_without_topics_is_refused(bootstrap: str) -> None:
    with moldau.Consumer(bootstrap, group_id="x") as consumer:
        with pytest.raises(ConfigError, match="subscribe was given no topic; unsubscribe gives up all"):
            consumer.subscribe([])


def test_a_client_shows_its_brokers_and_what_it_does(bootstrap: str, topic: str) -> None:
    with moldau.Consumer(bootstrap, client_id="bills", group_id="b") as consumer:
        about = f"<moldau.Consumer 'bills' at {bootstrap}, group 'b'"
        assert repr(consumer) == f"{about}, reading nothing>"
        consumer.subscribe([f"{topic}-{number}" for number in range(7)])
        names = ", ".join(f"{topic}-{number}" for number in range(5))
        assert repr(consumer) == f"{about}, subscribed to {names} and 2 more, reading nothing>"
        consumer.unsubscribe()
        consumer.subscribe(re.compile("orders-.*"))
        assert repr(consumer) == f"{about}, subscribed to the pattern 'orders-.*', reading nothing>"
        consumer.unsubscribe()
        consumer.assign([(topic, 0)])
        assert repr(consumer) == f"{about}, reading {topic}-0>"
    assert repr(consumer) == f"{about}, closed>"
    assert repr(aio.Consumer(bootstrap)) == f"<moldau.aio.Consumer 'moldau' at {bootstrap}, not started>"
    assert repr(aio.Producer(bootstrap)) == f"<moldau.aio.Producer 'moldau' at {bootstrap}, not started>"
    assert repr(aio.Admin(bootstrap)) == f"<moldau.aio.Admin 'moldau-admin' at {bootstrap}, open>"
    with moldau.Producer(bootstrap, transactional_id="t-1") as producer:
        assert repr(producer) == f"<moldau.Producer 'moldau' at {bootstrap}, transactional id 't-1', 0 records waiting>"
    assert repr(producer).endswith(", transactional id 't-1', closed>")


def test_an_asyncio_client_that_was_not_started_says_how(bootstrap: str) -> None:
    async def use() -> None:
        for refused in (aio.Producer(bootstrap).send("t", b"v"), aio.Consumer(bootstrap).poll(0)):
            with pytest.raises(ClientClosed, match="was not started: use it in `async with`, or await its start"):
                await refused

    asyncio.run(use())
    for look in ("assignment", "subscription", "paused", "group_metadata", "metrics"):
        with pytest.raises(ClientClosed, match="was not started: use it in `async with`, or await its start"):
            getattr(aio.Consumer(bootstrap), look)()


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [
        (["name-missing"], "moldau: the subscribed topic name-missing does not exist"),
        (re.compile("nothing-.*"), "moldau: no topic matches the pattern 'nothing-.*' yet"),
    ],
)
def test_a_subscription_of_what_does_not_exist_has_one_warning(
    bootstrap: str,
    group: str,
    caplog: pytest.LogCaptureFixture,
    topics: "list[str] | re.Pattern[str]",
    sentence: str,
) -> None:
    with moldau.Consumer(bootstrap, group_id=group, metadata_max_age_ms=20) as consumer:
        consumer.subscribe(topics)
        assert consumer.poll(200) == []
    assert [record.getMessage() for record in caplog.records if record.name.startswith("moldau.")] == [sentence]
