"""Automatic commits cover what the caller has come back from, and nothing else."""

import asyncio
from collections.abc import Callable

import pytest

from harness.patience import Deadline, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import AsyncConsumer, Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError
from moldau.names import OffsetAndMetadata, TopicPartition


def fill(bootstrap: str, topic: str, count: int) -> TopicPartition:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number)
    return TopicPartition(topic, 0)


def member(bootstrap: str, group: str, topic: str, **settings: object) -> Consumer:
    consumer = Consumer(bootstrap, group_id=group, **{"auto_offset_reset": "earliest", **settings})
    consumer.subscribe(topic)
    return consumer


def committed(bootstrap: str, group: str, tp: TopicPartition) -> int | None:
    with Consumer(bootstrap, group_id=group) as consumer:
        found = consumer.committed([tp])
    return found[tp].offset if tp in found else None


def some(consumer: Consumer, count: int) -> list[int]:
    """Poll until records are there, at most that many."""
    deadline = Deadline()
    while not (records := consumer.poll(500, count)):
        assert not deadline.passed
    return [record.offset for record in records]


def test_a_loop_left_by_break_commits_the_records_before_the_one_it_was_left_with(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, 400)
    with member(bootstrap, group, topic) as consumer:
        for record in consumer:
            if record.offset == 10:
                break
    assert committed(bootstrap, group, tp) == 10


def test_a_record_whose_processing_raises_is_read_again(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 50)

    def process_all() -> None:
        with member(bootstrap, group, topic) as consumer:
            for record in consumer:
                1 // (7 - record.offset)

    with pytest.raises(ZeroDivisionError):
        process_all()
    assert committed(bootstrap, group, tp) == 7
    with member(bootstrap, group, topic) as consumer:
        assert next(iter(consumer)).offset == 7


def test_the_records_of_the_last_poll_are_not_processed_yet(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 30)
    with member(bootstrap, group, topic) as consumer:
        assert some(consumer, 10) == list(range(10))
        assert some(consumer, 5) == list(range(10, 15))
    assert committed(bootstrap, group, tp) == 10


def test_an_explicit_commit_covers_all_that_was_handed_out(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 30)
    with member(bootstrap, group, topic, enable_auto_commit=False) as consumer:
        some(consumer, 10)
        consumer.commit()
        assert consumer.committed()[tp].offset == 10
        for record in consumer:
            if record.offset == 17:
                consumer.commit()
                break
        assert consumer.committed([tp])[tp].offset == 18


def test_one_record_can_be_committed(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 30)
    with member(bootstrap, group, topic, enable_auto_commit=False) as consumer:
        for record in consumer:
            if record.offset == 4:
                record.commit()
            if record.offset == 9:
                break
    assert committed(bootstrap, group, tp) == 5


def test_an_automatic_commit_does_not_go_back_behind_one_of_the_application(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, 30)
    with member(bootstrap, group, topic) as consumer:
        for record in consumer:
            if record.offset == 4:
                record.commit()
                break
    assert committed(bootstrap, group, tp) == 5
    with member(bootstrap, group, topic) as consumer:
        some(consumer, 10)
        consumer.commit()
        consumer.seek(tp, 2)
        some(consumer, 20)
    assert committed(bootstrap, group, tp) == 2


def test_a_loop_that_was_left_is_continued_by_the_next_one_and_by_poll(bootstrap: str, topic: str) -> None:
    tp = fill(bootstrap, topic, 40)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        seen = []
        for limit in (5, 12):
            for record in consumer:
                seen.append(record.offset)
                if record.offset == limit:
                    break
            assert consumer.position(tp) == limit + 1
        seen += some(consumer, 10)
        assert seen == list(range(23))


def test_a_seek_in_the_body_of_a_loop_takes_effect_with_the_next_record(bootstrap: str, topic: str) -> None:
    tp = fill(bootstrap, topic, 40)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        seen = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 3:
                consumer.seek(tp, 30)
            if record.offset == 31:
                break
    assert seen == [0, 1, 2, 3, 30, 31]


def test_a_pause_in_the_body_of_a_loop_holds_the_other_records_of_the_partition(
    bootstrap: str, fresh: Callable[[], str]
) -> None:
    first, second = fill(bootstrap, fresh(), 20), fill(bootstrap, fresh(), 20)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([first, second])
        assert wait_until(lambda: min(consumer.end_offset(first), consumer.end_offset(second)) > 0 or consumer.poll(0))
        consumer.seek_to_beginning()
        seen = []
        for record in consumer:
            if not seen:
                consumer.pause([record.topic_partition])
                held = record.topic_partition
            seen.append((record.topic_partition, record.offset))
            if len(seen) == 21:
                break
        assert [offset for tp, offset in seen if tp == held] == [0]
        assert consumer.paused() == [held]
        consumer.resume([held])
        for record in consumer:
            assert (record.topic_partition, record.offset) == (held, 1)
            break


def test_a_rebalance_commits_only_what_was_processed(bootstrap: str, topic: str, group: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    tp = fill(bootstrap, topic, 100)
    seen: list[int] = []
    with member(bootstrap, group, topic, heartbeat_interval_ms=50) as first:
        for record in first:
            if record.offset == 20:
                break
        first.unsubscribe()
        assert committed(bootstrap, group, tp) == 20
        with member(bootstrap, group, topic) as second:
            seen += some(second, 5)
    assert seen == [20, 21, 22, 23, 24]


def test_with_a_group_id_what_is_assigned_by_hand_is_committed_too(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 30)
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        for record in consumer:
            if record.offset == 12:
                break
    assert committed(bootstrap, group, tp) == 12
    with Consumer(bootstrap, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([tp])
        assert some(consumer, 5) == [12, 13, 14, 15, 16]
        consumer.poll(0)
    assert committed(bootstrap, group, tp) == 12


def test_a_commit_on_asyncio_may_report_to_a_coroutine_function(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 3)
    reported: list[object] = []

    async def done(offsets: dict[TopicPartition, OffsetAndMetadata], failed: object) -> None:
        reported.append((offsets[tp].offset, failed))

    async def run() -> None:
        async with AsyncConsumer(bootstrap, group_id=group) as consumer:
            consumer.commit_async({tp: 2}, done)

    asyncio.run(run())
    assert reported == [(2, None)]
    with Consumer(bootstrap, group_id=group) as consumer, pytest.raises(ConfigError, match="coroutine"):
        consumer.commit_async({tp: 2}, done)


def test_iteration_on_asyncio_keeps_the_same_account(bootstrap: str, topic: str, group: str) -> None:
    tp = fill(bootstrap, topic, 400)

    async def run() -> None:
        async with AsyncConsumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                if record.offset == 5:
                    await record.commit()
                    assert (await consumer.committed([tp]))[tp].offset == 6
                if record.offset == 10:
                    break

    asyncio.run(run())
    assert committed(bootstrap, group, tp) == 10


def test_a_commit_in_the_background_reports_to_its_callback_in_the_callers_thread(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = fill(bootstrap, topic, 10)
    reported: list[tuple[int, object, object]] = []
    with member(bootstrap, group, topic, enable_auto_commit=False) as consumer:
        some(consumer, 10)
        consumer.commit_async(
            callback=lambda offsets, failed: reported.append((offsets[tp].offset, failed, consumer.position(tp)))
        )
        assert wait_until(lambda: consumer.poll(10) or reported)
        consumer.commit_async({tp: 3}, lambda offsets, failed: reported.append((offsets[tp].offset, failed, None)))
    assert reported == [(10, None, 10), (3, None, None)]
    assert committed(bootstrap, group, tp) == 3
