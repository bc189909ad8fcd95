"""Our serializers with a real registry, Apicurio, which keeps its schemas in topics of our broker, and those of
confluent-kafka at the other end.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import apicurio
from harness.brokers import Broker
from harness.patience import stretched
from moldau import Consumer, Producer, TopicPartition
from moldau.serializers import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    Reference,
    Schema,
    SchemaIncompatible,
    SchemaInvalid,
    SchemaNotFound,
    SchemaRegistry,
)
from tests.clients.client import without_ours
from tests.environments import python_with
from tests.versions import CONFLUENT_WITH_SCHEMAS

pytestmark = pytest.mark.check

PROGRAM = Path(__file__).parent / "registry" / "confluent.py"

RIVER: dict[str, Any] = {
    "type": "record", "name": "River", "namespace": "cz",
    "fields": [{"name": "name", "type": "string"}, {"name": "km", "type": ["null", "double"], "default": None}],
}  # fmt: skip
JSON_RIVER = {
    "$schema": "http://json-schema.org/draft-07/schema#", "title": "River", "type": "object",
    "properties": {"name": {"type": "string"}, "km": {"type": ["number", "null"]}}, "required": ["name"],
}  # fmt: skip
RIVERS = [{"name": "Vltava", "km": 430.2}, {"name": "Úpa", "km": None}, {"name": "", "km": 0.0}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a broker and of the registry that keeps its schemas there."""
    folder = tmp_path_factory.mktemp("registry")
    broker = Broker(folder, {"num.partitions": "1"})
    broker.start()
    try:
        with apicurio.running(folder, broker.address) as (url, _):
            yield broker.address, url
    finally:
        broker.stop()


@pytest.fixture
def registry(server: tuple[str, str]) -> SchemaRegistry:
    return SchemaRegistry(server[1])


def confluent(verb: str, kind: str, server: tuple[str, str], topic: str, lines: list[Any]) -> list[Any]:
    done = subprocess.run(
        [python_with(CONFLUENT_WITH_SCHEMAS), PROGRAM, verb, kind, *server, topic],
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
        timeout=stretched(100),
        env=without_ours(os.environ),
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours_read(address: str, topic: str, deserializer: Any) -> list[Any]:
    with Consumer(address, auto_offset_reset="earliest", value_deserializer=deserializer) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[Any] = []
        while len(found) < len(RIVERS):
            found += [record.value for record in consumer.poll()]
        return found


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_confluents_client_reads_what_ours_writes(
    server: tuple[str, str], registry: SchemaRegistry, topic: str, kind: str
) -> None:
    made = AvroSerializer(registry, RIVER) if kind == "avro" else JsonSchemaSerializer(registry, JSON_RIVER)
    with Producer(server[0], value_serializer=made) as producer:
        for river in RIVERS[:2]:
            producer.send(topic, river)
        producer.send_many(topic, RIVERS[2:])
    assert registry.versions(f"{topic}-value") == [1]
    try:
        read = confluent("read", kind, server, topic, [len(RIVERS)])
    except subprocess.TimeoutExpired:  # Apicurio leaves a request unanswered now and then, also on an idle machine
        read = confluent("read", kind, server, topic, [len(RIVERS)])
    assert read == RIVERS


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_ours_reads_what_confluents_client_writes(
    server: tuple[str, str], registry: SchemaRegistry, topic: str, kind: str
) -> None:
    confluent("write", kind, server, topic, [RIVER if kind == "avro" else JSON_RIVER, *RIVERS])
    made: Any = AvroDeserializer(registry) if kind == "avro" else JsonSchemaDeserializer(registry)
    assert ours_read(server[0], topic, made) == RIVERS


def test_a_schema_that_would_break_readers_is_refused_by_the_registry(registry: SchemaRegistry, topic: str) -> None:
    first = Schema(json.dumps(RIVER))
    number = registry.register(f"{topic}-value", first)
    assert SchemaRegistry(registry._addresses.urls).register(f"{topic}-value", first) == number
    registry.set_compatibility("BACKWARD", f"{topic}-value")
    assert registry.compatibility(f"{topic}-value") == "BACKWARD"
    wrong = Schema(json.dumps({**RIVER, "fields": [*RIVER["fields"], {"name": "depth", "type": "int"}]}))
    assert registry.incompatibilities(f"{topic}-value", wrong)
    assert registry.incompatibilities(f"{topic}-value", first) == []
    with pytest.raises(SchemaIncompatible):
        registry.register(f"{topic}-value", wrong)
    with pytest.raises(SchemaInvalid):
        registry.register(f"{topic}-value", Schema("{"))
    with pytest.raises(SchemaNotFound):
        registry.schema(999_999)
    with pytest.raises(SchemaNotFound):
        registry.version("nowhere")


def test_references_are_resolved_by_both(server: tuple[str, str], registry: SchemaRegistry, topic: str) -> None:
    registry.register(f"{topic}-river", Schema(json.dumps(RIVER)))
    gauge = {"type": "record", "name": "cz.Gauge", "fields": [{"name": "river", "type": "cz.River"}]}
    schema = Schema(json.dumps(gauge), references=(Reference("cz.River", f"{topic}-river", 1),))
    with Producer(server[0], value_serializer=AvroSerializer(registry, schema)) as producer:
        for river in RIVERS:
            producer.send(topic, {"river": river})
    assert ours_read(server[0], topic, AvroDeserializer(registry)) == [{"river": river} for river in RIVERS]
    assert confluent("read", "avro", server, topic, [len(RIVERS)]) == [{"river": river} for river in RIVERS]
