"""Consumers read from the replica in their rack (KIP-392): three brokers in three racks, in one process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from harness.patience import Deadline, stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.testing import Cluster
from tests.end_to_end.raw import Raw
from tests.testing.replicas import in_sync, leader_of, replicas

BY_RACK = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RACKS = {1: "a", 2: "b", 3: "c"}
TP = TopicPartition("near", 0)
"""Led by broker 1; all three have it."""
LATE_MS = 600_000
"""A late record comes after the end of `read`."""


class GivenUp(Exception):
    """A transaction is aborted."""


@contextmanager
def in_racks(**settings: str) -> Iterator[tuple[Cluster, Admin]]:
    cluster = Cluster(brokers=3, settings={name.replace("_", "."): value for name, value in settings.items()})
    for number, broker in enumerate(cluster.brokers, 1):
        broker.settings["broker.rack"] = RACKS[number]
    with cluster, Admin(cluster.address) as admin:
        admin.create_topic(TP.topic, assignment={0: [1, 2, 3]})
        assert wait_until(lambda: leader_of(admin, TP.topic) == 1 and in_sync(admin, TP.topic) == [[1, 2, 3]])
        yield cluster, admin


def write(cluster: Cluster, first: int, count: int) -> None:
    with Producer(cluster.address, acks="all", linger_ms=0) as producer:
        for number in range(first, first + count):
            producer.send(TP.topic, b"%d" % number, partition=0).result(stretched())


def read(consumer: Consumer, count: int) -> list[int]:
    values: list[int] = []
    deadline = Deadline()
    while len(values) < count:
        assert not deadline.passed, values
        values += [int(record.value or b"") for record in consumer.poll(500)]
    return values


@contextmanager
def reading(cluster: Cluster, rack: str) -> Iterator[Consumer]:
    with Consumer(cluster.address, auto_offset_reset="earliest", client_rack=rack) as consumer:
        consumer.assign([TP])
        yield consumer


def readers(cluster: Cluster, broker: int) -> int:
    """How many Fetches wait at this broker's replica."""
    found = {replica.leadership.local: replica for replica in replicas(cluster, TP)}
    return len(found[broker].waiters.for_bytes)  # type: ignore[index]


def test_a_consumer_reads_from_the_replica_in_its_rack_and_goes_back_to_the_leader_when_that_dies() -> None:
    with in_racks(**BY_RACK) as (cluster, admin):
        write(cluster, 0, 10)
        with reading(cluster, "c") as consumer:
            assert read(consumer, 10) == list(range(10))
            assert wait_until(lambda: readers(cluster, 3) == 1 and readers(cluster, 1) == 0)
            cluster.brokers[2].kill()
            assert wait_until(lambda: in_sync(admin, TP.topic) == [[1, 2]])
            write(cluster, 10, 10)
            assert read(consumer, 10) == list(range(10, 20))
            cluster.brokers[2].start()
            assert wait_until(lambda: in_sync(admin, TP.topic) == [[1, 2, 3]])
            write(cluster, 20, 10)
            assert read(consumer, 10) == list(range(20, 30))


def test_a_consumer_goes_on_at_its_replica_when_another_broker_leads() -> None:
    with in_racks(**BY_RACK) as (cluster, admin):
        write(cluster, 0, 10)
        with reading(cluster, "c") as consumer:
            assert read(consumer, 10) == list(range(10))
            cluster.brokers[0].kill()
            assert wait_until(lambda: leader_of(admin, TP.topic) == 2)
            write(cluster, 10, 10)
            assert read(consumer, 10) == list(range(10, 20))
            assert wait_until(lambda: readers(cluster, 3) == 1)


def test_records_are_not_late_at_a_follower() -> None:
    times = {"replica.fetch.wait.max.ms": 1, "replica.lag.time.max.ms": 2, "replica.socket.timeout.ms": 2}
    late = {name: str(count * LATE_MS) for name, count in times.items()}
    with in_racks(**BY_RACK, **late) as (cluster, _):
        write(cluster, 0, 1)
        with reading(cluster, "b") as consumer:
            assert read(consumer, 1) == [0]
            for number in range(1, 4):
                write(cluster, number, 1)
                assert read(consumer, 1) == [number]
            assert wait_until(lambda: readers(cluster, 2) == 1)


@pytest.mark.parametrize("rack", ["a", "d", ""])
def test_a_consumer_in_the_leaders_rack_or_in_none_reads_from_the_leader(rack: str) -> None:
    with in_racks(**BY_RACK) as (cluster, _):
        write(cluster, 0, 10)
        with reading(cluster, rack) as consumer:
            assert read(consumer, 10) == list(range(10))
            assert wait_until(lambda: readers(cluster, 1) == 1)


def test_without_a_selector_all_read_from_the_leader() -> None:
    with in_racks() as (cluster, _):
        write(cluster, 0, 10)
        with reading(cluster, "c") as consumer:
            assert read(consumer, 10) == list(range(10))
            assert wait_until(lambda: readers(cluster, 1) == 1)


def test_a_follower_shows_committed_transactions_only() -> None:
    with in_racks(**BY_RACK) as (cluster, _):
        with Producer(cluster.address, transactional_id="t") as producer:
            for turn in range(4):
                with producer.transaction():
                    producer.send(TP.topic, b"%d" % turn, partition=0)
                with suppress(GivenUp), producer.transaction():
                    producer.send(TP.topic, b"%d" % (10 + turn), partition=0).result(stretched())
                    raise GivenUp
        with Consumer(
            cluster.address, auto_offset_reset="earliest", client_rack="b", isolation_level="read_committed"
        ) as consumer:
            consumer.assign([TP])
            assert read(consumer, 4) == [0, 1, 2, 3]
            assert wait_until(lambda: readers(cluster, 2) == 1)


@pytest.mark.parametrize("version", [10, 11, 17])
def test_without_a_selector_followers_answer_a_consumer_without_a_rack_from_version_11_on(version: int) -> None:
    with in_racks() as (cluster, admin):
        write(cluster, 0, 5)
        topic_id = admin.describe_topics([TP.topic])[TP.topic].topic_id
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        named = FetchTopic(topic=TP.topic) if version < 13 else FetchTopic(topic_id=topic_id)
        named.partitions = [part]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[named])

        def answers() -> list[tuple[int, int, bool]]:
            found = []
            for broker in cluster.brokers:
                with Raw(broker.address) as raw:
                    answer = raw.ask(FETCH, version, request).responses[0].partitions[0]
                found.append((answer.error_code, answer.high_watermark, bool(answer.records)))
            return found

        whole, refused = (0, 5, True), (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, False)
        followers = refused if version < 11 else whole
        assert wait_until(lambda: answers() == [whole, followers, followers]), answers()
