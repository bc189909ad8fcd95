"""The pages about loads into tables (`PAGES`): each of their commands runs, on topics with records such as
the pages mean. Each load has a broker, a registry and a warehouse of its own. `--every` is left out: it has no end."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

import moldau
from moldau.cli import pipeline_load
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import Schema
from moldau.testing import Broker
from moldau.testing.registry import RunningRegistry
from tests.cli.conftest import Moldau
from tests.pages.blocks import blocks_of, words_of
from tests.pages.terminal import shape, steps_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PAGES = (
    "docs/debezium.md",
    "docs/decoding.md",
    "docs/iceberg.md",
    "docs/rejected-records.md",
    "docs/tables-upkeep.md",
    "docs/upsert.md",
    "docs/warehouse.md",
)
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
FIELDS = [("after", ["null", ROW]), ("op", "string"), ("ts_ms", ["null", "long"])]
CHANGE = json.dumps(
    {"type": "record", "name": "Envelope", "fields": [{"name": name, "type": kind} for name, kind in FIELDS]}
)
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; }'
JSON = {"id": 1, "size": 2, "delay": 3, "at": "2026-11-22T19:30:01Z", "op": "c", "ts_ms": 1, "after": {"id": 1}}


def commands() -> Iterator[tuple[str, str, list[str]]]:
    """Page, command and what is printed below it, of all that the pages show without a reason not to run it."""
    for page in PAGES:
        for block in blocks_of(page):
            if block.kind == "console" and not block.reason:
                for step in steps_of(block.code):
                    yield page, step.command, step.printed


LOADS = [(page, command, printed) for page, command, printed in commands() if " load " in command]
OTHERS = {command: printed for _, command, printed in commands() if " load " not in command}


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words else ""


class Filling:
    """Puts records into the topics of a load, in the form that it decodes."""

    def __init__(self, broker: Broker, registry: RunningRegistry):
        self._broker, self._registry = broker, SchemaRegistry(registry.url)

    def fill(self, words: list[str]) -> None:
        names = (option(words, "--topics") or option(words, "--pattern").replace(".*", "a")).split(",")
        for topic in names:
            self._broker.create_topic(topic, 1)
            value = self._value(topic, option(words, "--decode"), "--envelope" in words)
            key = (
                self._framed(topic, "key", "AVRO", '"long"', b"\2") if "--decode-key avro" in " ".join(words) else b"k"
            )
            with moldau.Producer(self._broker.bootstrap_servers) as producer:
                for _ in range(3):
                    producer.send(topic, value, key=key)

    def _value(self, topic: str, decode: str, is_change: bool) -> bytes:
        if decode == "avro" and is_change:
            return self._framed(topic, "value", "AVRO", CHANGE, b"\2\2" + b"\2c" + b"\2\2")
        if decode == "avro":
            return self._framed(topic, "value", "AVRO", ORDER, b"\2")
        if decode == "protobuf":
            return self._framed(topic, "value", "PROTOBUF", PROTO, b"\0\x08\1")
        return json.dumps(JSON).encode()

    def _framed(self, topic: str, part: str, kind: str, schema: str, body: bytes) -> bytes:
        """In Confluent's frame: a zero, the schema's id, what was encoded."""
        number = self._registry.register(f"{topic}-{part}", Schema(schema, kind))
        return b"\0" + number.to_bytes(4, "big") + body


def here(words: list[str], registry: str, folder: Path) -> list[str]:
    """The arguments with the places of this test."""
    if "--every" in words:
        words = words[: words.index("--every")] + words[words.index("--every") + 2 :]
    text = [word.replace("http://localhost:8081", registry).replace("/data/", f"{folder}/") for word in words]
    return [word.replace("WAREHOUSE", str(folder / "warehouse")) for word in text]


@contextmanager
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Broker, RunningRegistry]]:
    with Broker() as broker, RunningRegistry(broker) as registry:
        monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", broker.bootstrap_servers)
        yield broker, registry


@pytest.fixture
def place(tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands, with the files that they name, and the catalog `prod`."""
    monkeypatch.setattr(pipeline_load, "_session", lambda stack, master: lambda: spark)
    monkeypatch.chdir(tmp_path)
    Path("clicks.ddl").write_text("id INT, at STRING")
    Path("mended.ddl").write_text("id STRING")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/prod.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", f"file://{tmp_path}/prod")
    return tmp_path


@pytest.mark.parametrize(("page", "command", "printed"), LOADS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_load_of_the_page_loads(
    page: str, command: str, printed: list[str], place: Path, offline: Moldau, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = words_of(command)[1:]
    with cluster(monkeypatch) as (broker, registry):
        Filling(broker, registry).fill(words)
        done = offline(*here(words, registry.url, place))
    assert done.code == 0, done
    if "--json" in words:
        assert json.loads(done.out)["records"] == json.loads(printed[0]).get("rejected", 0) + 3
    elif "--dry-run" not in words:
        assert re.match(r"loaded [136] records? ", done.out), done


def test_rejected_records_are_decoded_again_and_counted_as_the_page_says(
    place: Path, offline: Moldau, monkeypatch: pytest.MonkeyPatch
) -> None:
    requeue = [(command, printed) for command, printed in OTHERS.items() if " requeue " in command]
    with cluster(monkeypatch) as (broker, _):
        with moldau.Producer(broker.bootstrap_servers) as producer:
            for value in (b'{"size": 1}', b'{"size": 1, "id": 7}', b"no object"):
                producer.send("clicks", value)
        load = ["pipeline", "load", "--topics", "clicks", "--warehouse", "w", "--decode", "json"]
        Path("first.ddl").write_text("size INT NOT NULL")
        assert offline(*load, "--schema", "first.ddl").code == 0
        [sql] = [block.code for block in blocks_of("docs/rejected-records.md") if block.kind == "sql"]
        quarantine = DeltaTable("w/_quarantine/clicks").to_pyarrow_dataset()
        assert duckdb.from_arrow(quarantine).query("quarantine", sql).fetchall()
        for command, printed in requeue:
            done = offline(*words_of(command)[1:])
            assert done.code == 0, (command, done)
            assert {shape(line) for line in printed} <= {shape(line) for line in done.lines}, (command, done)


def test_tables_are_kept_healthy(place: Path, offline: Moldau, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = [command for command in OTHERS if "WAREHOUSE" in command]
    assert len(healthy) >= 4
    Path("delay.ddl").write_text("delay INT")
    load = ["pipeline", "load", "--topics", "flights", "--warehouse", "warehouse", "--decode", "json"]
    with cluster(monkeypatch) as (broker, registry):
        for _ in range(2):
            with moldau.Producer(broker.bootstrap_servers) as producer:
                producer.send("flights", json.dumps(JSON))
            assert offline(*load, "--schema", "delay.ddl").code == 0
        for command in healthy:
            done = offline(*here(words_of(command)[1:], registry.url, place))
            assert done.code == 0, (command, done)


def test_each_command_of_the_pages_is_one_of_these() -> None:
    assert all(" requeue " in command or "WAREHOUSE" in command for command in OTHERS)
