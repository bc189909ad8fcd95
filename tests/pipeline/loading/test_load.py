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

import pytest

from harness.patience import stretched, wait_until
from harness.tiers import seed_or
from moldau.client.administration.admin import Admin
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading import portions
from moldau.pipeline.loading.load import LoadFailed, load
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.positions import DataLost
from moldau.pipeline.session import python_path
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]
DAY_MS = 86_400_000


def numbered(first: int, count: int, days: int = 1) -> list[tuple[bytes | None, bytes | None, int]]:
    """Records of `days` different dates in turns."""
    return [(b"k%d" % n, b"v%d" % n, (n % days) * DAY_MS + n) for n in range(first, first + count)]


def in_table(warehouse: Warehouse, topic: str) -> list[tuple[str, int, int, bytes]]:
    """The rows of a topic's table, by partition and offset."""
    table = warehouse.table(topic)
    if table is None:
        return []
    rows = table.dataset().to_table(columns=["_partition", "_offset", "value"]).to_pydict()
    return sorted((topic, *row) for row in zip(*rows.values(), strict=True))


def offsets(warehouse: Warehouse, topic: str, partitions: int = 1) -> dict[int, int]:
    table = warehouse.table(topic)
    found = table.offsets([TopicPartition(topic, number) for number in range(partitions)]) if table else {}
    return {tp.partition: offset for tp, offset in found.items()}


def expected(topic: str, partition: int, first: int, count: int) -> list[tuple[str, int, int, bytes]]:
    return [(topic, partition, at, b"v%d" % (first + at)) for at in range(count)]


def test_the_second_load_adds_nothing_and_the_third_only_what_is_new(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, other, warehouse = new_topic(2), new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 300, days=3), 0)
    produce(topic, numbered(1000, 50, days=2), 1, compression_type="zstd")
    first = load(lambda: spark, bootstrap, [topic, other], warehouse)
    assert [(one.topic, one.version, one.records) for one in first.commits] == [(topic, 1, 350)]
    assert load(lambda: spark, bootstrap, [topic, other], warehouse).commits == ()
    with Admin(bootstrap) as admin:
        admin.create_partitions(topic, 3)
    produce(topic, numbered(300, 20), 0)
    produce(topic, numbered(2000, 5), 2)
    third = load(lambda: spark, bootstrap, [topic, other], warehouse)
    assert third.records == 25
    everything = expected(topic, 0, 0, 320) + expected(topic, 1, 1000, 50) + expected(topic, 2, 2000, 5)
    assert in_table(warehouse, topic) == everything
    assert offsets(warehouse, topic, 3) == {0: 320, 1: 50, 2: 5}


def test_a_load_ends_where_a_transaction_is_open_and_leaves_out_aborted_ones(
    spark: "SparkSession", bootstrap: str, half_open: tuple[str, Any], tmp_path: Path
) -> None:
    topic, transaction = half_open
    committed, everything = Warehouse(tmp_path / "committed"), Warehouse(tmp_path / "everything")
    assert load(lambda: spark, bootstrap, [topic], committed).records == 10
    assert offsets(committed, topic) == {0: 14}
    uncommitted = Settings(isolation_level="read_uncommitted")
    assert load(lambda: spark, bootstrap, [topic], everything, uncommitted).records == 14
    assert load(lambda: spark, bootstrap, [topic], everything).commits == (), "it was loaded up to the open one"
    transaction.end(commits=False)
    assert wait_until(lambda: bool(load(lambda: spark, bootstrap, [topic], committed).commits))
    assert [row[3] for row in in_table(committed, topic)] == [b"v%d" % n for n in range(10)]
    assert offsets(committed, topic) == {0: 16}


@pytest.mark.parametrize(
    ("partition_by", "folders"),
    [
        ("date", ["_date=1970-01-01", "_date=1970-01-02", "_date=1970-01-03"]),
        ("hour", ["_date=1970-01-01/_hour=0", "_date=1970-01-02/_hour=0", "_date=1970-01-03/_hour=0"]),
        ("none", ["."]),
    ],
)
def test_a_task_writes_one_file_for_each_date_whatever_the_partitions_of_the_topic(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path,
    partition_by: str, folders: list[str],
) -> None:  # fmt: skip
    topic, warehouse = new_topic(3), Warehouse(tmp_path)
    for partition in range(3):
        produce(topic, numbered(0, 30, days=3), partition)
    load(lambda: spark, bootstrap, [topic], warehouse, Settings(partition_by=partition_by))
    table = warehouse.table(topic)
    assert table is not None
    listed = table.files()
    assert sorted(str(Path(file.path).parent) for file in listed) == folders
    assert [file.records for file in listed] == [90 // len(folders)] * len(folders)
    produce(topic, numbered(90, 30, days=3))
    load(lambda: spark, bootstrap, [topic], warehouse)
    table.refresh()
    assert sorted({str(Path(file.path).parent) for file in table.files()}) == folders, "a table stays as it began"


@pytest.mark.check  # a variant: `make test` has the usual case
def test_a_large_partition_is_spread_over_several_tasks(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(portions, "PORTION_RECORDS_MIN", 100)
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 1000))
    assert load(lambda: spark, bootstrap, [topic], warehouse).files == 4
    assert in_table(warehouse, topic) == sorted(expected(topic, 0, 0, 1000))


def test_a_task_that_fails_commits_nothing_and_says_why_in_one_sentence(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 10))

    load(lambda: spark, bootstrap, [topic], warehouse)
    produce(topic, numbered(10, 10, days=2))
    (tmp_path / topic / "_date=1970-01-02").write_text("a file where a folder should be")
    with pytest.raises(LoadFailed, match=r"-0 from offset 10 to 20 could not be loaded: File exists"):
        load(lambda: spark, bootstrap, [topic], warehouse)
    assert offsets(warehouse, topic) == {0: 10}
    (tmp_path / topic / "_date=1970-01-02").unlink()
    assert load(lambda: spark, bootstrap, [topic], warehouse).records == 10


@pytest.mark.check  # a variant: `make test` has the usual case
def test_the_longest_topic_name_can_be_loaded(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(name="t" * 240), Warehouse(tmp_path)
    produce(topic, numbered(0, 3))
    load(lambda: spark, bootstrap, [topic], warehouse)
    assert in_table(warehouse, topic) == expected(topic, 0, 0, 3)


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
    lenient = Settings(fail_on_data_loss=False)
    assert load(lambda: spark, bootstrap, [topic], warehouse, lenient).records == 5
    tp, table = TopicPartition(topic, 0), warehouse.table(topic)
    assert table is not None
    table.commit("ab", [], {tp: 20}, {tp: 99})
    with pytest.raises(DataLost, match="was deleted and created again"):
        load(lambda: spark, bootstrap, [topic], warehouse)
    with pytest.raises(MoldauError, match="No topic has this name"):
        load(lambda: spark, bootstrap, ["no-such-topic"], warehouse)


@pytest.mark.check  # `make test` has it of an Iceberg table
def test_of_two_loads_at_once_one_commits_and_the_other_says_so(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 10))

    def after_another_load() -> "SparkSession":
        load(lambda: spark, bootstrap, [topic], warehouse)
        return spark

    with pytest.raises(Conflict, match="Another load has committed to"):
        load(after_another_load, bootstrap, [topic], warehouse)
    assert in_table(warehouse, topic) == expected(topic, 0, 0, 10)


class Command:
    """`moldau pipeline load` in a process group of its own."""

    def __init__(self, command: list[str], bootstrap: str, topic: str, folder: Path, temporary: Path):
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
            env={**os.environ, "PYTHONPATH": python_path(), "TMPDIR": str(temporary)},
        )

    def result(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=stretched(100))
        assert self.process.returncode == 0, err
        assert err == "", "a load that works says nothing besides"
        found: dict[str, Any] = json.loads(out)
        return found

    def kill(self) -> None:
        """Kill the driver, and wait for its JVM, which ends by itself and has our pipes until then."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.mark.long  # `make check` kills a load into an Iceberg table half way, and a continuous one into a Delta table
@pytest.mark.own_jvm("the driver is killed")
@pytest.mark.timeout(240)
def test_a_load_killed_half_way_and_run_again_has_each_record_once(
    bootstrap: str,
    new_topic: NewTopic,
    produce: Produce,
    tmp_path: Path,
    moldau_command: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    topic, warehouse = new_topic(2), Warehouse(tmp_path)
    for partition in range(2):
        produce(topic, [(None, b"v%d" % n, (n % 40) * DAY_MS) for n in range(100_000)], partition)
    temporary = tmp_path_factory.mktemp("temporary")
    killed = Command(moldau_command, bootstrap, topic, tmp_path, temporary)
    assert wait_until(lambda: list(tmp_path.glob("*/*/*.parquet")) or killed.process.poll(), 100, 0.002)
    time.sleep(random.Random(seed_or(1)).random() * 0.3)
    killed.kill()
    assert not list(temporary.iterdir()), "the JVM removes the folder of a load that was killed"
    assert len(in_table(warehouse, topic)) in (200_000, 0), "all of a load or nothing"
    result = Command(moldau_command, bootstrap, topic, tmp_path, temporary).result()
    assert result["records"] in (200_000, 0), "all that the killed load had not committed"
    assert in_table(warehouse, topic) == sorted(expected(topic, 0, 0, 100_000) + expected(topic, 1, 0, 100_000))
