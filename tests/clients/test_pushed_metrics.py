"""Clients of others push their metrics, which come into the topic: Java's and librdkafka, each as it is by default."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import stretched, wait_until
from moldau import Admin, Consumer, TopicPartition
from moldau.cli.client_metrics.otlp import metric_values
from moldau.client.administration.configs import Resource
from moldau.client.consuming.fetched.record import Record
from tests.clients.client import DRIVERS
from tests.clients.test_java_client import QUICK_START
from tests.environments import java_class, kafka_jars, python_with
from tests.versions import CONFLUENT, KAFKA

pytestmark = pytest.mark.check

TOPIC, PRODUCED = "client-metrics", "produced"
SOFTWARE = {"java": "apache-kafka-java", "librdkafka": "confluent-kafka-python"}
"""As each says it of itself."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    ours = Broker(tmp_path_factory.mktemp("broker"), {"client.metrics.topic": TOPIC})
    ours.start()
    with Admin(ours.address) as admin:
        settings = {"metrics": "*", "interval.ms": "500", "match": "client_id=pushing-.*"}
        admin.configs.alter(Resource.CLIENT_METRICS, "all", settings)
    yield ours
    ours.stop()


def command(client: str) -> list[str | Path]:
    if client == "java":
        class_path = java_class(DRIVERS / "Pushing.java", kafka_jars(KAFKA))
        return ["java", *QUICK_START, "-cp", class_path, "Pushing"]
    return [python_with(CONFLUENT), DRIVERS / "pushing.py"]


@pytest.mark.parametrize("client", SOFTWARE)
def test_a_client_pushes_its_metrics_and_once_more_when_it_ends(client: str, broker: Broker) -> None:
    found: list[Record] = []

    def is_pushed(count: int) -> bool:
        found.extend(
            one for one in consumer.poll(100) if dict(one.headers)["client_id"] == f"pushing-{client}".encode()
        )
        return len(found) >= count

    with Admin(broker.address) as admin, Consumer(broker.address) as consumer:
        if TOPIC not in admin.list_topics():
            admin.create_topic(TOPIC, partitions=1)
        consumer.assign([TopicPartition(TOPIC, 0)])
        consumer.seek_to_beginning()
        words = [*command(client), broker.address, PRODUCED]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert wait_until(lambda: is_pushed(3))
                said = process.communicate("", timeout=stretched(60))[0].strip()
            finally:
                process.kill()
        assert process.returncode == 0
        if client == "librdkafka":  # it waits for its last push when it ends
            assert wait_until(lambda: is_pushed(0) and dict(found[-1].headers)["terminating"] == b"true")
    headers = [dict(one.headers) for one in found]
    assert {one["client_software_name"].decode() for one in headers} == {SOFTWARE[client]}
    assert {one["terminating"] for one in headers[:-1]} == {b"false"}
    (key,) = {one.key for one in found}
    assert key == headers[0]["client_instance_id"] and len(key) == 22
    if said:
        assert said.encode() == key, "the client's own name for itself"
    values = {one.name: one for record in found for one in metric_values(record.value or b"")}
    assert "org.apache.kafka.producer.connection.creation.total" in values, sorted(values)
    assert any(one.value for one in values.values())
