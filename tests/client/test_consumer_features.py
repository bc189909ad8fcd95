"""Offsets by time and end, lag, deserializers, interceptors, memory: what a consumer offers beside reading."""

import datetime
import pickle
import time
from collections.abc import Callable

import pytest

from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.consumer_settings import reset_time
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.groups.membership import OffsetAndMetadata
from moldau.client.offsets import EARLIEST, LATEST, OffsetAndTimestamp
from moldau.client.producing.producer import Producer
from moldau.client.producing.serializers import from_json, from_text
from moldau.errors import ConfigError, DeserializationFailed, NoSuchPartition
from moldau.names import TopicPartition

HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


def fill(bootstrap: str, topic: str, values: list[bytes | None], partition: int = 0, **settings: object) -> None:
    with Producer(bootstrap, **settings) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)


ABOUT_ABSENT: dict[str, Callable[[Consumer, TopicPartition], object]] = {
    "end_offsets": lambda consumer, tp: consumer.end_offsets([tp]),
    "beginning_offsets": lambda consumer, tp: consumer.beginning_offsets([tp]),
    "offsets_for_times": lambda consumer, tp: consumer.offsets_for_times({tp: 0}),
}


@pytest.mark.parametrize("call", ABOUT_ABSENT)
def test_a_partition_that_metadata_do_not_have_is_named_long_before_the_time_out(
    bootstrap: str, topic: str, call: str
) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    with Consumer(bootstrap, default_api_timeout_ms=WEEK_MS) as consumer:
        with pytest.raises(NoSuchPartition, match=f"topic {topic} has no partition 7, only 0 to 1"):
            ABOUT_ABSENT[call](consumer, TopicPartition(topic, 7))
        with pytest.raises(NoSuchPartition, match="topic absent does not exist"):
            ABOUT_ABSENT[call](consumer, TopicPartition("absent", 0))


def some(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    deadline = Deadline()
    while len(records) < count:
        assert not deadline.passed
        records += consumer.poll(200, count - len(records))
    return records


def test_the_ends_of_logs_and_the_offsets_of_times_are_found(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1, configs={"retention.ms": "-1"})
    tp = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"x", timestamp_ms=1_000 * number)
    with Admin(bootstrap) as admin:
        admin.delete_records({tp: 2})
    with Consumer(bootstrap) as consumer:
        assert consumer.beginning_offsets([tp]) == {tp: 2}
        assert consumer.end_offsets([tp]) == {tp: 10}
        assert consumer.offsets_for_times({tp: 4_500}) == {tp: OffsetAndTimestamp(5, 5_000)}
        assert consumer.offsets_for_times({tp: 99_999}) == {tp: None}
        assert consumer.offsets_for_times({(topic, 0): 99_999}) == {tp: None}  # type: ignore[dict-item]
        for wrong in ({tp: "now"}, {tp: 1.5}, {tp: -1}, [tp]):
            with pytest.raises(ConfigError, match="ms since 1970"):
                consumer.offsets_for_times(wrong)  # type: ignore[arg-type]
        consumer.assign([tp])
        consumer.seek_to_end()
        assert consumer.position(tp) == 10
        consumer.seek_to_beginning(tp)
        assert [record.offset for record in some(consumer, 2)] == [2, 3]
        consumer.seek_to_end([tp])
        assert consumer.position(tp) == 10
        consumer.seek_to_beginning([])  # as a listener may do that was given no partition
        assert consumer.position(tp) == 10
        consumer.seek_to_beginning((topic, 0))  # type: ignore[arg-type]
        assert consumer.position(tp) == 2
        for bad in (topic, [topic], 3):
            with pytest.raises(ConfigError, match=r"seek_to_end takes a list|not a TopicPartition"):
                consumer.seek_to_end(bad)  # type: ignore[arg-type]


def test_a_time_behind_the_last_stable_offset_is_not_found_by_who_reads_what_is_committed(
    bootstrap: str, topic: str
) -> None:
    tp = TopicPartition(topic, 0)
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1, configs={"retention.ms": "-1"})
    later_ms = time.time_ns() // 1_000_000 + 1_800_000  # than the marker of the transaction
    with Producer(bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"x", timestamp_ms=1_000)
        producer.begin_transaction()
        producer.send(topic, b"x", timestamp_ms=later_ms).result()
        for level, found in (("read_committed", None), ("read_uncommitted", OffsetAndTimestamp(2, later_ms))):
            with Consumer(bootstrap, isolation_level=level) as consumer:
                assert consumer.offsets_for_times({tp: 1_000}) == {tp: OffsetAndTimestamp(0, 1_000)}
                assert consumer.offsets_for_times({tp: later_ms - 1}) == {tp: found}
        producer.abort_transaction()


def test_the_lag_is_what_is_left_to_read_in_each_partition_and_in_all(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    fill(bootstrap, topic, [b"x"] * 10, 0)
    fill(bootstrap, topic, [b"x"] * 5, 1)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([first, second])
        consumer.seek(first, 8)
        assert consumer.lag() == {first: 2, second: 5}
        assert consumer.lag().total == 7
        assert consumer.lag([second]) == {second: 5}


def test_a_duration_starts_at_the_records_of_that_time(bootstrap: str, topic: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap) as producer:
        for hours in (5, 3, 1):
            producer.send(topic, b"%d" % hours, timestamp_ms=now_ms - hours * HOUR_MS)
    with Consumer(bootstrap, auto_offset_reset="by_duration:PT2H") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in some(consumer, 1)] == [b"1"]


def test_durations_are_iso_8601() -> None:
    for duration in ("P1DT2H3M4.5S", "p1dt2h3m4.5s"):  # Java takes the letters in either case
        assert reset_time(f"by_duration:{duration}", 10**12) == 10**12 - (26 * 3600 + 184) * 1000 - 500
    assert (reset_time("earliest", 0), reset_time("latest", 0), reset_time("none", 0)) == (EARLIEST, LATEST, None)


def test_deserializers_make_keys_and_values(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b'{"a": 1}', b"k")
        producer.send(topic, None, b"k")
    with Consumer(
        bootstrap, auto_offset_reset="earliest", key_deserializer=from_text, value_deserializer=from_json
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [(record.key, record.value) for record in some(consumer, 2)] == [("k", {"a": 1}), ("k", None)]


def test_a_deserializer_that_fails_names_the_record_and_does_not_lose_it(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, [b"1", b"{", b"3"])
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap, auto_offset_reset="earliest", value_deserializer=from_json) as consumer:
        consumer.assign([tp])
        assert [record.value for record in some(consumer, 1)] == [1]
        for _ in range(2):
            with pytest.raises(DeserializationFailed, match=f"offset 1 of {tp}") as failed:
                some(consumer, 1)
            assert (failed.value.topic_partition, failed.value.offset, failed.value.raw_value) == (tp, 1, b"{")
            assert isinstance(failed.value.__cause__, ValueError)
            assert consumer.position(tp) == 1
        consumer.seek(tp, 2)
        assert [record.value for record in some(consumer, 1)] == [3]


def test_records_before_one_that_cannot_be_deserialized_are_returned_first(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, [b"%d" % number for number in range(8)] + [b"{"])
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap, auto_offset_reset="earliest", value_deserializer=from_json) as consumer:
        consumer.assign([tp])
        seen: list[int] = []
        with pytest.raises(DeserializationFailed):
            seen.extend(record.value for record in consumer)
        assert seen == list(range(8))


def test_interceptors_see_records_and_commits(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, [b"%d" % number for number in range(10)])
    committed: list[object] = []

    class Even:
        def on_consume(self, records: list[Record]) -> list[Record]:
            return [record for record in records if record.offset % 2 == 0]

        def on_commit(self, offsets: object) -> None:
            committed.append(offsets)

    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer(bootstrap, group_id=group, interceptors=[Even()], **settings) as consumer:
        consumer.subscribe(topic)
        assert [record.offset for record in some(consumer, 5)] == [0, 2, 4, 6, 8]
        consumer.commit()
    assert committed == [{TopicPartition(topic, 0): OffsetAndMetadata(9, "", 0)}]


def test_fetched_replies_take_no_more_memory_than_allowed(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=8)
    for partition in range(8):
        fill(bootstrap, topic, [b"x" * 1_000] * 500, partition, batch_size=10_000)
    bound, batch = 100_000, 12_000
    largest = 0
    with Consumer(bootstrap, auto_offset_reset="earliest", fetch_max_bytes=bound) as consumer:
        consumer.assign([TopicPartition(topic, partition) for partition in range(8)])
        consumer.pause([TopicPartition(topic, 7)])
        count = 0
        while count < 7 * 500:
            count += len(some(consumer, 10))
            held = consumer._core._poller.buffered_bytes()
            largest = max(largest, held)
        assert consumer.poll(0) == []
        consumer.resume([TopicPartition(topic, 7)])
        assert len(some(consumer, 500)) == 500
    assert bound / 4 < largest <= bound + batch


def test_paused_partitions_do_not_take_the_memory_of_the_others(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    for partition in range(2):
        fill(bootstrap, topic, [b"x" * 1_000] * 200, partition, batch_size=10_000)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Consumer(bootstrap, auto_offset_reset="earliest", fetch_max_bytes=30_000) as consumer:
        consumer.assign([first])
        some(consumer, 1)
        consumer.assign([first, second])
        consumer.pause([first])
        assert {record.partition for record in some(consumer, 200)} == {1}
        consumer.resume([first])
        assert [record.offset for record in some(consumer, 199)] == list(range(1, 200))


def test_a_record_shows_what_it_is_and_can_be_made_compared_and_pickled() -> None:
    record = Record("t", 3, 14, value=b"v" * 100, key=b"k", headers=[("h", b"1"), ("h", b"2")], timestamp_ms=1_500)
    assert (record.topic, record.partition, record.offset, record.topic_partition) == ("t", 3, 14, ("t", 3))
    assert record.timestamp == datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC)
    assert (record.header("h"), record.header("none")) == (b"2", None)
    assert repr(record).startswith("<Record t-3@14 key=b'k' value=b'vvv")
    assert "(100 bytes)" in repr(record)
    assert "1970-01-01T00:00:01.500+00:00" in repr(record)
    assert record == Record("t", 3, 14, value=b"v" * 100, key=b"k", headers=record.headers, timestamp_ms=1_500)
    assert record != Record("t", 4, 14, value=b"v" * 100, key=b"k", headers=record.headers, timestamp_ms=1_500)
    assert pickle.loads(pickle.dumps(record)) == record
    assert Record("t").timestamp is None
    assert "timestamp_ms=9223372036854775807" in repr(Record("t", timestamp_ms=2**63 - 1))
    with pytest.raises(TypeError, match="not read by a consumer"):
        record.commit()
