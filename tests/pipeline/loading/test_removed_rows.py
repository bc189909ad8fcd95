"""A load notices that rows were removed from its tables since the last load: Delta and Iceberg alike, through Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from moldau.cli import pipeline_load
from moldau.cli.main import run
from moldau.names import TopicPartition
from moldau.pipeline.tables.committing import LoadedWarehouse
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]


def numbered(first: int, count: int) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(None, b'{"n": %d}' % n, n) for n in range(first, first + count)]


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


@pytest.fixture(params=["delta", "iceberg"])
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
