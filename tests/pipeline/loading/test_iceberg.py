"""`pipeline load --format iceberg` from a real broker through Spark, into a catalog in a SQLite file."""

import datetime
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table as PyIcebergTable

from harness.patience import wait_until
from harness.tiers import seed_or
from moldau.cli.main import run
from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading import topic_tables
from moldau.pipeline.loading.load import Loader, load
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.options import TopicSelection
from moldau.pipeline.session import python_path
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]
DAY_MS = 86_400_000
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)


class Died(BaseException):
    """The driver is gone."""


def properties(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/w"}


def warehouse_in(folder: Path) -> IcebergWarehouse:
    return IcebergWarehouse("test", properties(folder), "lake")


def table_in(folder: Path, topic: str, namespace: str = "lake") -> PyIcebergTable:
    return load_catalog("test", **properties(folder)).load_table((namespace, topic))


def rows(table: PyIcebergTable, *columns: str) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow().select(["_partition", "_offset", *columns]).to_pydict()
    return sorted(zip(*found.values(), strict=True), key=lambda row: row[:2])


def numbered(count: int, days: int = 1, first: int = 0) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(None, b"v%d" % n, (n % days) * DAY_MS) for n in range(first, first + count)]


def test_the_second_load_adds_nothing_and_the_third_only_what_is_new(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = new_topic(2)
    produce(topic, numbered(300, days=3), 0)
    produce(topic, numbered(50, days=2), 1)
    first = load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path))
    assert [(one.topic, one.records, one.files) for one in first.commits] == [(topic, 350, 3)]
    assert load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path)).commits == ()
    produce(topic, numbered(20, first=300), 0)
    third = load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path))
    table = table_in(tmp_path, topic)
    assert third.records == 20 and [one.snapshot_id for one in table.snapshots()] == [
        first.commits[0].version, third.commits[0].version,
    ]  # fmt: skip
    assert rows(table, "value") == [(0, n, b"v%d" % n) for n in range(320)] + [(1, n, b"v%d" % n) for n in range(50)]
    assert warehouse_in(tmp_path).rejected(topic) is None, "a load that decodes nothing makes no quarantine"
    second_day = datetime.date(1970, 1, 2)
    assert len(list(table.scan(f"_date = '{second_day}'").plan_files())) == 1, "partitioned by date"
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    lazy = polars.scan_iceberg(table).filter(polars.col("_date") == second_day)
    assert lazy.collect().height == 100 + 25


@pytest.mark.check  # a variant: `make test` has the usual case
def test_one_load_after_another_with_tables_held_open_sees_what_others_committed(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    subscription = TopicSelection(topics=(topic,))
    with Loader(lambda: spark, bootstrap, subscription, warehouse_in(tmp_path)) as loader:
        for turn in range(4):
            produce(topic, numbered(10, first=10 * turn), 0)
            if turn == 2:
                load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path))
            assert loader.run(loader.plan()).records == (0 if turn == 2 else 10)
        assert loader.lag() == {topic: 0}
    assert rows(table_in(tmp_path, topic), "value") == [(0, n, b"v%d" % n) for n in range(40)]


@pytest.mark.check  # a variant: `make test` has the usual case
def test_by_the_hour_and_with_headers_and_keys(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = new_topic()
    produce(topic, [(b"k", b"v", 7 * 3_600_000 + 1), (None, None, DAY_MS)], 0)
    load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path), Settings(partition_by="hour", compression="zstd"))
    found = rows(table_in(tmp_path, topic), "_key", "value", "_date", "_hour")
    dates = datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)
    assert found == [(0, 0, b"k", b"v", dates[0], 7), (0, 1, None, None, dates[1], 0)]
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    lazy = polars.scan_iceberg(table_in(tmp_path, topic)).select("_headers")
    assert lazy.collect()["_headers"].to_list() == [None, None], "pyiceberg itself reads null lists as empty ones"


@pytest.mark.check  # a variant: `make test` has the usual case
def test_a_driver_that_dies_between_files_and_commit_leaves_each_record_once_after_the_next_load(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = new_topic()
    produce(topic, numbered(30), 0)

    def die(*_: Any) -> int:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(topic_tables, "commit", die)
        with pytest.raises(Died):
            load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path))
    assert len(list(tmp_path.glob("w/lake/*/data/*/*.parquet"))) == 1 and rows(table_in(tmp_path, topic)) == []
    assert load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path)).records == 30
    assert rows(table_in(tmp_path, topic), "value") == [(0, n, b"v%d" % n) for n in range(30)]


def test_of_two_loads_at_once_one_commits_and_the_other_says_so(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(10), 0)

    def after_another_load() -> "SparkSession":
        load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path))
        return spark

    with pytest.raises(Conflict, match="Another load has committed to"):
        load(after_another_load, bootstrap, [topic], warehouse_in(tmp_path))
    assert len(rows(table_in(tmp_path, topic))) == 10


def test_decoded_columns_evolve_and_bad_records_go_to_quarantine_once(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic, settings = new_topic(), Settings(decoding=Decoding("json", event_time="at"))
    at = "2024-02-29T12:00:00Z"

    def send(*values: Any) -> None:
        encoded = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in values]
        produce(topic, [(None, one, 1_000) for one in encoded], 0)

    send({"id": 1, "at": at, "geo": {"x": 1}}, b"{", {"id": 2, "at": "soon"})
    real, made = topic_tables.commit, []

    def die_at_the_second(*arguments: Any) -> int:
        if made:
            raise Died
        made.append(real(*arguments))
        return made[0]

    with monkeypatch.context() as patch:
        patch.setattr(topic_tables, "commit", die_at_the_second)
        with pytest.raises(Died):
            load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path), settings)
    first = load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path), settings)
    assert (first.records, first.rejected) == (1, 0), "the rejected ones were committed by the load that died"
    send({"id": 4, "at": at, "tags": ["x"], "geo": {"x": 2, "y": 3}}, {"id": 5.5, "at": at})
    second = load(lambda: spark, bootstrap, [topic], warehouse_in(tmp_path), settings)
    assert (second.records, second.rejected) == (1, 1)
    day = NOON.date()
    assert rows(table_in(tmp_path, topic), "id", "at", "tags", "geo", "_date") == [
        (0, 0, 1, NOON, None, {"x": 1, "y": None}, day),
        (0, 3, 4, NOON, ["x"], {"x": 2, "y": 3}, day),
    ]
    rejected = rows(table_in(tmp_path, topic, "lake_quarantine"), "value", "reason")
    assert [row[1] for row in rejected] == [1, 2, 4] and rejected[0][2] == b"{" and "is not JSON" in rejected[0][3]
    assert warehouse_in(tmp_path).table(topic).offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 5}  # type: ignore[union-attr]


def command(moldau: list[str], bootstrap: str, topic: str, folder: Path) -> "subprocess.Popen[str]":
    """`moldau pipeline load` with a catalog from a file of pyiceberg, in a process group of its own."""
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n  prod:\n    uri: sqlite:///{folder}/catalog.db\n")
    arguments = [
        "pipeline", "load", "--topics", topic, "--format", "iceberg", "--catalog", "prod", "--catalog-property",
        f"warehouse=file://{folder}/w", "--namespace", "lake", "--master", "local[2]", "--json", "-b", bootstrap,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": python_path(), "PYICEBERG_HOME": str(folder)}
    return subprocess.Popen(
        [*moldau, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=environment,
    )  # fmt: skip


@pytest.mark.check
@pytest.mark.own_jvm("the driver is killed")
@pytest.mark.timeout(240)
def test_a_load_killed_half_way_and_run_again_has_each_record_once(
    spark: "SparkSession",
    bootstrap: str,
    new_topic: NewTopic,
    produce: Produce,
    tmp_path: Path,
    moldau_command: list[str],
) -> None:
    topic = new_topic(2)
    for partition in range(2):
        produce(topic, numbered(50_000, days=20), partition)
    killed = command(moldau_command, bootstrap, topic, tmp_path)
    assert wait_until(lambda: list(tmp_path.glob("w/lake/*/data/*/*.parquet")) or killed.poll(), 100, 0.002)
    time.sleep(random.Random(seed_or(1)).random() * 0.5)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    again = load(lambda: spark, bootstrap, [topic], IcebergWarehouse("prod", properties(tmp_path), "lake"))
    assert again.records in (100_000, 0), "all that the killed load had not committed"
    table = load_catalog("prod", **properties(tmp_path)).load_table(("lake", topic))
    found = table.scan(selected_fields=("_partition", "_offset")).to_arrow().to_pydict()
    places = sorted(zip(found["_partition"], found["_offset"], strict=True))
    assert places == [(partition, offset) for partition in range(2) for offset in range(50_000)]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["--format", "iceberg"], "--format iceberg needs --catalog: one of ~/.pyiceberg.yaml"),
        (["--format", "iceberg", "--catalog", "c", "--storage-option", "a=b"], "--storage-option is for Delta tables"),
        (["--format", "iceberg", "--catalog", "c", "--compact-after", "9"], "--compact-after is for Delta tables"),
        (["--format", "iceberg", "--catalog", "c", "--catalog-property", "uri"], "is not of the form NAME=VALUE"),
        (["--format", "iceberg", "--catalog", "c", "--namespace", ""], "--namespace is empty"),
        (["--format", "iceberg", "--catalog", "c", "--catalog-property", "type=no"], "The Iceberg catalog c cannot be"),
        (["--format", "hudi"], "--format 'hudi' is none of delta, iceberg"),
        (["--catalog", "c"], "--catalog needs --format iceberg"),
        ([], "--warehouse is missing"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(
    bootstrap: str, wrong: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pipeline", "load", "--topics", "t", "-b", bootstrap, *wrong]) != 0
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
