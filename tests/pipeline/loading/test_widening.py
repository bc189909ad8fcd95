"""`pipeline widen`: all of a table or nothing, beside loads, other tools and deaths; every reader reads the result."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from moldau.cli.main import run
from moldau.names import TopicPartition
from moldau.pipeline.loading import widening
from moldau.pipeline.loading.widening import widen
from moldau.pipeline.loading.writing import Layout, TableWriter
from moldau.pipeline.tables.columns import RECORD, TableError, in_files, of_table
from moldau.pipeline.tables.committing import Conflict, commit
from moldau.pipeline.tables.maintenance import compact, history, vacuum
from moldau.pipeline.tables.storage import location
from moldau.pipeline.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TP = TopicPartition("t", 0)
BEYOND = 3_000_000_000
CHANGES = {"n": "long", "place.lat": "double", "ns.element": "long"}
NOON = datetime.datetime(2013, 1, 1, 12, tzinfo=datetime.UTC)


class Died(BaseException):
    """The process is gone."""


def decoded(number: pa.DataType, fraction: pa.DataType) -> pa.Schema:
    return pa.schema([("n", number), ("place", pa.struct([("lat", fraction)])), ("ns", pa.list_(number))])


NARROW, WIDE = decoded(pa.int32(), pa.float32()), decoded(pa.int64(), pa.float64())


def row(offset: int, number: int) -> dict[str, Any]:
    """A record of one of three days."""
    at = NOON + datetime.timedelta(days=offset % 3)
    place = {"lat": 0.5} if offset % 4 else None
    return {"n": number, "place": place, "ns": [number, None], "_partition": 0, "_offset": offset, "_timestamp": at}


def load(folder: Path, until: int, columns: pa.Schema = NARROW, number: int = 5) -> None:
    """What a load does: records from the table's offset up to `until`."""
    table, files = Table.create(location(folder), of_table(in_files(columns), "date"), ["_date"]), in_files(columns)
    start = table.offsets([TP])
    rows = [row(offset, number) for offset in range(start.get(TP, 0), until)]
    writer = TableWriter(Layout(table.where, files, "date", "_timestamp", "zstd"), f"part-{until}")
    writer.add(pa.RecordBatch.from_pylist(rows, files))
    table.add_columns(files)
    commit(table, f"load-{until}", writer.finish(), start, {TP: until})


def rows_in(folder: Path) -> list[dict[str, Any]]:
    wanted = ["n", "place", "ns", "_partition", "_offset", "_timestamp"]
    return sorted(DeltaTable(folder).to_pyarrow_table(columns=wanted).to_pylist(), key=lambda one: one["_offset"])


def expected(until: int, beyond: int | None = None) -> list[dict[str, Any]]:
    """Rows whose numbers are small up to `until`, and large up to `beyond`."""
    return [row(n, 5) for n in range(until)] + [row(n, BEYOND) for n in range(until, beyond or until)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for until in (6, 12):
        load(tmp_path / "t", until)
    return tmp_path / "t"


def test_a_widened_table_has_the_same_rows_and_takes_wider_numbers(
    table: Path, spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TableError, match=r"widen the table once with 'moldau pipeline widen .*/t n=long place.lat="):
        load(table, 20, WIDE, BEYOND)
    command = ["pipeline", "widen", str(table), *(f"{path}={kind}" for path, kind in CHANGES.items())]
    assert run(command) == 0
    assert capsys.readouterr().out == f"{table}: widened in version 3, 6 files rewritten\n"
    assert run([*command, "--json"]) == 0 and json.loads(capsys.readouterr().out) == {"version": None, "files": 0}
    assert run(command) == 0 and capsys.readouterr().out == f"{table}: nothing to widen\n"
    assert rows_in(table) == expected(12)
    before = Table.open(location(table))
    assert before is not None and before.removed("t", {TP: 12}) is None, "a load asks nobody to accept that"
    load(table, 20, WIDE, BEYOND)
    assert rows_in(table) == expected(12, 20)
    numbers = [one["n"] for one in expected(12, 20)]
    assert polars.scan_delta(str(table)).sort("_offset").collect()["n"].to_list() == numbers
    events = DeltaTable(table).to_pyarrow_dataset()
    assert events is not None and duckdb.sql("SELECT n FROM events ORDER BY _offset").fetchall() == [
        (n,) for n in numbers
    ]
    frame = spark.read.format("moldau").option("table", str(table)).load()
    assert [one.n for one in frame.orderBy("_offset").select("n").collect()] == numbers
    newest = history(location(table))
    assert [one.operation for one in newest][:2] == ["WRITE", "WIDEN n=long place.lat=double ns.element=long"]
    assert newest[1].records is None and newest[1].removed is None
    entry = (table / "_delta_log" / f"{3:020d}.json").read_text().splitlines()
    adds = [action["add"] for action in map(json.loads, entry) if "add" in action]
    statistics = [json.loads(one["stats"]) for one in adds]
    assert (
        sum(one["numRecords"] for one in statistics) == 12
        and max(one["maxValues"]["_offset"] for one in statistics) == 11
    )
    assert compact(location(table)).removed
    assert rows_in(table) == expected(12, 20)


def in_between(monkeypatch: pytest.MonkeyPatch, step: str, do: Callable[[], None], times: int = 1) -> None:
    """Do something just before a step of a widening, the first `times` times."""
    real, left = getattr(widening, step), [None] * times

    def overtaken(*arguments: Any) -> Any:
        if left:
            left.pop()
            do()
        return real(*arguments)

    monkeypatch.setattr(widening, step, overtaken)


def test_loads_and_compactions_in_between_lose_and_double_nothing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def another() -> None:
        done.append(len(done))
        if len(done) == 2:
            compact(location(table))
        else:
            load(table, 12 + 3 * len(done))

    in_between(monkeypatch, "_commit", another, 3)
    widened = widen(location(table), CHANGES)
    assert len(done) == 3 and widened.version is not None and rows_in(table) == expected(21)
    assert DeltaTable(table).to_pyarrow_table()["n"].type == pa.int64()
    load(table, 25, WIDE, BEYOND)
    assert rows_in(table) == expected(21, 25)


def test_a_table_that_is_written_to_all_the_time_is_said(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until = iter(range(13, 100))
    in_between(monkeypatch, "_commit", lambda: load(table, next(until)), widening.WIDEN_ATTEMPTS)
    with pytest.raises(TableError, match="so it was not widened"):
        widen(location(table), CHANGES)
    assert rows_in(table) == expected(12 + widening.WIDEN_ATTEMPTS)


@pytest.mark.parametrize("columns", [NARROW, pa.schema([*NARROW, ("new", pa.string())])], ids=["same", "new column"])
def test_a_load_that_was_prepared_before_a_widening_adds_nothing(table: Path, columns: pa.Schema) -> None:
    files = in_files(columns)
    stale = Table.open(location(table))
    assert stale is not None
    stale.lacking(files)
    writer = TableWriter(Layout(stale.where, files, "date", "_timestamp", "lz4"), "stale")
    writer.add(pa.RecordBatch.from_pylist([row(12, 5)], files))
    widen(location(table), CHANGES)

    def end() -> None:
        stale.add_columns(files)
        commit(stale, "stale", writer.finish(), {TP: 12}, {TP: 13})

    with pytest.raises(Conflict, match=r"Column n of .* was widened meanwhile; nothing was added to the table"):
        end()
    assert rows_in(table) == expected(12)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["_rewritten", "sync_folders", "_commit", "sync_commit"])
def test_dying_at_any_step_leaves_the_old_table_or_the_new_one(
    table: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    real = getattr(widening, step)

    def mortal(*arguments: Any) -> None:
        if after:
            real(*arguments)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(widening, step, mortal)
        with pytest.raises(Died):
            widen(location(table), CHANGES)
    assert rows_in(table) == expected(12)
    widen(location(table), CHANGES)
    assert rows_in(table) == expected(12) and DeltaTable(table).to_pyarrow_table()["n"].type == pa.int64()
    vacuum(location(table), 0, force=True)
    files = [one for one in table.rglob("*.parquet") if "_delta_log" not in one.parts]
    assert len(files) == 3 * 2 and rows_in(table) == expected(12)


def test_files_of_other_tools_are_rewritten_too(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    rows = [{**row(0, 5), "of": "a b/ü=%"}, {**row(1, 5), "of": None}, {**row(2, 5), "_timestamp": None, "of": "c"}]
    columns = pa.schema([*NARROW, *RECORD, ("of", pa.string())])
    write_deltalake(folder, pa.Table.from_pylist(rows, columns), partition_by=["of"])
    assert widen(location(folder), CHANGES).files == 3
    found = DeltaTable(folder).to_pyarrow_table().select(columns.names).to_pylist()
    assert sorted(found, key=lambda one: one["_offset"]) == [{**dict.fromkeys(columns.names), **one} for one in rows]


def test_what_cannot_be_widened_is_one_sentence(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "true"}, raise_if_not_exists=False)
    for wrong, sentence in (
        (["n"], "'n' is not of the form COLUMN=TYPE"),
        (["n=long", "n=int"], "n is named twice, with the types long and int"),
        (["n=long"], "needs readers of version 3 (deletion vectors, column mapping)"),
    ):
        assert run(["pipeline", "widen", str(table), *wrong]) == 1
        said = capsys.readouterr().err
        assert sentence in said and said.count("\n") == 1
    assert (
        run(["pipeline", "widen", str(tmp_path), "n=long"]) == 1 and "is not a Delta table" in capsys.readouterr().err
    )
