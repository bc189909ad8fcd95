"""Broker processes that join one cluster on a real ZooKeeper, by their settings alone."""

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker, NotReady
from harness.patience import wait_until
from harness.zookeeper import ZooKeeper
from moldau import Admin, Consumer, Producer

_numbers = itertools.count()
TIMEOUT_MS = 6000


@contextlib.contextmanager
def cluster(folder: Path, zookeeper: ZooKeeper) -> Iterator[dict[int, Broker]]:
    """Three brokers of a cluster of their own."""
    connect = f"{zookeeper.connect}/cluster-{next(_numbers)}"
    brokers = {number: broker(folder, connect, number) for number in (1, 2, 3)}
    try:
        for one in brokers.values():
            one.start()
        yield brokers
    finally:
        for one in brokers.values():
            if one.runs:
                one.kill()


def broker(folder: Path, connect: str, number: int, name: str = "", timeout_ms: int = TIMEOUT_MS) -> Broker:
    own = folder / (name or str(number))
    own.mkdir()
    return Broker(
        own,
        {
            "broker.id": str(number),
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": str(timeout_ms),
            "offsets.topic.num.partitions": "6",
        },
    )


def bootstrap(brokers: dict[int, Broker]) -> str:
    return ",".join(one.address for one in brokers.values())


def read(servers: str, topic: str, count: int) -> list[str]:
    values: list[str] = []
    with Consumer(servers, group_id=f"once-{next(_numbers)}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        assert wait_until(
            lambda: (
                values.extend((one.value or b"").decode() for one in consumer.poll(timeout_ms=500))
                or len(values) >= count
            )
        )
    return sorted(values)


def write(servers: str, topic: str, values: list[str]) -> None:
    with Producer(servers) as producer:
        for delivery in [producer.send(topic, value, key=value) for value in values]:
            delivery.result()


def test_three_processes_are_one_cluster_that_outlives_its_controller(tmp_path: Path, single: ZooKeeper) -> None:
    with cluster(tmp_path, single) as brokers:
        values = [str(number) for number in range(60)]
        with Admin(brokers[2].address) as admin:
            admin.create_topic("t", partitions=6)
            assert sorted(admin.describe_cluster().brokers) == [1, 2, 3]
            first = admin.describe_cluster().controller_id
        write(brokers[1].address, "t", values)
        assert read(brokers[3].address, "t", 60) == sorted(values)

        brokers[first].kill()
        left = {number: one for number, one in brokers.items() if number != first}
        with Admin(bootstrap(left)) as admin:
            assert wait_until(lambda: admin.describe_cluster().controller_id not in (-1, first))
            assert wait_until(lambda: first not in admin.describe_cluster().brokers)
            admin.create_topic("later", partitions=2)
            away = admin.describe_cluster(include_fenced=True)
            assert {number: str(one) for number, one in away.fenced.items()} == {first: brokers[first].address}
            assert sorted(away.brokers) == sorted(left)
        write(bootstrap(left), "later", ["a"])

        brokers[first].start()  # it may coordinate the group that reads
        assert read(bootstrap(brokers), "t", 60) == sorted(values)
        assert read(brokers[first].address, "later", 1) == ["a"]
        for one in brokers.values():
            one.stop()


@pytest.mark.check  # three brokers more
def test_a_broker_that_moves_to_another_address_is_found_again_by_those_who_read(
    tmp_path: Path, single: ZooKeeper
) -> None:
    """As to another machine: its folder, and a new port."""
    with cluster(tmp_path, single) as brokers:
        with Admin(bootstrap(brokers)) as admin:
            admin.create_topic("t", partitions=6)
        servers = bootstrap({number: brokers[number] for number in (1, 3)})
        with Producer(servers) as producer, Consumer(servers, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            values: list[bytes | None] = []

            def sent_and_read(numbers: range) -> bool:
                for number in numbers:
                    producer.send("t", b"%d" % number, partition=number % 6)
                count = len(values) + len(numbers)
                return wait_until(
                    lambda: values.extend(one.value for one in consumer.poll(timeout_ms=500)) or len(values) >= count
                )

            assert sent_and_read(range(60))
            before = brokers[2]
            before.stop()
            moved = broker(tmp_path, before.settings["zookeeper.connect"], 2, "elsewhere")
            before.data.rename(moved.data)
            moved.start()
            brokers[2] = moved
            assert moved.address != before.address
            assert sent_and_read(range(60, 120))
            assert sorted(values, key=lambda one: int(one or b"")) == [b"%d" % number for number in range(120)]


def test_a_broker_with_an_id_that_is_taken_says_who_has_it(tmp_path: Path, single: ZooKeeper) -> None:
    connect = f"{single.connect}/cluster-{next(_numbers)}"
    first, second = broker(tmp_path, connect, 1), broker(tmp_path, connect, 1, "other")
    first.start()
    try:
        running = rf"another broker with the id 1 is running at PLAINTEXT://{first.address} \(registered at \d{{4}}-"
        with pytest.raises(NotReady, match=running):
            second.start()
    finally:
        first.stop()


def test_a_zookeeper_that_does_not_answer_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    alone = Broker(
        tmp_path, {"broker.id": "1", "zookeeper.connect": "localhost:1", "zookeeper.connection.timeout.ms": "500"}
    )
    with pytest.raises(NotReady, match=r"ZooKeeper at localhost:1 did not answer within 0\.5 s"):
        alone.start()


def test_a_broker_that_was_killed_ends_its_old_session_and_need_not_wait(tmp_path: Path, single: ZooKeeper) -> None:
    one = broker(tmp_path, f"{single.connect}/cluster-{next(_numbers)}", 1, timeout_ms=40_000)
    one.start()
    kept = one.data / "zookeeper-session"
    assert kept.stat().st_mode & 0o777 == 0o600
    one.kill()
    one.start()
    assert "waiting for its end" not in one.log() and "zookeeper-session" not in one.log()
    one.stop()
    for text in ('{"session": 7, "password": "00"}', "not JSON", kept.read_text()):
        kept.write_text(text)
        one.start()
        one.stop()
