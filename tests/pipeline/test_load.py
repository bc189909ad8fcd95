"""`pipeline load` from a real broker through Spark: exactly once, whatever happens on the way."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.dataset as dataset
import pytest

from harness.patience import Deadline, stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline import load as loading
from moldau.pipeline.load import LoadFailed, load
from moldau.pipeline.manifest import WarehouseError
from moldau.pipeline.positions import DataLost
from moldau.pipeline.session import python_path
from moldau.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]
DAY_MS = 86_400_000


def numbered(first: int, count: int, days: int = 1) -> list[tuple[bytes | None, bytes | None, int]]:
    """Records of `days` different dates in turns."""
    return [(b"k%d" % n, b"v%d" % n, (n % days) * DAY_MS + n) for n in range(first, first + count)]


def through_manifests(warehouse: Warehouse) -> list[tuple[str, int, int, bytes]]:
    table = dataset.dataset(warehouse.paths(), format="parquet", partitioning="hive").to_table()
    return rows(table)


def through_folders(warehouse: Warehouse) -> list[tuple[str, int, int, bytes]]:
    """What somebody sees who knows nothing of manifests and reads the folder."""
    return rows(dataset.dataset(warehouse.folder, format="parquet", partitioning="hive").to_table())


def rows(table: Any) -> list[tuple[str, int, int, bytes]]:
    topics = table["topic"].cast(pyarrow.string()).to_pylist()
    columns = [table[name].to_pylist() for name in ("partition", "offset", "value")]
    return sorted(zip(topics, *columns, strict=True))


def expected(topic: str, partition: int, first: int, count: int) -> list[tuple[str, int, int, bytes]]:
    return [(topic, partition, at, b"v%d" % (first + at)) for at in range(count)]


def test_the_second_load_adds_nothing_and_the_third_only_what_is_new(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, other, warehouse = new_topic(2), new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 300, days=3), 0)
    produce(topic, numbered(1000, 50, days=2), 1, compression_type="zstd")
    first = load(lambda: spark, bootstrap, [topic, other], warehouse)
    assert first.records == 350 and first.manifest is not None and first.manifest.number == 1
    assert load(lambda: spark, bootstrap, [topic, other], warehouse).manifest is None
    with Admin(bootstrap) as admin:
        admin.create_partitions(topic, 3)
    produce(topic, numbered(300, 20), 0)
    produce(topic, numbered(2000, 5), 2)
    third = load(lambda: spark, bootstrap, [topic, other], warehouse)
    assert third.records == 25
    everything = expected(topic, 0, 0, 320) + expected(topic, 1, 1000, 50) + expected(topic, 2, 2000, 5)
    assert through_manifests(warehouse) == through_folders(warehouse) == everything
    assert warehouse.offsets() == {
        TopicPartition(topic, 0): 320,
        TopicPartition(topic, 1): 50,
        TopicPartition(topic, 2): 5,
    }


def test_a_load_ends_where_a_transaction_is_open_and_leaves_out_aborted_ones(
    spark: "SparkSession", bootstrap: str, half_open: tuple[str, Any], tmp_path: Path
) -> None:
    topic, transaction = half_open
    committed, everything = Warehouse(tmp_path / "committed"), Warehouse(tmp_path / "everything")
    assert load(lambda: spark, bootstrap, [topic], committed).records == 10
    assert committed.offsets() == {TopicPartition(topic, 0): 14}
    assert load(lambda: spark, bootstrap, [topic], everything, isolation_level="read_uncommitted").records == 14
    assert load(lambda: spark, bootstrap, [topic], everything).manifest is None, "it was loaded up to the open one"
    transaction.end(commits=False)
    assert wait_until(lambda: load(lambda: spark, bootstrap, [topic], committed).manifest is not None)
    assert [row[3] for row in through_manifests(committed)] == [b"v%d" % n for n in range(10)]
    assert committed.offsets() == {TopicPartition(topic, 0): 16}


def test_files_lie_by_topic_and_event_date_and_spark_reads_them_without_us(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 30, days=3))
    load(lambda: spark, bootstrap, [topic], warehouse)
    folders = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("topic=*/*"))
    assert folders == [f"topic={topic}/date=1970-01-0{day}" for day in (1, 2, 3)]
    for file in warehouse.files():
        assert (file.records, file.end_offset) == (10, file.start_offset + 28)
    counts = spark.read.parquet(str(tmp_path)).groupBy("topic", "date").count().collect()
    assert sorted((row["topic"], str(row["date"]), row["count"]) for row in counts) == [
        (topic, f"1970-01-0{day}", 10) for day in (1, 2, 3)
    ]


def test_a_large_partition_is_spread_over_several_tasks(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(loading, "PIECE_RECORDS_MIN", 100)
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 1000))
    load(lambda: spark, bootstrap, [topic], warehouse)
    assert len(warehouse.files()) == 4 and through_manifests(warehouse) == sorted(expected(topic, 0, 0, 1000))


def test_a_task_that_fails_commits_nothing_and_says_why_in_one_sentence(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 10))

    class NowhereToWrite(Warehouse):
        def staging(self, load_id: str) -> Path:
            return Path("/proc/self/task")

    with pytest.raises(LoadFailed, match=r"-0 from offset 0 to 10 could not be loaded: .*No such file or directory"):
        load(lambda: spark, bootstrap, [topic], NowhereToWrite(tmp_path))
    assert warehouse.manifests() == []
    assert load(lambda: spark, bootstrap, [topic], warehouse).records == 10


def test_the_longest_topic_name_can_be_loaded(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(name="t" * 240), Warehouse(tmp_path)
    produce(topic, numbered(0, 3))
    load(lambda: spark, bootstrap, [topic], warehouse)
    assert through_folders(warehouse) == expected(topic, 0, 0, 3)


def test_what_no_longer_fits_the_log_is_refused(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 10))
    load(lambda: spark, bootstrap, [topic], warehouse)
    produce(topic, numbered(10, 10))
    with Admin(bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 15})
    with pytest.raises(DataLost, match="Offsets 10 to 14 of"):
        load(lambda: spark, bootstrap, [topic], warehouse)
    assert load(lambda: spark, bootstrap, [topic], warehouse, fail_on_data_loss=False).records == 5
    warehouse.commit("ab", [], {TopicPartition(topic, 0): 99})
    with pytest.raises(DataLost, match="was deleted and created again"):
        load(lambda: spark, bootstrap, [topic], warehouse)
    with pytest.raises(MoldauError, match="No topic has this name"):
        load(lambda: spark, bootstrap, ["no-such-topic"], warehouse)


def test_two_loads_at_once_do_not_both_commit(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    with Warehouse(tmp_path).locked(), pytest.raises(WarehouseError, match="Another load is writing"):
        load(lambda: spark, bootstrap, [topic], Warehouse(tmp_path))


class Command:
    """`moldau pipeline load` in a process group of its own."""

    def __init__(self, command: list[str], bootstrap: str, topic: str, folder: Path):
        arguments = [
            "pipeline",
            "load",
            "--topics",
            topic,
            "--warehouse",
            str(folder),
            "--master",
            "local[2]",
            "--json",
        ]
        self.process = subprocess.Popen(
            [*command, *arguments, "--bootstrap-server", bootstrap, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": python_path()},
        )

    def result(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=stretched(100))
        assert self.process.returncode == 0, err
        assert err == "", "a load that works says nothing besides"
        found: dict[str, Any] = json.loads(out)
        return found

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.mark.timeout(240)
def test_a_load_killed_half_way_and_run_again_has_each_record_once(
    bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, moldau_command: list[str]
) -> None:
    topic, warehouse = new_topic(2), Warehouse(tmp_path)
    for partition in range(2):
        produce(topic, [(None, b"v%d" % n, (n % 40) * DAY_MS) for n in range(100_000)], partition)
    killed = Command(moldau_command, bootstrap, topic, tmp_path)
    give_up = Deadline(100)
    while not list(warehouse.state.glob("staging/*/*.parquet")):
        assert killed.process.poll() is None and not give_up.passed
        time.sleep(0.002)
    time.sleep(random.random() * 0.3)
    killed.kill()
    result = Command(moldau_command, bootstrap, topic, tmp_path).result()
    assert result["records"] in (200_000, 0), "all that the killed load had not committed"
    assert through_manifests(warehouse) == through_folders(warehouse)
    assert through_manifests(warehouse) == sorted(expected(topic, 0, 0, 100_000) + expected(topic, 1, 0, 100_000))
    left = sorted(path.name for path in warehouse.state.iterdir())
    assert left == ["lock", "manifest-000001.json"]
