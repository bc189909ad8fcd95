"""Three brokers with three replicas of every partition, in one process: leaders are killed under acks=all."""

from functools import partial

from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.testing import Cluster
from tests.testing.replicas import assert_equal_below_watermark, in_sync, leader_of
from tests.testing.test_cluster import read

PARTITIONS = 3


def test_followers_get_what_leaders_append_and_all_are_in_sync() -> None:
    with Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=2) as cluster:
        cluster.create_topic("levels", partitions=PARTITIONS)
        with Producer(cluster.address, acks="all") as producer:
            for number in range(300):
                producer.send("levels", b"%d" % number, partition=number % PARTITIONS)
        assert read(cluster.address, "levels", PARTITIONS, 300) == sorted(b"%d" % number for number in range(300))
        with Admin(cluster.address) as admin:
            assert in_sync(admin, "levels") == [[1, 2, 3]] * PARTITIONS
        assert_equal_below_watermark(cluster, "levels", PARTITIONS, at_least=100)


def test_nothing_acknowledged_is_lost_when_leaders_are_killed() -> None:
    with Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=2) as cluster:
        cluster.create_topic("levels", partitions=PARTITIONS)
        sent: list[bytes] = []
        with Producer(cluster.address, acks="all", enable_idempotence=True, linger_ms=0) as producer:
            for turn in range(3):
                with Admin(cluster.address) as admin:
                    assert wait_until(lambda admin=admin: in_sync(admin, "levels") == [[1, 2, 3]] * PARTITIONS)
                    victim = cluster.brokers[leader_of(admin, "levels", turn) - 1]
                for number in range(600):
                    sent.append(b"%d-%d" % (turn, number))
                    producer.send("levels", sent[-1], partition=number % PARTITIONS)
                    if number == 300:
                        victim.kill()
                producer.flush()
                victim.start()
        assert read(cluster.address, "levels", PARTITIONS, len(sent)) == sorted(sent)
        with Admin(cluster.address) as admin:
            assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]] * PARTITIONS)
        assert_equal_below_watermark(cluster, "levels", PARTITIONS, at_least=600)


def test_too_few_in_sync_take_no_acks_all_and_all_is_well_again_when_one_is_back() -> None:
    with Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=2) as cluster:
        cluster.create_topic("levels")
        for broker in cluster.brokers[1:]:
            broker.kill()
        with Admin(cluster.brokers[0].address) as admin:
            assert wait_until(lambda: in_sync(admin, "levels") == [[1]])
        with Producer(cluster.brokers[0].address, acks="all", delivery_timeout_ms=60_000) as producer:
            sent = producer.send("levels", b"x", partition=0)
            assert not sent.done
            cluster.brokers[1].start()
            assert sent.result(stretched()).offset == 0


def test_groups_and_transactions_go_on_when_their_coordinators_are_killed() -> None:
    values: list[bytes] = []
    settings = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3}
    with Cluster(brokers=3, settings=settings, default_replication_factor=3, min_insync_replicas=2) as cluster:
        cluster.create_topic("moved", partitions=PARTITIONS)
        with (
            Producer(cluster.address, transactional_id="t") as producer,
            Consumer(
                cluster.address, group_id="g", auto_offset_reset="earliest", isolation_level="read_committed"
            ) as consumer,
        ):
            consumer.subscribe(["moved"])
            for turn in range(6):
                with producer.transaction():
                    for number in range(6):
                        producer.send("moved", b"%d-%d" % (turn, number), partition=number % PARTITIONS)
                if turn % 2 == 1:
                    victim = cluster.brokers[turn // 2]
                    victim.kill()
                while len(values) < 6 * (turn + 1):
                    values += [record.value or b"" for record in consumer.poll(500)]
                consumer.commit()
                if turn % 2 == 1:
                    victim.start()
                with Admin(cluster.address) as admin:
                    for topic in ("moved", "__transaction_state", "__consumer_offsets"):
                        assert wait_until(partial(all_in_sync, admin, topic))
    assert sorted(values) == sorted(b"%d-%d" % (turn, number) for turn in range(6) for number in range(6))


def all_in_sync(admin: Admin, topic: str) -> bool:
    return in_sync(admin, topic) == [[1, 2, 3]] * PARTITIONS
