"""Three brokers with three replicas of the internal topics, in one process: the brokers that coordinate are killed, and
what they have acknowledged holds."""

from functools import partial

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.coordinators.partitioning import partition_of
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from moldau.testing import Cluster
from tests.testing.replicas import assert_equal_below_watermark, in_sync, leader_of

ROUNDS = 3
OF_A_ROUND = 40
TP = TopicPartition("levels", 0)
ALL = [1, 2, 3]


def replicated() -> Cluster:
    return Cluster(
        brokers=3,
        default_replication_factor=3,
        min_insync_replicas=2,
        offsets_topic_num_partitions=2,
        transaction_state_log_num_partitions=2,
    )


def kill_the_leader(cluster: Cluster, topic: str, key: str) -> int:
    """Kill the broker that coordinates this group or transactional id, once all replicas are in sync; returns its
    place among the brokers."""
    with Admin(cluster.address) as admin:
        assert wait_until(partial(_is_whole, admin, topic))
        place = leader_of(admin, topic, partition_of(key, 2)) - 1
    cluster.brokers[place].kill()
    return place


def _is_whole(admin: Admin, topic: str) -> bool:
    return all(isr == ALL for name in (topic, TP.topic) for isr in in_sync(admin, name))


def test_committed_offsets_survive_their_coordinators() -> None:
    with replicated() as cluster:
        cluster.create_topic(TP.topic)
        with Consumer(cluster.address, group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign([TP])
            consumer.commit({TP: 0})
            for turn in range(ROUNDS):
                killed = -1
                for number in range(turn * OF_A_ROUND + 1, (turn + 1) * OF_A_ROUND + 1):
                    if number % OF_A_ROUND == OF_A_ROUND // 2:
                        killed = kill_the_leader(cluster, OFFSETS_TOPIC, "g")
                    consumer.commit({TP: number})
                    found = consumer.committed([TP])[TP]
                    assert found is not None and found.offset == number
                cluster.brokers[killed].start()
        assert_equal_below_watermark(cluster, OFFSETS_TOPIC, 2)


def test_transactions_go_on_when_their_coordinators_are_killed() -> None:
    with replicated() as cluster:
        cluster.create_topic(TP.topic)
        sent = [b"%d" % number for number in range(ROUNDS * OF_A_ROUND)]
        with Producer(cluster.address, transactional_id="t") as producer:
            killed = -1
            for number, value in enumerate(sent):
                if number % OF_A_ROUND == OF_A_ROUND // 2:
                    killed = kill_the_leader(cluster, TRANSACTIONS_TOPIC, "t")
                with producer.transaction():
                    producer.send(TP.topic, value, partition=0)
                if number % OF_A_ROUND == OF_A_ROUND - 1:
                    cluster.brokers[killed].start()
        values: list[bytes] = []
        with Consumer(cluster.address, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
            consumer.assign([TP])
            while len(values) < len(sent):
                values += [record.value or b"" for record in consumer.poll(500)]
        assert values == sent
        assert_equal_below_watermark(cluster, TRANSACTIONS_TOPIC, 2)
