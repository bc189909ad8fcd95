"""Serializers of confluent-kafka, KafkaJS and ours with our registry, whose schemas are in a topic of our broker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from moldau import Producer
from moldau.serializers import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufSerializer,
    SchemaRegistry,
)
from tests.clients.client import without_ours
from tests.clients.test_schema_registry import RIVER, RIVERS, confluent, ours_read
from tests.environments import node_with, python_with
from tests.versions import CONFLUENT_WITH_SCHEMAS, KAFKAJS, KAFKAJS_REGISTRY

pytestmark = pytest.mark.check

CALLS = Path(__file__).parent / "registry" / "confluent_calls.py"
KINDS = CALLS.with_name("confluent_kinds.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a broker and of our registry, each a process of its own."""
    broker = Broker(tmp_path_factory.mktemp("registry"), {"num.partitions": "1"})
    broker.start()
    command = [sys.executable, "-m", "moldau", "registry", "start", "-b", broker.address, "--port", "0"]
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on http://"), line
        yield broker.address, line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        assert process.wait(stretched(30)) == 0
        assert process.stdout is not None
        process.stdout.close()
        broker.stop()


def test_confluents_client_reads_what_ours_writes(server: tuple[str, str], topic: str) -> None:
    registry = SchemaRegistry(server[1])
    with Producer(server[0], value_serializer=AvroSerializer(registry, RIVER)) as producer:
        for river in RIVERS:
            producer.send(topic, river)
    assert registry.versions(f"{topic}-value") == [1]
    assert confluent("read", "avro", server, topic, [len(RIVERS)]) == RIVERS


def test_ours_reads_what_confluents_client_writes(server: tuple[str, str], topic: str) -> None:
    confluent("write", "avro", server, topic, [RIVER, *RIVERS])
    assert ours_read(server[0], topic, AvroDeserializer(SchemaRegistry(server[1]))) == RIVERS


def test_every_call_of_confluents_registry_client(server: tuple[str, str], topic: str) -> None:
    done = subprocess.run(
        [python_with(CONFLUENT_WITH_SCHEMAS), CALLS, server[1], topic],
        capture_output=True,
        text=True,
        timeout=stretched(100),
        env=without_ours(os.environ),
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    answers: dict[str, Any] = json.loads(done.stdout)
    assert answers == {
        "registered": [answers["registered"][0], 1], "again": answers["registered"][0], "looked_up": 1,
        "incompatible": 40901, "compatible": True, "latest": 2, "versions": [1, 2], "unknown": 40401,
        "level": "NONE", "mode": "READWRITE", "subjects": True, "of_id": [[topic, 1]],
        "deleted": 2, "deleted_subject": [1], "gone": [1], "guid": True, "types": True,
    }  # fmt: skip


def test_confluents_serializers_of_all_kinds_with_references(server: tuple[str, str]) -> None:
    done = subprocess.run(
        [python_with(CONFLUENT_WITH_SCHEMAS), KINDS, server[1], "kinds"],
        capture_output=True,
        text=True,
        timeout=stretched(100),
        env=without_ours(os.environ),
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert json.loads(done.stdout) == {
        "protobuf": True, "protobuf_references": ["river_kinds.proto"], "json": {"level": {"cm": 61}},
        "json_refused": True, "avro_latest": {"river": {"name": "Metuje"}},
    }  # fmt: skip


def test_kafkajs_registry_client_and_ours_read_each_others_bytes(server: tuple[str, str]) -> None:
    registry, value = SchemaRegistry(server[1]), {"name": "Sázava", "cm": 61}
    avro = {
        "type": "record", "name": "Level", "namespace": "cz",
        "fields": [{"name": "name", "type": "string"}, {"name": "cm", "type": "int"}],
    }  # fmt: skip
    of_json = {
        "$schema": "http://json-schema.org/draft-07/schema#", "title": "Level", "type": "object",
        "properties": {"name": {"type": "string"}, "cm": {"type": "integer"}}, "additionalProperties": False,
    }  # fmt: skip
    proto = 'syntax = "proto3"; package cz; message Level { string name = 1; int32 cm = 2; }'
    ours = {
        "AVRO": AvroSerializer(registry, avro), "JSON": JsonSchemaSerializer(registry, of_json),
        "PROTOBUF": ProtobufSerializer(registry, proto),
    }  # fmt: skip
    given = {
        "schemas": {"AVRO": json.dumps(avro), "JSON": json.dumps(of_json), "PROTOBUF": proto}, "value": value,
        "bytes": {kind: (serializer(value, f"ours-{kind}") or b"").hex() for kind, serializer in ours.items()},
        "incompatible": json.dumps({**avro, "fields": [*avro["fields"], {"name": "to", "type": "int"}]}),
    }  # fmt: skip
    node, modules = node_with(KAFKAJS, KAFKAJS_REGISTRY)
    done = subprocess.run(
        [node, CALLS.with_name("kafkajs.mjs"), server[1], "js"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=stretched(100),
        env={**without_ours(os.environ), "NODE_PATH": str(modules)},
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    answers = json.loads(done.stdout)
    for kind in ours:
        assert (answers[kind]["theirs"], answers[kind]["ids"]) == (value, 1), kind
    data = {kind: bytes.fromhex(answers[kind]["bytes"]) for kind in ours}
    assert AvroDeserializer(registry)(data["AVRO"]) == JsonSchemaDeserializer(registry)(data["JSON"]) == value
    # KafkaJS writes Protobuf without message indexes, which no other client reads; it reads those of others.
    written = bytes.fromhex(given["bytes"]["PROTOBUF"])
    assert data["PROTOBUF"][5:] == written[6:] and written[5:6] == b"\0"
    assert [answers[name][0] for name in ("incompatible", "unknown", "unknownId")] == [409, 404, 404]
