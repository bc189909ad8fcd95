"""`moldau consume --schema-registry`: what serializers of a registry have written, as JSON."""

import json
import math
from collections.abc import Iterator

import pytest

from harness.brokers import Broker
from moldau.client.producing.producer import Producer
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.framing import framed
from moldau.client.registry.protobuf import ProtobufSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.testing import Broker as InProcess
from moldau.testing import RunningRegistry
from tests.cli.conftest import Moldau

ORDER = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, {"name": "raw", "type": "bytes"}]}'
)
RIVER = 'syntax = "proto3"; message River { string name = 1; }'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with InProcess() as broker, RunningRegistry(broker) as registry:
        yield registry.url


def test_each_kind_is_decoded_and_the_rest_stays(moldau: Moldau, broker: Broker, topic: str, url: str) -> None:
    moldau("topics", "create", topic)
    registry = SchemaRegistry(url)
    avro, proto = AvroSerializer(registry, ORDER), ProtobufSerializer(registry, RIVER, subject_name_strategy="record")
    with Producer(broker.address) as producer:
        producer.send(topic, avro({"id": 7, "raw": b"\xff"}, topic=topic), b"key").result()
        producer.send(topic, proto({"name": "Rhine"}, topic=topic)).result()
        producer.send(topic, b"plain").result()
        producer.send(topic, framed(1, b"")).result()
    ran = moldau("consume", topic, "--from-beginning", "-n", "4", "--schema-registry", url, "--json")
    order, river, plain, broken = map(json.loads, ran.lines)
    assert (order["key"], order["value"], order["value_schema_id"]) == ("key", {"id": 7, "raw": "/w=="}, 1)
    assert (river["value"], river["value_schema_id"]) == ({"name": "Rhine"}, 2)
    assert plain["value"] == "plain" and "value_schema_id" not in plain
    assert broken["value"] == "\0\0\0\0\x01"
    assert "do not fit schema id 1: they end too early; such data is printed as it is" in ran.err
    text = moldau("consume", topic, "--from-beginning", "-n", "2", "--schema-registry", url)
    assert text.lines == ['{"id": 7, "raw": "/w=="}', '{"name": "Rhine"}']


def test_numbers_that_look_as_if_they_named_a_schema_end_nothing(
    moldau: Moldau, broker: Broker, topic: str, url: str
) -> None:
    """akhq 842: keys of Java's LongSerializer begin with the byte 0, as what a registry's serializer writes does."""
    moldau("topics", "create", topic)
    avro = AvroSerializer(SchemaRegistry(url), ORDER)
    keys = [(7).to_bytes(8, "big"), (1 << 24 | 7).to_bytes(8, "big")]
    with Producer(broker.address) as producer:
        for key in keys:
            producer.send(topic, avro({"id": 7, "raw": b""}, topic=topic), key).result()
    asked = ["consume", topic, "--from-beginning", "-n", "2", "--schema-registry", url, "--json"]
    ran = moldau(*asked)
    assert [json.loads(line)["value"]["id"] for line in ran.lines] == [7, 7]
    assert "schema id 0 is not in the schema registry" in ran.err
    assert ran.err.count("such data is printed as it is") == 2
    ran = moldau(*asked, "--key-type", "long")
    assert [json.loads(line)["key"] for line in ran.lines] == [7, 1 << 24 | 7] and not ran.err
    assert [json.loads(line)["value"]["id"] for line in ran.lines] == [7, 7]


def test_numbers_that_json_does_not_have_are_texts(moldau: Moldau, broker: Broker, topic: str, url: str) -> None:
    moldau("topics", "create", topic)
    schema = {"type": "array", "items": ["double", {"type": "map", "values": "float"}]}
    avro = AvroSerializer(SchemaRegistry(url), schema)
    with Producer(broker.address) as producer:
        producer.send(topic, avro([1.5, math.nan, {"x": -math.inf}, math.inf], topic=topic)).result()
    ran = moldau("consume", topic, "--from-beginning", "-n", "1", "--schema-registry", url)
    assert ran.lines == ['[1.5, "NaN", {"x": "-Infinity"}, "Infinity"]']


def test_a_registry_that_is_not_there_ends_the_command(moldau: Moldau, broker: Broker, topic: str) -> None:
    moldau("topics", "create", topic)
    with Producer(broker.address) as producer:
        producer.send(topic, framed(1, b"x")).result()
    nowhere = "http://127.0.0.1:1"
    ran = moldau("consume", topic, "--from-beginning", "-n", "1", "--schema-registry", nowhere)
    assert "127.0.0.1:1" in ran.error
