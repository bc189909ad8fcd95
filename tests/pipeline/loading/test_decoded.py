"""Decoded loads from a real broker through Spark: columns, evolution, event time, quarantine, the command."""

import datetime
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from harness.patience import stretched
from harness.small_registry import SmallRegistry
from moldau.cli import pipeline_load
from moldau.cli.main import run
from moldau.client.producing.producer import Producer
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.protobuf import ProtobufSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.load import load
from moldau.pipeline.loading.settings import Loaded, Settings
from moldau.pipeline.tables.columns import REJECTED
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)


def load_decoded(spark: "SparkSession", bootstrap: str, topic: str, warehouse: Warehouse, decoding: Decoding) -> Loaded:
    return load(lambda: spark, bootstrap, [topic], warehouse, Settings(decoding=decoding))


def rows(table: Table | None, *columns: str) -> list[tuple[Any, ...]]:
    assert table is not None
    found = table.dataset().to_table(columns=["_offset", *columns]).to_pydict()
    return sorted(zip(*found.values(), strict=True), key=lambda row: row[0])


def objects(*values: Any) -> list[tuple[None, bytes | None, int]]:
    return [(None, one if one is None or isinstance(one, bytes) else json.dumps(one).encode(), 1_000) for one in values]


def test_columns_are_inferred_and_evolve_and_bad_records_go_to_quarantine(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse, json_values = new_topic(), Warehouse(tmp_path), Decoding("json", event_time="at")
    at = "2024-02-29T12:00:00Z"
    produce(topic, objects({"id": 1, "at": at, "geo": {"x": 1}}, b"{", {"id": 2, "at": "soon"}, {"_key": 3, "at": at}))
    first = load_decoded(spark, bootstrap, topic, warehouse, json_values)
    assert (first.records, first.rejected) == (2, 2)
    table = warehouse.table(topic)
    assert rows(table, "id", "at", "_key_", "_date") == [(0, 1, NOON, None, DAY), (3, None, NOON, 3, DAY)]
    produce(topic, objects({"id": 4, "at": at, "tags": ["x"], "geo": {"x": 2, "y": 3}}, {"id": 5.5, "at": at}, None))
    second = load_decoded(spark, bootstrap, topic, warehouse, json_values)
    assert (second.records, second.rejected) == (2, 1)
    assert table is not None
    table.refresh()
    assert rows(table, "id", "tags", "_more")[2:] == [(4, 4, ["x"], None), (6, None, None, None)]
    assert rows(table, "geo")[:3] == [(0, {"x": 1, "y": None}), (3, None), (4, {"x": 2, "y": 3})]
    rejected = rows(Table.open(warehouse.place_of_rejected(topic)), "value", "reason")
    offsets, values, reasons = zip(*rejected, strict=True)
    assert offsets == (1, 2, 5) and values[:2] == (b"{", b'{"id": 2, "at": "soon"}')
    assert "is not JSON" in reasons[0] and "event time at" in reasons[1] and "not a whole number" in reasons[2]
    assert load_decoded(spark, bootstrap, topic, warehouse, json_values).commits == ()


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SmallRegistry() as small:
        yield SchemaRegistry(small.url)


def test_avro_is_decoded_by_the_schemas_of_a_registry(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, registry: SchemaRegistry, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "long"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]  # fmt: skip
    wider = [*fields, {"name": "river", "type": ["null", "string"], "default": None}]
    for number, columns in enumerate((fields, wider)):
        schema = {"type": "record", "name": "Level", "fields": columns}
        with Producer(bootstrap, value_serializer=AvroSerializer(registry, schema)) as producer:
            producer.send(topic, {"id": number, "at": NOON, "river": "Otava"})
        with Producer(bootstrap) as producer:
            producer.send(topic, b"no Avro")
        load_decoded(spark, bootstrap, topic, warehouse, Decoding("avro", "", registry, "at"))
    assert rows(warehouse.table(topic), "id", "at", "_date", "river") == [
        (0, 0, NOON, DAY, None),
        (2, 1, NOON, DAY, "Otava"),
    ]
    assert [row[0] for row in rows(Table.open(warehouse.place_of_rejected(topic)))] == [1, 3]


@pytest.mark.check
def test_protobuf_is_decoded_by_the_schemas_of_a_registry(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, registry: SchemaRegistry, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    text = """syntax = "proto3"; package cz; import "google/protobuf/timestamp.proto"; message Other { bool a = 1; }
    message Level { int64 id = 1; google.protobuf.Timestamp at = 2; repeated string towns = 3; }"""
    with Producer(bootstrap, value_serializer=ProtobufSerializer(registry, text, message="cz.Level")) as producer:
        producer.send(topic, {"id": 7, "at": NOON, "towns": ["Písek"]})
    with Producer(bootstrap, value_serializer=ProtobufSerializer(registry, text)) as producer:
        producer.send(topic, {"a": True})
    load_decoded(spark, bootstrap, topic, warehouse, Decoding("protobuf", "", registry, "at", message="cz.Level"))
    assert rows(warehouse.table(topic), "id", "at", "_date", "towns") == [(0, 7, NOON, DAY, ["Písek"])]
    assert [row[0] for row in rows(Table.open(warehouse.place_of_rejected(topic)))] == [1]


@pytest.mark.check
@pytest.mark.own_jvm("it stands for all commands that start Spark")
def test_the_command_takes_the_schema_from_a_file_and_counts_what_it_rejected(
    bootstrap: str, new_topic: NewTopic, produce: Produce, moldau_command: list[str], tmp_path: Path
) -> None:
    topic, ddl = new_topic(), tmp_path / "level.ddl"
    ddl.write_text("river STRING, cm INT")
    produce(topic, objects({"river": "Labe", "cm": 132, "more": 1}, {"cm": "x"}))
    command = [*moldau_command, "pipeline", "load", "--topics", topic, "--warehouse", tmp_path / "w", "-b", bootstrap]
    decode = ["--decode", "json", "--schema", ddl, "--master", "local[1]"]
    done = subprocess.run([*command, *decode], capture_output=True, text=True, timeout=stretched(100))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("loaded 1 record ")
    place = f"{tmp_path / 'w'}/_quarantine"
    said = f"1 record could not be decoded: {place} has the reasons, `moldau pipeline rejected` shows them\n"
    assert done.stdout.endswith(said)
    assert rows(Warehouse(tmp_path / "w").table(topic), "river", "cm") == [(0, "Labe", 132)]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["--decode", "avro"], "--decode avro needs --schema-registry"),
        (["--decode", "protobuf:cz.Level"], "--decode protobuf needs --schema-registry"),
        (["--decode", "protobuf:"], "protobuf: lacks the message behind the colon"),
        (["--decode", "json", "--schema", "nowhere"], "--schema nowhere cannot be read: No such file or directory\n"),
        (["--event-time", "at"], "--event-time names a field of decoded values"),
        (["--decode", "json", "--schema-registry", "x"], "is not an address such as http://localhost:8081"),
        (["--decode", "yaml"], "--decode 'yaml' is none of none, text, json, avro, protobuf"),
        (["--on-reject", "drop"], "--on-reject 'drop' is none of quarantine, fail"),
        (["--on-reject", "fail", "--max-rejected", "3"], "--on-reject fail allows no rejected record"),
        (["--decode", "json", "--type-share", "0.2"], "--type-share 0.2 is not above 0.5 and at most 1"),
        (["--type-share", "0.9"], "--type-share is for columns that are inferred"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(
    bootstrap: str, wrong: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pipeline", "load", "--topics", "t", "--warehouse", str(tmp_path), "-b", bootstrap, *wrong]) != 0
    assert sentence in capsys.readouterr().err


def test_nothing_new_and_no_table_is_no_error(bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> None:
    def no_spark() -> "SparkSession":
        raise AssertionError("nothing is to be loaded")

    settings = Settings(decoding=Decoding("json"))
    assert load(no_spark, bootstrap, [new_topic()], Warehouse(tmp_path), settings).commits == ()


def test_a_limit_of_rejected_records_commits_nothing_and_names_the_first(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(pipeline_load, "_session", lambda stack, master: lambda: spark)
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, objects({"id": 1}, b"{", {"id": "x"}, {"id": 2}))
    (tmp_path / "ddl").write_text("id INT")
    command = ["pipeline", "load", "--topics", topic, "--warehouse", str(tmp_path), "-b", bootstrap]
    command += ["--decode", "json", "--schema", str(tmp_path / "ddl")]
    for options, allowed in [(["--on-reject", "fail"], "records"), (["--max-rejected", "1"], "more than 1 record")]:
        assert run([*command, *options]) == 1
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1
        assert (
            f"The load has rejected {allowed} and nothing was committed; the first are: {topic} partition 0" in said.err
        )
        assert f'{topic} partition 0 offset 2: field id is the text "x", not a whole number' in said.err
        table = warehouse.table(topic)
        assert table is not None and rows(table) == [] and warehouse.rejected(topic) is None
        assert table.offsets([TopicPartition(topic, 0)]) == {}
    assert run([*command, "--max-rejected", "2"]) == 0
    said = capsys.readouterr()
    assert f"{topic}: 2 records rejected, the first is partition 0 offset 1: the value is not JSON" in said.err
    assert rows(warehouse.table(topic), "id") == [(0, 1), (3, 2)]
    found = rows(warehouse.rejected(topic), "rule", "field")
    assert found == [(1, "not_json", None), (2, "wrong_type", "id")]


def test_a_quarantine_of_an_earlier_version_gets_the_new_columns(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse, decoding = new_topic(), Warehouse(tmp_path), Decoding("json", "id INT")
    earlier = pa.schema([field for field in REJECTED if field.name not in ("rule", "field")])
    Table.create(warehouse.place_of_rejected(topic), earlier, [])
    for value in (b"{", b"["):
        produce(topic, objects(value))
        assert load_decoded(spark, bootstrap, topic, warehouse, decoding).rejected == 1
    assert rows(warehouse.rejected(topic), "rule") == [(0, "not_json"), (1, "not_json")]
