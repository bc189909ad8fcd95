"""Metrics of several brokers: sums over all of them count everything once, and lag is told wherever a group is."""

from urllib.request import urlopen

from harness.patience import wait_until
from moldau import Consumer, Producer, TopicPartition
from moldau.testing import Cluster
from tests.metrics.scraping import ScrapedSample, samples

PARTITIONS, RECORDS = 6, 3


def scraped(cluster: Cluster) -> list[ScrapedSample]:
    found = []
    for broker in cluster.brokers:
        with urlopen(broker.metrics_url, timeout=30) as answer:
            found += samples(answer.read().decode())
    return found


def total(found: list[ScrapedSample], name: str, **labels: str) -> float:
    return sum(one.value for one in found if one.name == name and labels.items() <= one.labels.items())


def test_sums_over_all_brokers_count_everything_once() -> None:
    with Cluster(2, metrics_port=0, metrics_host="127.0.0.1") as cluster:
        cluster.create_topic("orders", PARTITIONS)
        with Producer(cluster.bootstrap_servers) as producer:
            for number in range(PARTITIONS * RECORDS):
                producer.send("orders", "x", partition=number % PARTITIONS)
        with Consumer(cluster.bootstrap_servers, group_id="billing") as consumer:
            consumer.commit({TopicPartition("orders", number): 1 for number in range(PARTITIONS)})
        group = {"consumergroup": "billing", "topic": "orders"}
        assert wait_until(lambda: total(scraped(cluster), "kafka_consumergroup_lag", **group))
        found = scraped(cluster)
        assert total(found, "kafka_brokers") == 2
        assert total(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
        assert total(found, "kafka_topic_partitions", topic="orders") == PARTITIONS
        assert total(found, "kafka_topic_partition_replicas", topic="orders") == PARTITIONS
        assert total(found, "kafka_topic_partition_current_offset", topic="orders") == PARTITIONS * RECORDS
        assert total(found, "kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == PARTITIONS * RECORDS
        leaders = [one for one in found if one.name == "kafka_topic_partition_leader"]
        assert {one.value for one in leaders if one.labels["topic"] == "orders"} == {1, 2}
        # The group has one coordinator, which leads half of the partitions only.
        assert total(found, "kafka_consumergroup_lag", **group) == PARTITIONS * (RECORDS - 1)
        seconds = [one for one in found if one.name == "kafka_consumergroup_lag_seconds"]
        assert len(seconds) == PARTITIONS
        assert all(one.value >= 0 for one in seconds)
