"""Message streams: blocking iterators for threads, each over its share of the partitions."""

import threading
from collections.abc import Callable

import pytest

from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.streams.message_streams import MessageStream
from moldau.client.consuming.streams.topic_filter import TopicFilter
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, KafkaError
from moldau.names import TopicPartition


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=partitions)
    with Producer(bootstrap) as producer:
        for number in range(partitions * count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def reading(stream: MessageStream, into: list[Record]) -> threading.Thread:
    def work() -> None:
        for record in stream:
            into.append(record)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_the_partitions_of_a_topic_are_shared_out_to_its_streams_in_order(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 4, 2_000)
    consumer = Consumer(bootstrap, group_id=group, auto_offset_reset="earliest")
    streams = consumer.create_message_streams({topic: 2})[topic]
    seen: list[list[Record]] = [[], []]
    threads = [reading(stream, into) for stream, into in zip(streams, seen, strict=True)]
    assert wait_until(lambda: len(seen[0]) + len(seen[1]) == 8_000)
    consumer.close()
    for thread in threads:
        thread.join(stretched(10))
        assert not thread.is_alive()
    for records in seen:
        partitions = sorted({record.partition for record in records})
        assert len(partitions) == 2
        for partition in partitions:
            assert [r.offset for r in records if r.partition == partition] == list(range(2_000))


def test_only_records_that_a_stream_came_back_from_are_committed(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 2, 100)
    consumer = Consumer(bootstrap, group_id=group, auto_offset_reset="earliest")
    first, second = consumer.create_message_streams({topic: 2})[topic]
    for stream, last in ((first, 7), (second, 42)):
        for record in stream:
            if record.offset == last:
                break
    consumer.close()
    with Consumer(bootstrap, group_id=group) as after:
        found = after.committed([TopicPartition(topic, number) for number in range(2)])
    assert sorted(at.offset for at in found.values()) == [7, 42]


def test_a_loop_over_a_stream_that_was_left_is_continued_by_the_next_one(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 1, 100)
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", max_poll_records=30) as consumer:
        [stream] = consumer.create_message_streams({topic: 1})[topic]
        offsets: list[int] = []
        for last in (7, 42, 99):
            for record in stream:
                offsets.append(record.offset)
                if record.offset == last:
                    break
    assert offsets == list(range(100))


def test_a_slow_stream_delays_no_other_one_and_is_held_back(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 2, 6_000)
    seen: list[Record] = []
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", max_poll_records=100) as consumer:
        slow, fast = consumer.create_message_streams({topic: 2})[topic]
        for _ in slow:
            break
        reading(fast, seen)
        assert wait_until(lambda: len(seen) == 6_000)
        held = [p for p in consumer.paused() if p.partition != seen[0].partition]
        assert len(held) == 1
        assert consumer.position(held[0]) < 6_000
        assert consumer.metrics().bytes_consumed_total < 2 * 12_000 * 20, "what was held back is not fetched again"


def test_filters_allow_and_deny_topics_by_the_pattern_of_their_names(
    bootstrap: str, fresh: Callable[[], str], group: str
) -> None:
    prefix = fresh()
    for name in ("a", "b", "c"):
        fill(bootstrap, f"{prefix}-{name}", 1, 1)
    allowed, rest = TopicFilter.allow(f"{prefix}-[ab]"), TopicFilter.deny(f"(?!{prefix}).*|.*-[ab]")
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        streams = consumer.create_message_streams({f"{prefix}-a": 1, allowed: 1, rest: 1})
        found = [next(iter(streams[key][0])).topic for key in (f"{prefix}-a", allowed, rest)]
    assert found == [f"{prefix}-a", f"{prefix}-b", f"{prefix}-c"]


def test_a_failure_of_the_consumer_comes_out_of_its_streams(bootstrap: str, topic: str, group: str) -> None:
    with Consumer(bootstrap, group_id=group, default_api_timeout_ms=500) as consumer:
        stream = consumer.create_message_streams({topic: 1})[topic][0]
        with pytest.raises(KafkaError, match=topic):
            next(iter(stream))


@pytest.mark.parametrize("wanted", [{"t": 0}, {"t": "1"}, {"a b": 1}, {5: 1}])
def test_wrong_streams_are_refused(wanted: dict[str, int], bootstrap: str, group: str) -> None:
    with Consumer(bootstrap, group_id=group) as consumer, pytest.raises(ConfigError):
        consumer.create_message_streams(wanted)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="pattern"):
        TopicFilter.allow("(")
