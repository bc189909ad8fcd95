"""`Cluster`: several brokers in the process of a test, as its users know them."""

import asyncio
from pathlib import Path

import pytest

from harness.patience import wait_until
from moldau import aio
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import BrokerFailed, ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.testing import Cluster


def read(address: str, topic: str, partitions: int, count: int) -> list[bytes]:
    values: list[bytes] = []
    with Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        while len(values) < count:
            values += [record.value or b"" for record in consumer.poll(500)]
    return sorted(values)


def test_topics_are_spread_and_any_broker_is_asked() -> None:
    with Cluster(brokers=3, num_partitions=6) as cluster:
        cluster.create_topic("levels")
        for broker in cluster.brokers:
            with Admin(broker.address) as admin:
                topic = admin.describe_topics(["levels"])["levels"]
                assert {partition.leader for partition in topic.partitions.values()} == {1, 2, 3}
            with Producer(broker.address) as producer:
                for number in range(20):
                    producer.send("levels", b"%d of %s" % (number, broker.address.encode()))
        sent = sorted(b"%d of %s" % (number, one.address.encode()) for one in cluster.brokers for number in range(20))
        assert read(cluster.address, "levels", 6, 60) == sent
        with pytest.raises(KafkaError) as refused:
            cluster.create_topic("levels")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_the_controller_is_killed_and_comes_back() -> None:
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("before", partitions=3)
        with Producer(cluster.address) as producer:
            for number in range(3):
                producer.send("before", b"%d" % number, partition=number)
        first = cluster.controller
        first.kill()
        assert cluster.controller is not first
        cluster.create_topic("after", partitions=2)
        with Admin(cluster.controller.address) as admin:
            topic = admin.describe_topics(["before"])["before"]
            assert [partition.leader for partition in topic.partitions.values()].count(-1) == 1
        first.start()
        assert wait_until(lambda: len(leaders(cluster.address, "before")) == 3)
        assert read(cluster.address, "before", 3, 3) == [b"0", b"1", b"2"]


def leaders(address: str, topic: str) -> set[int]:
    with Admin(address) as admin:
        found = admin.describe_topics([topic])[topic]
        return {partition.leader for partition in found.partitions.values()} - {-1}


def test_a_folder_is_kept_over_two_lives(tmp_path: Path) -> None:
    cluster = Cluster(brokers=2, data_dir=tmp_path)
    with cluster:
        cluster.create_topic("kept", partitions=2)
        with Producer(cluster.address) as producer:
            producer.send("kept", b"here", partition=1).result()
    assert {path.name for path in tmp_path.iterdir()} == {"metadata", "broker-1", "broker-2"}
    with cluster:
        assert read(cluster.address, "kept", 2, 1) == [b"here"]


def test_groups_and_transactions_of_a_cluster_in_asyncio() -> None:
    async def scenario() -> None:
        async with Cluster(brokers=2) as cluster:
            async with aio.Producer(cluster.address, transactional_id="t") as producer:
                async with producer.transaction():
                    await producer.send("moved", b"once")
            async with aio.Consumer(
                cluster.address, group_id="g", auto_offset_reset="earliest", isolation_level="read_committed"
            ) as consumer:
                consumer.subscribe(["moved"])
                records: list[aio.Record] = []
                while not records:
                    records = await consumer.poll(500)
                assert [record.value for record in records] == [b"once"]
                await consumer.commit()

    asyncio.run(scenario())


def test_a_topic_has_as_many_replicas_as_it_is_created_with() -> None:
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", partitions=2, replication_factor=2)
        with Admin(cluster.bootstrap_servers) as admin:
            (topic,) = admin.describe_topics(["orders"]).values()
        assert all(sorted(part.replicas) == [1, 2] for part in topic.partitions.values())
        with pytest.raises(KafkaError, match="3"):
            cluster.create_topic("too-many", replication_factor=3)


def test_a_broker_that_has_failed_leaves_no_other_one_running() -> None:
    cluster = Cluster(brokers=2).start()
    folder = cluster.brokers[1].data_dir
    loop = cluster.brokers[0].clock._loop
    assert loop is not None
    loop.call_soon_threadsafe(lambda: 1 / 0)
    with pytest.raises(BrokerFailed, match="ZeroDivisionError"):
        cluster.stop()
    assert not any(broker.running for broker in cluster.brokers) and not folder.exists()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"num\.partition"):
        Cluster(num_partition=3)
    with pytest.raises(ValueError, match="at least one"):
        Cluster(brokers=0)
    assert repr(Cluster(2)) == "<moldau.testing.Cluster of 2 brokers, 0 running>"
