"""DeleteRecords on three brokers in one process: it is answered when no live replica has the records any more."""

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.testing import Cluster
from tests.testing.replicas import in_sync, leader_of, replicas

TP = TopicPartition("levels", 0)


def starts(cluster: Cluster) -> list[int]:
    return [replica.log_start_offset for replica in replicas(cluster, TP)]


def test_records_are_deleted_on_all_live_replicas_whoever_leads() -> None:
    with Cluster(brokers=3, default_replication_factor=3) as cluster, Admin(cluster.address) as admin:
        cluster.create_topic("levels")
        with Producer(cluster.address, acks="all") as producer:
            for number in range(20):
                producer.send("levels", b"%d" % number, partition=0)
        assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]])
        assert admin.delete_records({TP: 12}) == {TP: 12}
        assert starts(cluster) == [12, 12, 12]
        leader = leader_of(admin, "levels")
        dead = cluster.brokers[leader % 3]
        dead.kill()
        assert admin.delete_records({TP: 15}) == {TP: 15}
        assert starts(cluster) == [15, 15]
        dead.start()
        assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]])
        assert wait_until(lambda: starts(cluster) == [15, 15, 15])
        cluster.brokers[leader - 1].kill()
        assert wait_until(lambda: leader_of(admin, "levels") not in (leader, -1))
        assert admin.delete_records({TP: -1}) == {TP: 20}
        assert starts(cluster) == [20, 20]
