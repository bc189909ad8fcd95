"""A new leader that waits for its in-sync replicas does not know its end (KIP-207): clients wait for it, and commands
that describe do not."""

import json

import pytest

from harness.patience import wait_until
from moldau.cli import main
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import LeaderNotAvailable, OffsetNotAvailable
from moldau.names import TopicPartition
from moldau.testing import Cluster
from tests.testing.replicas import in_sync, leader_of, replicas

TP = TopicPartition("levels", 0)


def test_offsets_of_partitions_that_have_a_leader_are_known_without_the_others() -> None:
    with Cluster(brokers=2) as cluster, Admin(cluster.address, default_api_timeout_ms=500) as admin:
        cluster.create_topic("levels", partitions=2)
        dead = leader_of(admin, "levels", 1)
        cluster.brokers[dead - 1].kill()
        assert wait_until(lambda: leader_of(admin, "levels", 1) == -1)
        both = {TP: "earliest", TopicPartition("levels", 1): "earliest"}
        with pytest.raises(LeaderNotAvailable):
            admin.offsets(both)
        assert admin.offsets(both, known_only=True) == {TP: 0}


def test_a_topic_is_described_while_its_new_leader_does_not_know_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=3) as cluster:
        cluster.create_topic("levels", partitions=1)
        with Admin(cluster.address, default_api_timeout_ms=500) as admin:
            assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]])
            leader = leader_of(admin, "levels")
            cluster.brokers[leader % 3].kill()
            assert wait_until(lambda: len(in_sync(admin, "levels")[0]) == 2)
            with Producer(cluster.address, acks=1) as producer:
                producer.send("levels", "x", partition=0).result()
            assert wait_until(lambda: [one.log.log_end_offset for one in replicas(cluster, TP)] == [1, 1])
            cluster.brokers[leader - 1].kill()
            assert wait_until(lambda: leader_of(admin, "levels") not in (leader, -1))
            with pytest.raises(OffsetNotAvailable):
                admin.offsets({TP: "latest"})
            assert admin.offsets({TP: "latest"}, known_only=True) == {}
            new = leader_of(admin, "levels")
        assert main.run(["topics", "describe", "levels", "--json", "-b", cluster.address]) == 0
        [part] = json.loads(capsys.readouterr().out)[0]["partitions"]
        assert (part["leader"], part["isr"], part["first_offset"], part["end_offset"]) == (new, [new], 0, None)
