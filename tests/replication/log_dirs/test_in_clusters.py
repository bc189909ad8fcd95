"""Replicas of a cluster move between the log folders of their brokers: leader and follower, across a kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import wait_until
from moldau import Admin, Producer, TopicPartition
from moldau.testing import Cluster
from tests.testing.test_cluster import read

TP = TopicPartition("t", 0)
FOLDERS = ("a", "b")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(brokers=2, data_dir=tmp_path / "data", min_insync_replicas=1)
    for number, broker in enumerate(made.brokers, 1):
        broker.settings["log.dirs"] = ",".join(str(tmp_path / str(number) / one) for one in FOLDERS)
    with made:
        yield made


def place(folder: Path, broker: int) -> str:
    """The log folder that has the replica, alone."""
    found = [one for one in FOLDERS if (folder / str(broker) / one / "t-0").is_dir()]
    return found[0] if len(found) == 1 else ""


def other(folder: Path, broker: int) -> str:
    return FOLDERS[place(folder, broker) == FOLDERS[0]]


def test_leader_and_follower_move_under_load_and_one_of_them_across_a_kill(cluster: Cluster, tmp_path: Path) -> None:
    with Admin(cluster.address) as admin, Producer(cluster.address, acks="all") as producer:
        admin.create_topic("t", assignment={0: [1, 2]})
        sent = 0
        for broker in (1, 2, 2):
            target = other(tmp_path, broker)
            for _ in range(100):
                producer.send("t", b"%d" % sent, partition=0)
                sent += 1
            assert admin.alter_replica_log_dirs({(broker, TP): str(tmp_path / str(broker) / target)}) == {
                (broker, TP): None
            }
            producer.flush()
            assert wait_until(lambda broker=broker, target=target: place(tmp_path, broker) == target)
        target = other(tmp_path, 1)
        admin.alter_replica_log_dirs({(1, TP): str(tmp_path / "1" / target)})
        cluster.brokers[0].kill()
        cluster.brokers[0].start()
        admin.alter_replica_log_dirs({(1, TP): str(tmp_path / "1" / target)})
        assert wait_until(lambda: place(tmp_path, 1) == target)
        for _ in range(100):
            producer.send("t", b"%d" % sent, partition=0)
            sent += 1
        producer.flush()
        assert wait_until(lambda: set(admin.describe_topics(["t"])["t"].partitions[0].isr) == {1, 2})
        for leader in (1, 2):
            assert wait_until(lambda leader=leader: led_by(admin, leader))
            assert read(cluster.address, "t", 1, sent) == sorted(b"%d" % number for number in range(sent))


def led_by(admin: Admin, leader: int) -> bool:
    """Let that broker lead."""
    if admin.describe_topics(["t"])["t"].partitions[0].leader == leader:
        return True
    admin.alter_reassignments({TP: [leader, 3 - leader]})
    admin.elect_leaders([TP])
    return False
