"""Settings of an adopted Kafka's brokers and groups, and subscriptions to metrics of clients, come into our metadata;
nothing that is here already is changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import read_image
from moldau.config import BrokerConfig
from moldau.files.kafka_leftovers import Leftover, in_force
from moldau.files.kafka_resources import KafkaResources, resources_of
from moldau.files.metadata_log import ConfigRecord, UserScramCredentialRecord
from moldau.files.resource_registration import register_resources
from moldau.metadata_store.embedded import EmbeddedStore

BROKER, METRICS, GROUP = 4, 16, 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    made = EmbeddedStore(tmp_path)
    made.multi(layout.new_cluster("c"))
    yield made
    made.close()


def found(*settings: tuple[int, str, str, str]) -> KafkaResources:
    records: list[object] = [
        ConfigRecord(resource_type=kind, resource_name=of, name=name, value=value) for kind, of, name, value in settings
    ]
    return resources_of(in_force([*records, UserScramCredentialRecord(name="ann", mechanism=1)]), BrokerConfig())


def image_in(store: EmbeddedStore) -> Image:
    image = store.read(read_image())
    assert image is not None
    return image


def test_what_kafka_had_is_here_afterwards(store: EmbeddedStore) -> None:
    resources = found(
        (METRICS, "basics", "metrics", "org.apache.kafka.producer.,org.apache.kafka.consumer."),
        (METRICS, "basics", "interval.ms", "60000"),
        (METRICS, "basics", "match", "client_software_name=.*java.*"),
        (GROUP, "readers/1", "consumer.session.timeout.ms", "50000"),
        (GROUP, "readers/1", "consumer.heartbeat.interval.ms", "6000"),
        (BROKER, "", "log.retention.ms", "-1"),
    )
    assert len(resources.taken) == 6 and not resources.left
    for _ in range(2):  # the command is given again after it was interrupted
        register_resources(store, resources)
        image = image_in(store)
        assert image.client_metrics["basics"]["interval.ms"] == "60000" and len(image.client_metrics["basics"]) == 3
        own = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "6000"}
        assert image.group_overrides == {"readers/1": own}
        assert image.broker_overrides == {layout.DEFAULT_BROKER: {"log.retention.ms": "-1"}}


def test_what_is_here_already_stays(store: EmbeddedStore) -> None:
    register_resources(
        store,
        found(
            (METRICS, "basics", "metrics", "*"),
            (GROUP, "readers", "consumer.session.timeout.ms", "50000"),
            (BROKER, "", "log.retention.ms", "1000"),
        ),
    )
    register_resources(
        store,
        found(
            (METRICS, "basics", "interval.ms", "60000"),
            (METRICS, "more", "metrics", "*"),
            (GROUP, "readers", "consumer.session.timeout.ms", "55000"),
            (GROUP, "readers", "consumer.heartbeat.interval.ms", "6000"),
            (BROKER, "", "log.retention.ms", "2000"),
            (BROKER, "", "message.max.bytes", "2000000"),
        ),
    )
    image = image_in(store)
    assert image.client_metrics == {"basics": {"metrics": "*"}, "more": {"metrics": "*"}}
    assert image.group_overrides["readers"]["consumer.session.timeout.ms"] == "50000"
    assert image.group_overrides["readers"]["consumer.heartbeat.interval.ms"] == "6000"
    own = {"log.retention.ms": "1000", "message.max.bytes": "2000000"}
    assert image.broker_overrides[layout.DEFAULT_BROKER] == own


def test_what_ours_could_not_have_is_left_behind(store: EmbeddedStore) -> None:
    strange = (
        (METRICS, "java", "metrics", "*"),
        (METRICS, "java", "match", "client_id=(?=a)b"),
        (METRICS, "later", "another", "1"),
        (METRICS, "fast", "interval.ms", "1"),
        (METRICS, "", "metrics", "*"),
        (GROUP, "readers", "share.session.timeout.ms", "45000"),
        (GROUP, "readers", "consumer.session.timeout.ms", "1"),
        (GROUP, "", "consumer.session.timeout.ms", "50000"),
        (BROKER, "", "min.insync.replicas", "2"),
        (BROKER, "", "log.retention.ms", "soon"),
        (BROKER, "", "remote.log.reader.threads", "3"),
        (BROKER, "1", "log.retention.ms", "-1"),
    )
    resources = found(*strange)
    assert len(resources.left) == len(strange) and not resources.taken
    assert Leftover("setting of client metrics", "java: metrics") in resources.left
    register_resources(store, resources)
    image = image_in(store)
    assert not image.client_metrics and not image.group_overrides and not image.broker_overrides
