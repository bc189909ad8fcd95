"""A topic gets more replicas while it is written and read, and then loses the broker that had all of it."""

from functools import partial

from harness.patience import wait_until
from moldau import Admin, Producer, TopicPartition
from moldau.cli.cluster.replication_factors import with_replicas
from moldau.testing import Cluster
from tests.testing.replicas import assert_equal_below_watermark, in_sync
from tests.testing.test_cluster import read

ALL = [1, 2, 3]


def test_replicas_added_under_load_catch_up_and_nothing_acknowledged_is_lost_with_the_first_one() -> None:
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("levels", partitions=2)
        sent: list[bytes] = []
        with (
            Producer(cluster.address, acks="all", enable_idempotence=True) as producer,
            Admin(cluster.address) as admin,
        ):

            def send(count: int) -> None:
                for _ in range(count):
                    sent.append(b"%06d" % len(sent) * 50)
                    producer.send("levels", sent[-1], partition=len(sent) % 2)

            send(4000)
            producer.flush()
            assert [len(isr) for isr in in_sync(admin, "levels")] == [1, 1]
            topic = admin.describe_topics(["levels"])["levels"]
            moves = with_replicas(topic, 3, admin.describe_cluster().racks)
            outcome = admin.alter_reassignments({TopicPartition("levels", n): to for n, to in moves.items()})
            assert set(outcome.values()) == {None}
            send(1000)
            assert wait_until(partial(_is_whole, admin))
            cluster.brokers[topic.partitions[0].leader - 1].kill()
            send(1000)
            producer.flush()
        assert read(cluster.address, "levels", 2, len(sent)) == sorted(sent)
        assert_equal_below_watermark(cluster, "levels", 2, at_least=3000)


def _is_whole(admin: Admin) -> bool:
    return in_sync(admin, "levels") == [ALL, ALL]
