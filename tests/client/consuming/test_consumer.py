"""Consumers against a broker: alone, in groups, over restarts."""

import asyncio
from collections.abc import Callable

import pytest

from harness.brokers import Broker
from harness.patience import Deadline, stretched
from moldau import testing
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import AsyncConsumer, Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.failures import ClientClosed
from moldau.client.offsets import EARLIEST
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import OffsetAndMetadata, TopicPartition

SECONDS_MAX = 30


def fill(bootstrap: str, topic: str, count: int, start: int = 0, partition: int | None = None) -> None:
    with Producer(bootstrap) as producer:
        for number in range(start, start + count):
            producer.send(topic, b"%d" % number, partition=partition)


def read(consumer: Consumer, count: int) -> list[Record]:
    """Poll until that many records are there."""
    records: list[Record] = []
    deadline = Deadline(SECONDS_MAX)
    while len(records) < count:
        assert not deadline.passed, f"only {len(records)} of {count} records came"
        records += consumer.poll(500, count - len(records))
    return records


def numbers(records: list[Record]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


def in_group(bootstrap: str, group: str, topic: str, **settings: object) -> Consumer:
    given = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 6_000, **settings}
    consumer = Consumer(bootstrap, group_id=group, **given)
    consumer.subscribe([topic])
    return consumer


def test_assigned_partitions_are_read_in_order_from_where_one_seeks_to(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 1_000)
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        assert numbers(read(consumer, 1_000)) == list(range(1_000))
        assert consumer.poll(50) == []
        assert consumer.position(tp) == consumer.end_offset(tp) == 1_000
        consumer.seek(tp, 990)
        assert numbers(read(consumer, 3)) == [990, 991, 992]
        consumer.seek_to({tp: EARLIEST})
        assert numbers(read(consumer, 2)) == [0, 1]


def test_a_time_is_a_place_to_begin_and_the_end_if_nothing_is_so_late(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"retention.ms": "-1"})
    with Producer(bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, timestamp_ms=1_000 * number)
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap) as consumer:
        consumer.assign([tp])
        consumer.seek_to({tp: 6_500})
        assert numbers(read(consumer, 3)) == [7, 8, 9]
        consumer.seek_to({tp: 99_999})
        assert consumer.position(tp) == 10


def test_without_a_reset_to_the_earliest_only_what_comes_later_is_read(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 5)
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.poll(300) == []
        fill(bootstrap, topic, 3, start=5)
        assert numbers(read(consumer, 3)) == [5, 6, 7]


def test_a_record_is_handed_out_as_soon_as_it_is_there(bootstrap: str, topic: str) -> None:
    with (
        Consumer(bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=600_000) as consumer,
        Producer(bootstrap) as p,
    ):
        p.send(topic, b"0").result(stretched(10))
        consumer.assign([TopicPartition(topic, 0)])
        read(consumer, 1)
        assert consumer.poll(100) == []
        p.send(topic, b"1", timestamp_ms=0)
        read(consumer, 1)


def test_a_paused_partition_is_silent_until_it_is_resumed(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 5)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.pause([TopicPartition(topic, 0)])
        assert consumer.poll(200) == []
        consumer.pause([TopicPartition(topic, 0)], paused=False)
        assert numbers(read(consumer, 5)) == list(range(5))


def test_an_offset_that_is_gone_is_reset_as_the_settings_say(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 10)
    tp = TopicPartition(topic, 0)
    with Admin(bootstrap) as admin:
        admin.delete_records({tp: 4})
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 1)
        assert numbers(read(consumer, 6)) == list(range(4, 10))
    with Consumer(bootstrap, auto_offset_reset="none") as strict:
        strict.assign([tp])
        strict.seek(tp, 1)
        with pytest.raises(KafkaError) as refused:
            read(strict, 1)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_group_goes_on_where_it_left(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 10)
    with in_group(bootstrap, group, topic) as consumer:
        assert numbers(read(consumer, 4)) == [0, 1, 2, 3]
        consumer.commit()
    with in_group(bootstrap, group, topic) as consumer:
        assert numbers(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


def test_what_is_committed_by_hand_is_what_counts(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 10)
    tp = TopicPartition(topic, 0)
    with in_group(bootstrap, group, topic, enable_auto_commit=False) as consumer:
        read(consumer, 10)
        assert consumer.committed([tp]) == {}
        consumer.commit({tp: OffsetAndMetadata(7, "seven")})
        assert consumer.committed([tp]) == {tp: OffsetAndMetadata(7, "seven", leader_epoch=0)}
    with in_group(bootstrap, group, topic, enable_auto_commit=False) as consumer:
        assert numbers(read(consumer, 3)) == [7, 8, 9]
        consumer.commit()
        assert consumer.committed([tp])[tp].offset == 10


def test_members_share_partitions_and_take_over_from_one_that_leaves(bootstrap: str, topic: str, group: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=4)
    given: list[list[TopicPartition]] = []
    with in_group(bootstrap, group, topic) as first:
        first.subscribe([topic], on_assigned=given.append, on_revoked=given.append)
        with in_group(bootstrap, group, topic) as second:
            deadline = Deadline(SECONDS_MAX)
            while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                assert not deadline.passed
                first.poll(50)
                second.poll(50)
            everything = [TopicPartition(topic, number) for number in range(4)]
            assert sorted(first.assignment() + second.assignment()) == everything
        while len(first.assignment()) != 4:
            assert not deadline.passed
            first.poll(50)
    assert [len(partitions) for partitions in given][-4:] == [2, 2, 4, 4]


def test_a_topic_that_is_made_later_is_read_from_its_first_record(bootstrap: str, topic: str, group: str) -> None:
    with in_group(bootstrap, group, topic) as consumer:
        assert consumer.poll(300) == []
        fill(bootstrap, topic, 3)
        assert numbers(read(consumer, 3)) == [0, 1, 2]


def test_a_topic_that_grows_is_shared_out_anew(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 1)
    with in_group(bootstrap, group, topic, metadata_max_age_ms=200) as consumer:
        read(consumer, 1)
        with Admin(bootstrap) as admin:
            admin.create_partitions(topic, 3)
        fill(bootstrap, topic, 1, start=7, partition=2)
        assert numbers(read(consumer, 1)) == [7]
        assert len(consumer.assignment()) == 3


def test_a_consumer_goes_on_by_itself_when_the_broker_was_killed(broker: Broker, topic: str, group: str) -> None:
    fill(broker.address, topic, 5)
    with in_group(broker.address, group, topic) as consumer:
        read(consumer, 5)
        broker.kill()
        assert consumer.poll(200) == []
        broker.start()
        fill(broker.address, topic, 5, start=5)
        assert numbers(read(consumer, 5)) == [5, 6, 7, 8, 9]


def test_on_a_loop_of_ones_own_records_are_iterated(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 20)

    async def run() -> list[Record]:
        async with AsyncConsumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            found = []
            async for record in consumer:
                found.append(record)
                if len(found) == 20:
                    return found
        raise AssertionError

    assert numbers(asyncio.run(run())) == list(range(20))


def test_several_partitions_and_topics_are_read_at_once(bootstrap: str, fresh: Callable[[], str]) -> None:
    topics = [fresh(), fresh()]
    with Admin(bootstrap) as admin:
        for topic in topics:
            admin.create_topic(topic, partitions=2)
    for topic in topics:
        for partition in range(2):
            fill(bootstrap, topic, 300, partition=partition)
    everything = [TopicPartition(topic, partition) for topic in topics for partition in range(2)]
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(everything)
        records = read(consumer, 1_200)
    for tp in everything:
        assert numbers([r for r in records if (r.topic, r.partition) == tp]) == list(range(300))


def test_what_needs_a_group_says_so(bootstrap: str, topic: str) -> None:
    with Consumer(bootstrap) as consumer:
        with pytest.raises(ConfigError, match="group_id"):
            consumer.subscribe([topic])
        with pytest.raises(ConfigError, match="group_id"):
            consumer.commit()
    with pytest.raises(ClientClosed):
        consumer.poll(0)
    with pytest.raises(ConfigError, match="auto_offset_reset"):
        Consumer(bootstrap, auto_offset_reset="sometimes")


def test_a_wake_up_between_looking_and_waiting_ends_the_wait(bootstrap: str, topic: str) -> None:
    async def scenario() -> bool:
        async with AsyncConsumer(bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert await consumer.poll(timeout_ms=500) == []
            consumer.wake()
            waiting = asyncio.ensure_future(consumer.ready(asyncio.get_running_loop().time() + 60))
            for _ in range(3):
                await asyncio.sleep(0)
            ended = waiting.done()
            waiting.cancel()
            return ended

    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    assert asyncio.run(scenario())


def test_a_broker_whose_id_is_also_an_error_code_is_read(topic: str) -> None:
    with testing.Broker(node_id=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) as three:
        fill(three.address, topic, 5)
        with Consumer(three.address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert numbers(read(consumer, 5)) == [0, 1, 2, 3, 4]
            assert len(consumer.log(topic, 0)[1:4]) == 3
