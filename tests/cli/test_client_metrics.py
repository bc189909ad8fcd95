"""`moldau client-metrics`: subscriptions to metrics of clients are made, told, changed and deleted."""

import json
import uuid
from collections.abc import Iterator

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from harness.brokers import Broker
from moldau import Producer
from tests.cli.conftest import Moldau

pytestmark = pytest.mark.re2


@pytest.fixture
def name(moldau: Moldau) -> Iterator[str]:
    made = f"s-{uuid.uuid4()}"
    yield made
    moldau("client-metrics", "delete", made)


def test_a_subscription_is_made_changed_described_and_deleted(moldau: Moldau, name: str) -> None:
    made = moldau("client-metrics", "alter", name, "--metrics", "org.a.,org.b.", "--interval", "60000")
    assert made.out == f"changed 2 settings of client metrics {name}\n"
    moldau("client-metrics", "alter", name, "--match", "client_id=a.*", "--match", "client_source_port=[0-9]+")
    shown = moldau("client-metrics", "describe", name).out.splitlines()
    assert [line.split() for line in shown] == [
        ["NAME", "VALUE", "SOURCE"],
        ["interval.ms", "60000", "client", "metrics"],
        ["match", "client_id=a.*,client_source_port=[0-9]+", "client", "metrics"],
        ["metrics", "org.a.,org.b.", "client", "metrics"],
    ]
    moldau("client-metrics", "alter", name, "--interval", "default", "--match", "")
    assert moldau("client-metrics", "describe", name, "--json").json == {
        "name": name,
        "interval_ms": 300_000,
        "metrics": ["org.a.", "org.b."],
        "match": [],
    }
    assert name in moldau("client-metrics", "list").out
    assert name in [one["name"] for one in moldau("client-metrics", "list", "--json").json]


def test_what_does_not_exist_is_neither_described_nor_deleted(moldau: Moldau) -> None:
    for command in ("describe", "delete"):
        assert moldau("client-metrics", command, "nobody").error.startswith("there are no client metrics nobody")


def test_a_name_is_generated_on_demand(moldau: Moldau) -> None:
    made = moldau("client-metrics", "alter", "--generate-name", "--metrics", "*", "--json").json
    assert made["changed"] == {"metrics": "*"}
    assert moldau("client-metrics", "delete", made["name"]).out == f"deleted client metrics {made['name']}\n"


def test_what_cannot_be_meant_is_refused_in_a_sentence(moldau: Moldau) -> None:
    alter = "client-metrics", "alter"
    assert "give --metrics, --interval or --match" in moldau(*alter, "s").error
    assert "give a name or --generate-name" in moldau(*alter, "--metrics", "*").error
    assert "interval.ms must be 100 to 3600000" in moldau(*alter, "s", "--interval", "5").error
    assert "the attributes are client_instance_id" in moldau(*alter, "s", "--match", "host=a").error


def payload() -> bytes:
    """A push with a gauge, a sum with attributes, a histogram, and a metric without values."""
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    gauge = metrics.add(name="a.gauge", unit="ms").gauge.data_points.add(as_double=1.5)
    gauge.attributes.add(key="node").value.int_value = 7
    metrics.add(name="a.sum").sum.data_points.add(as_int=3)
    metrics.add(name="a.histogram").histogram.data_points.add(count=4, sum=8.0)
    metrics.add(name="nothing")
    return data.SerializeToString()


def test_what_clients_have_pushed_is_printed_a_line_for_each_value(moldau: Moldau, broker: Broker, topic: str) -> None:
    headers = {"client_id": b"app", "client_software_name": b"test"}
    with Producer(broker.address) as producer:
        for value in (payload(), b"\xff\xff", payload()):
            producer.send(topic, value, headers=headers, timestamp_ms=1_700_000_000_000).result(30)
    ran = moldau("client-metrics", "read", topic, "--from-beginning", "-n", "3")
    lines = [
        "2023-11-14T22:13:20.000Z  app  a.gauge{node=7}  1.5",
        "2023-11-14T22:13:20.000Z  app  a.sum  3",
        "2023-11-14T22:13:20.000Z  app  a.histogram  8.0 of 4",
    ]
    assert ran.lines == lines * 2
    assert ran.err == "warning: what app pushed at 2023-11-14T22:13:20.000Z is left out: it is not OTLP\n"
    ran = moldau("client-metrics", "read", topic, "--from-time", "2023-01-01T00:00:00Z", "-n", "1", "--json")
    assert next(json.loads(line) for line in ran.lines) == {
        "client_id": "app",
        "client_software_name": "test",
        "time": "2023-11-14T22:13:20.000Z",
        "name": "a.gauge",
        "value": 1.5,
        "kind": "gauge",
        "unit": "ms",
        "attributes": {"node": 7},
        "times": None,
    }
