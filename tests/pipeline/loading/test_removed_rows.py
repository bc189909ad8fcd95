"""A load notices that rows were removed from its tables since the last load: Delta and Iceberg alike, through Spark."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from moldau.cli import pipeline_load
from moldau.cli.main import run
from moldau.client.administration.admin import Admin
from moldau.pipeline.loading import topic_tables
from moldau.pipeline.loading.load import Loader
from moldau.pipeline.loading.removed_rows import RemovedRows
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.options import TopicSelection
from moldau.pipeline.tables.committing import LoadedWarehouse
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]


def numbered(first: int, count: int) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(None, b'{"n": %d}' % n, n) for n in range(first, first + count)]


class Died(BaseException):
    """The driver is gone."""


class Lake:
    """A warehouse of one format, loaded by the command, and what another tool does to its tables."""

    def __init__(self, folder: Path, of: str, bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]):
        self.folder, self.of, self.bootstrap, self.topic, self._capsys = folder, of, bootstrap, topic, capsys
        self.properties = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/w"}

    def load(self, *options: str) -> tuple[int, str, str]:
        """The exit code, standard output and standard error of a load."""
        where = ["--warehouse", str(self.folder)]
        if self.of == "iceberg":
            given = [f"{name}={value}" for name, value in self.properties.items()]
            where = ["--format", "iceberg", "--catalog", "test", "--namespace", "lake"]
            where += [part for one in given for part in ("--catalog-property", one)]
        code = run(["pipeline", "load", "--topics", self.topic, "-b", self.bootstrap, *where, *options])
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def warehouse(self) -> LoadedWarehouse:
        return IcebergWarehouse("test", self.properties, "lake") if self.of == "iceberg" else Warehouse(self.folder)

    def offsets(self, *, rejected: bool = False) -> list[int]:
        table = self.warehouse().rejected(self.topic) if rejected else self.warehouse().table(self.topic)
        assert table is not None
        return sorted(table.offsets_in(0, 0, 1_000))

    def iceberg(self, namespace: str = "lake") -> Any:
        return load_catalog("test", **self.properties).load_table((namespace, self.topic))

    def delta(self, *, rejected: bool = False) -> DeltaTable:
        return DeltaTable(self.folder / "_quarantine" / self.topic if rejected else self.folder / self.topic)

    def back_to_the_first_load(self, *, rejected: bool = False) -> None:
        if self.of == "delta":
            self.delta(rejected=rejected).restore(1)
            return
        table = self.iceberg("lake_quarantine" if rejected else "lake")
        with table.manage_snapshots() as snapshots:
            snapshots.rollback_to_snapshot(table.snapshots()[0].snapshot_id)

    def delete(self, condition: str) -> None:
        (self.delta() if self.of == "delta" else self.iceberg()).delete(condition)


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.check)])
def lake(
    request: pytest.FixtureRequest, spark: "SparkSession", bootstrap: str, new_topic: NewTopic, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> Lake:  # fmt: skip
    monkeypatch.setattr(pipeline_load, "_session", lambda stack, master: lambda: spark)
    return Lake(tmp_path, request.param, bootstrap, new_topic(), capsys)


def loaded_twice(lake: Lake, produce: Produce, *options: str) -> None:
    for first in (0, 5):
        produce(lake.topic, numbered(first, 5))
        assert lake.load(*options)[0] == 0


def test_a_table_that_was_set_back_is_refused_until_its_rows_are_loaded_again(lake: Lake, produce: Produce) -> None:
    loaded_twice(lake, produce)
    lake.back_to_the_first_load()
    for options in ([], ["--dry-run"], ["--every", "1s"]):
        code, out, err = lake.load(*options)
        assert code == 1 and out == "" and err.count("\n") == 1, (out, err)
        assert ("RESTORE in version 3" if lake.of == "delta" else "a rollback to snapshot") in err
        assert "removed 5 rows" in err and "--offsets-from-table" in err and "--accept-removed" in err
    code, out, err = lake.load("--offsets-from-table", "--dry-run", "--json")
    assert (code, json.loads(out)["offsets"]) == (0, 5), "a dry run changes nothing"
    code, out, err = lake.load("--offsets-from-table")
    assert code == 0 and "loaded 5 records" in out, err
    assert "partition 0 is loaded again from offset 5" in err
    assert lake.offsets() == list(range(10))
    assert lake.load() == (0, "nothing new to load\n", "")


def test_removed_rows_that_the_user_accepts_stay_removed_and_loads_go_on(lake: Lake, produce: Produce) -> None:
    loaded_twice(lake, produce)
    lake.delete("_offset < 3")
    assert lake.load()[0] == 1
    code, out, err = lake.load("--accept-removed")
    assert (code, out) == (0, "nothing new to load\n") and "removed 3 rows; the load goes on without them" in err
    assert lake.load() == (0, "nothing new to load\n", ""), "accepted once"
    lake.delete("_offset = 9")
    produce(lake.topic, numbered(10, 2))
    code, out, err = lake.load("--offsets-from-table")
    assert code == 0 and "removed 1 row; partition 0 is loaded again from offset 9" in err, err
    assert lake.offsets() == [*range(3, 12)]
    lake.delete("_offset = 5")
    code, out, err = lake.load("--offsets-from-table")
    assert (code, out) == (0, "nothing new to load\n")
    assert "removed rows before rows that are still there stay removed" in err
    assert lake.load() == (0, "nothing new to load\n", "")


@pytest.mark.check  # a variant: `make test` has the usual case
def test_rejected_records_that_were_removed_are_noticed_too(lake: Lake, produce: Produce) -> None:
    decode = ("--decode", "json")
    for first in (0, 5):
        produce(lake.topic, [*numbered(first, 3), (None, b"{", 1), (None, b"[", 1)])
        assert lake.load(*decode)[0] == 0
    assert lake.offsets() == [0, 1, 2, 5, 6, 7] and lake.offsets(rejected=True) == [3, 4, 8, 9]
    lake.back_to_the_first_load(rejected=True)
    code, out, err = lake.load(*decode)
    assert code == 1 and "has lost rejected records of earlier loads" in err and "removed 2 rows" in err, err
    lake.back_to_the_first_load()
    code, out, err = lake.load(*decode, "--offsets-from-table")
    assert code == 0 and "loaded 3 records" in out and "2 records could not be decoded" in out, (out, err)
    assert lake.offsets() == [0, 1, 2, 5, 6, 7] and lake.offsets(rejected=True) == [3, 4, 8, 9]
    lake.back_to_the_first_load(rejected=True)
    code, out, err = lake.load(*decode, "--accept-removed")
    assert code == 0 and "the load goes on without them" in err and lake.offsets(rejected=True) == [3, 4]
    assert lake.load(*decode) == (0, "nothing new to load\n", "")


@pytest.mark.check  # a variant: `make test` has the usual case
def test_a_table_set_back_beside_its_quarantine_gets_each_record_once(lake: Lake, produce: Produce) -> None:
    decode = ("--decode", "json")
    for first in (0, 5):
        produce(lake.topic, [*numbered(first, 3), (None, b"{", 1), (None, b"[", 1)])
        assert lake.load(*decode)[0] == 0
    lake.back_to_the_first_load()
    code, out, err = lake.load(*decode, "--offsets-from-table")
    assert code == 0 and "loaded 3 records" in out and "could not be decoded" not in out, (out, err)
    assert lake.offsets() == [0, 1, 2, 5, 6, 7] and lake.offsets(rejected=True) == [3, 4, 8, 9]


def test_a_table_that_was_dropped_beside_its_quarantine_gets_each_record_once(lake: Lake, produce: Produce) -> None:
    decode = ("--decode", "json")
    produce(lake.topic, [*numbered(0, 3), (None, b"{", 1), (None, b"[", 1)])
    assert lake.load(*decode)[0] == 0
    if lake.of == "delta":
        shutil.rmtree(lake.folder / lake.topic)
    else:
        load_catalog("test", **lake.properties).drop_table(("lake", lake.topic))
        shutil.rmtree(lake.folder / "w" / "lake" / lake.topic)
    code, out, err = lake.load(*decode)
    assert code == 0 and "loaded 3 records" in out and "could not be decoded" not in out, (out, err)
    assert lake.offsets() == [0, 1, 2] and lake.offsets(rejected=True) == [3, 4]


@pytest.mark.check  # a variant: `make test` has the usual case
def test_a_continuous_load_accepts_removals_and_sets_offsets_back_in_small_commits(
    lake: Lake, produce: Produce, spark: "SparkSession"
) -> None:
    def loader(how: RemovedRows) -> Loader:
        settings = Settings(records_max=4, removed_rows=how)
        return Loader(lambda: spark, lake.bootstrap, TopicSelection(topics=(lake.topic,)), lake.warehouse(), settings)

    with Admin(lake.bootstrap) as admin:
        admin.create_partitions(lake.topic, 2)
    loaded_twice(lake, produce)
    produce(lake.topic, numbered(0, 4), 1)
    with loader("accept") as running:
        assert running.run(running.plan()).records == 4
        lake.delete("_partition = 1")
        produce(lake.topic, numbered(4, 1), 1)
        accepted = running.run(running.plan())
        assert accepted.records == 1 and len(accepted.notes) == 1 and "removed 4 rows" in accepted.notes[0]
        assert running.run(running.plan()).notes == ()
    lake.delete("_partition = 1 or _offset >= 5")
    with loader("reload") as first:
        done = first.run(first.plan())
        assert done.records == 4 and len(done.notes) == 1
    with loader("refuse") as second:
        assert [second.run(second.plan()).records for _ in range(2)] == [2, 0], "the offsets were set back at once"
    assert lake.offsets() == list(range(10))


def test_a_table_with_rows_but_without_offsets_is_refused(lake: Lake, produce: Produce) -> None:
    produce(lake.topic, numbered(0, 5))
    assert lake.load()[0] == 0
    if lake.of == "delta":
        rows = lake.delta().to_pyarrow_table()
        shutil.rmtree(lake.folder / lake.topic)
        write_deltalake(lake.folder / lake.topic, rows, partition_by=["_date"])
    else:
        with lake.iceberg().transaction() as change:
            change.remove_properties(*[name for name in lake.iceberg().properties if name.startswith("moldau/")])
    code, out, err = lake.load()
    assert code == 1 and "has rows of this topic's partitions, but no offsets of loads" in err, err
    produce(lake.topic, numbered(5, 2))
    code, out, err = lake.load("--offsets-from-table")
    assert code == 0 and "loaded 2 records" in out and "offsets are those of its rows" in err, err
    assert lake.offsets() == list(range(7)) and lake.load() == (0, "nothing new to load\n", "")


@pytest.mark.check  # a variant: `make test` has the usual case
def test_a_driver_that_dies_after_it_set_offsets_back_loses_nothing(
    lake: Lake, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_twice(lake, produce)
    lake.back_to_the_first_load()

    def die(*_: Any) -> int:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(topic_tables, "commit", die)
        with pytest.raises(Died):
            lake.load("--offsets-from-table")
    code, out, err = lake.load()
    assert code == 0 and "loaded 5 records" in out and lake.offsets() == list(range(10)), err


def test_the_two_options_exclude_each_other(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--offsets-from-table", "--accept-removed"]
    assert run(["pipeline", "load", "--topics", "t", "--warehouse", "w", "-b", bootstrap, *both]) != 0
    said = capsys.readouterr().err
    assert "give one of --offsets-from-table and --accept-removed" in said and said.count("\n") == 1
