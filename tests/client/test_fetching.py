"""Columns and offsets over blocking sockets."""

import contextlib
from collections.abc import Iterator

import pytest

from harness.brokers import Broker
from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.fetching import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets, read_columns, topic_partitions
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition
from tests import raw_transactions

ROWS = 20_000


@pytest.fixture
def filled(bootstrap: str, topic: str) -> TopicPartition:
    with Producer(bootstrap, column_batch_size=20_000) as producer:
        producer.send_many(topic, [f"{number:0100d}" for number in range(ROWS)])
    return TopicPartition(topic, 0)


def numbers(bootstrap: str, tp: TopicPartition, start: int, end: int, max_bytes: int = 100_000) -> list[int]:
    return [
        int(value)
        for columns in read_columns(bootstrap, *tp, start, end, max_bytes=max_bytes)
        for value in columns.column("value").to_pylist()
    ]


@pytest.mark.parametrize(("start", "end"), [(0, ROWS), (1, ROWS - 1), (777, 778), (5_000, 15_000), (300, 300)])
def test_a_range_is_read_whole_and_nothing_else(bootstrap: str, filled: TopicPartition, start: int, end: int) -> None:
    assert numbers(bootstrap, filled, start, end) == list(range(start, end))


def patient_ms() -> int:
    """A time-out for records that never come, in which the broker answers at least once."""
    return int(stretched(1.5) * 1000)


def test_a_batch_larger_than_a_fetch_is_read_all_the_same(bootstrap: str, filled: TopicPartition) -> None:
    assert numbers(bootstrap, filled, 0, ROWS, max_bytes=1) == list(range(ROWS))


def test_batches_that_were_handed_out_stay_as_they_are(bootstrap: str, filled: TopicPartition) -> None:
    kept = list(read_columns(bootstrap, *filled, 0, ROWS, max_bytes=100_000))
    assert len(kept) > 5
    assert [int(v) for columns in kept for v in columns.column("value").to_pylist()] == list(range(ROWS))


def test_a_range_that_is_gone_or_never_comes_is_an_error(bootstrap: str, filled: TopicPartition) -> None:
    with Admin(bootstrap) as admin:
        admin.delete_records({filled: 100})
    with pytest.raises(KafkaError) as gone:
        numbers(bootstrap, filled, 50, 60)
    assert gone.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError, match=f"ends at offset {ROWS}, before {ROWS + 1}"):
        list(read_columns(bootstrap, *filled, ROWS - 5, ROWS + 1, timeout_ms=patient_ms()))


def test_reading_goes_on_when_the_broker_is_killed_on_the_way(broker: Broker, filled: TopicPartition) -> None:
    found: list[int] = []
    for columns in read_columns(broker.address, *filled, 0, ROWS, max_bytes=300_000):
        if not found:
            broker.kill()
            broker.start()
        found += [int(value) for value in columns.column("value").to_pylist()]
    assert found == list(range(ROWS))


def test_offsets_are_found_by_place_and_by_time(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2, configs={"retention.ms": "-1"})
    with Producer(bootstrap) as producer:
        for number in (0, 1, 5, 3, 4):
            producer.send(topic, b"x", partition=0, timestamp_ms=number * 1_000)
    first, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert list_offsets(bootstrap, {first: EARLIEST, empty: EARLIEST}) == {first: 0, empty: 0}
    assert list_offsets(bootstrap, {first: LATEST, empty: LATEST}) == {first: 5, empty: 0}
    assert list_offsets(bootstrap, {first: MAX_TIMESTAMP, empty: MAX_TIMESTAMP}) == {first: 2, empty: -1}
    assert list_offsets(bootstrap, {first: 1_001, empty: 0}) == {first: 2, empty: -1}
    assert list_offsets(bootstrap, {first: 9_999}) == {first: -1}
    assert list_offsets(bootstrap, {}) == {}


def test_partitions_of_topics_that_are_there_and_of_one_that_is_not(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    assert topic_partitions(bootstrap, [topic]) == {topic: [0, 1, 2]}
    assert topic_partitions(bootstrap)[topic] == [0, 1, 2]
    with pytest.raises(KafkaError, match="unknown topic"):
        topic_partitions(bootstrap, [topic, "not-there"])


def committed_end(bootstrap: str, tp: TopicPartition) -> int:
    return list_offsets(bootstrap, {tp: LATEST}, isolation_level="read_committed")[tp]


@pytest.fixture
def ended_and_open(bootstrap: str, topic: str) -> Iterator[TopicPartition]:
    """A partition with an aborted, a committed and an open transaction, and a record behind each."""
    tp = TopicPartition(topic, 0)
    with Admin(bootstrap) as admin:
        admin.create_topic(topic)
    with Producer(bootstrap) as plain, contextlib.ExitStack() as stack:
        for commits in (False, True, None):
            transaction = raw_transactions.Producer(bootstrap, f"{topic}-{commits}")
            stack.callback(transaction.close)
            transaction.write_values(topic, [f"{commits} {number}".encode() for number in range(3)])
            plain.send(topic, f"behind {commits}".encode()).result()
            if commits is not None:
                transaction.end(commits=commits)
                end = list_offsets(bootstrap, {tp: LATEST})[tp]
                assert wait_until(lambda end=end: committed_end(bootstrap, tp) > end - 1)
        yield tp


def test_records_of_aborted_and_open_transactions_are_left_out_of_columns(
    bootstrap: str, ended_and_open: TopicPartition
) -> None:
    stable, end = committed_end(bootstrap, ended_and_open), list_offsets(bootstrap, {ended_and_open: LATEST})
    assert stable == 10 and end[ended_and_open] == 14
    committed = [b"behind False", b"True 0", b"True 1", b"True 2", b"behind True"]
    for max_bytes in (1, 1_000_000):
        found = list(read_columns(bootstrap, *ended_and_open, 0, stable, max_bytes=max_bytes))
        assert [value for columns in found for value in columns.column("value").to_pylist()] == committed
    assert [o for columns in found for o in columns.column("offset").to_pylist()] == [3, 5, 6, 7, 8]
    begun_in_between = list(read_columns(bootstrap, *ended_and_open, 1, 4))
    assert [columns.column("value").to_pylist() for columns in begun_in_between] == [[b"behind False"]]
    with pytest.raises(KafkaError, match="ends at offset 10, before 14"):
        list(read_columns(bootstrap, *ended_and_open, stable, 14, timeout_ms=patient_ms()))


def test_uncommitted_records_are_read_where_they_are_asked_for(bootstrap: str, ended_and_open: TopicPartition) -> None:
    found = list(read_columns(bootstrap, *ended_and_open, 0, 14, isolation_level="read_uncommitted"))
    values = [value.decode() for columns in found for value in columns.column("value").to_pylist()]
    three = ("0", "1", "2")
    assert values == [
        *(f"False {n}" for n in three), "behind False", *(f"True {n}" for n in three), "behind True",
        *(f"None {n}" for n in three), "behind None",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="isolation level 'commited' is not one of read_uncommitted, read_committed"):
        list(read_columns(bootstrap, *ended_and_open, 0, 1, isolation_level="commited"))


def test_nobody_there_is_one_sentence(topic: str) -> None:
    with pytest.raises(KafkaError, match=r"^cannot connect to 127\.0\.0\.1:1: Connection refused$"):
        topic_partitions("127.0.0.1:1", timeout_ms=50)
