"""A ZooKeeper that stands still, so that all sessions end: clients write, read and commit as before meanwhile."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import Deadline, stretched, wait_until
from harness.tiers import LONG
from harness.zookeeper import ZooKeeper
from moldau import Admin, Consumer, Producer
from tests.zookeeper.test_brokers import bootstrap, cluster, read, write

PARTITIONS = 6
ROUND_SECONDS_MAX = 5.0
"""A time of this machine: judged by the long tier."""
ROUNDS_AFTER = 10


class Client:
    """Writes one record to each partition, reads them in a group and commits, round after round."""

    def __init__(self, producer: Producer, consumer: Consumer):
        self._producer = producer
        self._consumer = consumer
        self.values: list[str] = []
        self.seconds: list[float] = []
        """How long each round took."""
        consumer.subscribe(["t"])

    def round(self) -> None:
        began = time.monotonic()
        sent = [f"{len(self.values)}-{number}" for number in range(PARTITIONS)]
        deliveries = [self._producer.send("t", one, partition=number) for number, one in enumerate(sent)]
        for delivery in deliveries:
            delivery.result()
        received: list[str] = []
        deadline = Deadline()
        while len(received) < PARTITIONS:
            received += [(one.value or b"").decode() for one in self._consumer.poll(timeout_ms=500)]
            assert deadline.left_s, f"read {received} of {sent}"
        assert sorted(received) == sorted(sent)
        self._consumer.commit()
        self.values += sent
        self.seconds.append(time.monotonic() - began)


def consumed(consumer: Consumer) -> str:
    """The value of the next record."""
    deadline = Deadline()
    while not (records := consumer.poll(timeout_ms=500)):
        assert deadline.left_s
    consumer.commit()
    return (records[0].value or b"").decode()


@contextlib.contextmanager
def standing_still(zookeeper: ZooKeeper) -> Iterator[None]:
    processes = zookeeper.servers().values()
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.mark.check  # it waits for real sessions to end
def test_clients_write_read_and_commit_while_all_sessions_are_over(tmp_path: Path, single: ZooKeeper) -> None:
    with cluster(tmp_path, single) as brokers:
        servers = bootstrap(brokers)
        with Admin(servers) as admin:
            admin.create_topic("t", partitions=PARTITIONS)
        with Producer(servers) as producer, Consumer(servers, group_id="g", auto_offset_reset="earliest") as consumer:
            client = Client(producer, consumer)
            client.round()
            client.seconds.clear()
            with standing_still(single):
                deadline = Deadline(60)
                while not all("the session in ZooKeeper at" in one.log() for one in brokers.values()):
                    client.round()
                    assert deadline.left_s, "no session has ended"
                for _ in range(ROUNDS_AFTER):
                    client.round()
                write(servers, "t", ["a"])  # by a producer that has no id yet
                assert "a" in read(servers, "t", len(client.values) + 1)  # in a group that is new
                client.values.append(consumed(consumer))
            assert not LONG or max(client.seconds) < stretched(ROUND_SECONDS_MAX)

            def is_whole() -> bool:
                with Admin(servers) as admin:
                    described = admin.describe_cluster()  # without a controller until one has a session again
                    return described.controller_id in described.brokers.keys() == {1, 2, 3} and {
                        part.leader for part in admin.describe_topics(["t"])["t"].partitions.values()
                    } == {1, 2, 3}

            assert wait_until(is_whole)
            with Admin(servers) as admin:
                admin.create_topic("later", partitions=2)
            write(servers, "later", ["a"])
            client.round()
        assert read(servers, "t", len(client.values)) == sorted(client.values)
        for one in brokers.values():
            one.stop()
