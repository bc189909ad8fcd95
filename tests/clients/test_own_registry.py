"""Serializers of confluent-kafka and ours with our registry, whose schemas are in a topic of our broker."""

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
from moldau.serializers import AvroDeserializer, AvroSerializer, SchemaRegistry
from tests.clients.client import without_ours
from tests.clients.test_schema_registry import RIVER, RIVERS, confluent, ours_read
from tests.environments import python_with
from tests.versions import CONFLUENT_WITH_SCHEMAS

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
