"""The commit to an Iceberg table: all or nothing wherever it dies, and one of two that race wins. Catalog: SQLite."""

import datetime
import threading
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pyarrow.parquet as parquet
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import Table as PyIcebergTable

from moldau.names import TopicPartition
from moldau.pipeline.tables import committing
from moldau.pipeline.tables.columns import TableError, in_files, of_table
from moldau.pipeline.tables.committing import Conflict, commit
from moldau.pipeline.tables.data_file import DataFile, folder_of
from moldau.pipeline.tables.iceberg_table import IcebergTable
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.warehouse import Warehouse

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
DAY = datetime.date(2013, 1, 1)


class Died(BaseException):
    """The process is gone."""


def properties(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/w"}


def opened(folder: Path) -> IcebergWarehouse:
    folder.mkdir(exist_ok=True)
    return IcebergWarehouse("test", properties(folder), "lake")


def created(folder: Path, partition_by: str = "date") -> IcebergTable:
    return opened(folder).create("t", of_table(in_files(), partition_by), partition_by)


def write(
    table: IcebergTable, start: int, end: int, name: str = "part", day: datetime.date | None = DAY, **more: Any
) -> DataFile:
    """A file with the records `start` to before `end` of partition 0, and more columns of one value each."""
    dated = {"_date": None if day is None else str(day)}
    path = f"{folder_of(dated)}/{name}-{start}-{end}.parquet"
    (table.where.path / path).parent.mkdir(parents=True, exist_ok=True)
    values = {"_partition": [0] * (end - start), "_offset": list(range(start, end)), "_date": [day] * (end - start)}
    values |= {key: [value.as_py()] * (end - start) for key, value in more.items()}
    columns = of_table(in_files(pyarrow.schema([(key, value.type) for key, value in more.items()])), "date")
    arrays = [pyarrow.array(values.get(field.name, [None] * (end - start)), field.type) for field in columns]
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=columns), table.where.path / path)
    return DataFile(path, 1, 1, dated, end - start, {})


def offsets_in(folder: Path) -> list[int]:
    found = opened(folder).table("t")
    return sorted(found.scan().to_arrow()["_offset"].to_pylist()) if found else []


def load(folder: Path, until: int, name: str = "part") -> None:
    """What the loader does: everything from the table's offset up to `until`."""
    there = created(folder)
    start = there.offsets([TP])
    first = start.get(TP, 0)
    if first < until:
        commit(there, f"{name}-{until}", [write(there, first, until, name)], start, {TP: until}, {"t": 7})


def test_commits_add_up_and_offsets_and_the_topics_id_stay_with_them(tmp_path: Path) -> None:
    opened(tmp_path).check()
    assert opened(tmp_path).table("t") is None and opened(tmp_path).rejected("t") is None
    assert load_catalog("test", **properties(tmp_path)).list_namespaces() == [], "looking creates nothing"
    for until in (3, 7, 7):
        load(tmp_path, until)
    assert offsets_in(tmp_path) == list(range(7))
    there = created(tmp_path)
    assert there.offsets([TP, OTHER]) == {TP: 7} and there.topic_id("t") == 7 and there.topic_id("u") is None
    assert there.partition_by == "date" and sorted(there.offsets_in(0, 2, 5)) == [2, 3, 4] and there.version > 0
    assert (tmp_path / "w" / "lake" / "t" / "data").is_dir() and there.version_of("part-3") != there.version


STEPS = (
    (committing, "sync_folders"),
    (IcebergTable, "_write"),
    (PyIcebergTable, "_do_commit"),
    (IcebergWarehouse, "_open"),
)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("where", "step"), STEPS, ids=[name for _, name in STEPS])
def test_dying_at_any_step_leaves_each_record_once_after_the_next_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, step: str, after: bool
) -> None:
    real, died = getattr(where, step), []

    def mortal(*arguments: Any, **named: Any) -> Any:
        if not after:
            died.append(step)
            raise Died
        real(*arguments, **named)
        died.append(step)
        raise Died

    load(tmp_path, 2)
    with monkeypatch.context() as patch:
        patch.setattr(where, step, mortal)
        with pytest.raises(Died):
            load(tmp_path, 6)
    assert died and offsets_in(tmp_path) in (list(range(2)), list(range(6))), "all of a load or nothing"
    load(tmp_path, 6, "again")
    assert offsets_in(tmp_path) == list(range(6))


def test_of_two_loads_of_the_same_offsets_one_commits(tmp_path: Path) -> None:
    one, other = created(tmp_path), created(tmp_path)
    commit(one, "aa", [write(one, 0, 3, "a")], {}, {TP: 3})
    for _ in range(2):
        with pytest.raises(Conflict, match=r"Another load has committed to lake\.t meanwhile; nothing was added"):
            commit(other, "bb", [write(other, 0, 5, "b")], {}, {TP: 5})
    assert offsets_in(tmp_path) == [0, 1, 2]


ANOTHER_TOOLS = "another tool's"


@pytest.mark.parametrize("between", [None, OTHER, ANOTHER_TOOLS])
@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_commits_prepared_on_the_same_snapshot_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool, between: TopicPartition | str | None
) -> None:
    load(tmp_path, 2)
    loads = {"a": (created(tmp_path), 5), "b": (created(tmp_path), 4)}
    first, second = sorted(loads, reverse=swapped)
    real = PyIcebergTable._do_commit

    def end(name: str) -> None:
        there, until = loads[name]
        commit(there, name, [write(there, 2, until, name)], {TP: 2}, {TP: until})

    def overtaken(table: PyIcebergTable, updates: Any, requirements: Any) -> None:
        """What the second has prepared reaches the catalog after the first one's commit, and perhaps another's."""
        monkeypatch.setattr(PyIcebergTable, "_do_commit", real)
        end(first)
        third = created(tmp_path)
        if between == OTHER:
            commit(third, "third", [], {}, {OTHER: 9})
        elif between:
            third._iceberg.append(pyarrow.Table.from_pylist([{"_partition": 7, "_offset": 99}], third.columns))
        real(table, updates, requirements)

    monkeypatch.setattr(PyIcebergTable, "_do_commit", overtaken)
    with pytest.raises(Conflict, match="nothing was added"):
        end(second)
    won = list(range(loads[first][1]))
    assert offsets_in(tmp_path) == won + [99] * (between == ANOTHER_TOOLS)
    assert created(tmp_path).offsets([TP]) == {TP: len(won)}


def test_an_ordinary_transaction_of_pyiceberg_would_add_rows_twice_if_the_table_allowed_retries(tmp_path: Path) -> None:
    def append(table: PyIcebergTable, file: DataFile) -> None:
        with table.transaction() as ordinary:
            ordinary.add_files([f"{there.where.uri}/{file.path}"])

    there = created(tmp_path)
    file, stale, stale_too = write(there, 0, 2), *(created(tmp_path)._iceberg for _ in range(2))
    append(there._iceberg, file)
    with pytest.raises(CommitFailedException):
        append(stale, file)
    stale_too.metadata.properties.pop("commit.retry.num-retries")
    append(stale_too, write(there, 0, 2, "again"))
    assert offsets_in(tmp_path) == [0, 0, 1, 1]


def test_a_load_commits_beside_another_tools_commit_and_offsets_move_on_without_a_record(tmp_path: Path) -> None:
    one, other = created(tmp_path), created(tmp_path)
    commit(one, "aa", [write(one, 0, 3)], {}, {TP: 3})
    version = commit(other, "bb", [], {}, {OTHER: 9})
    there = created(tmp_path)
    assert there.offsets([TP, OTHER]) == {TP: 3, OTHER: 9} and there.version == version
    assert offsets_in(tmp_path) == [0, 1, 2]


def test_many_that_race_leave_each_record_once(tmp_path: Path) -> None:
    created(tmp_path)
    won, failed = [], []

    def race(name: str) -> None:
        while True:
            there = created(tmp_path)
            start = there.offsets([TP])
            first = start.get(TP, 0)
            if first >= 12:
                return
            try:
                commit(there, f"{name}-{first}", [write(there, first, first + 2, name)], start, {TP: first + 2})
            except Conflict:
                continue
            except BaseException as error:
                failed.append(error)
                raise
            won.append(name)

    threads = [threading.Thread(target=race, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and offsets_in(tmp_path) == list(range(12)) and len(won) == 6


@pytest.mark.parametrize("lost", [CommitFailedException, CommitStateUnknownException])
def test_a_commit_that_arrived_though_its_catalog_reported_a_failure_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: type[Exception]
) -> None:
    there, real = created(tmp_path), IcebergTable._write

    def lost_answer(*arguments: Any) -> None:
        real(*arguments)
        raise lost("the answer was lost")

    monkeypatch.setattr(IcebergTable, "_write", lost_answer)
    version = commit(there, "aa", [write(there, 0, 3)], {}, {TP: 3})
    assert offsets_in(tmp_path) == [0, 1, 2] and there.version == version


def test_new_columns_and_fields_are_added_once_and_null_in_older_rows(tmp_path: Path) -> None:
    one, other = created(tmp_path), created(tmp_path)
    place = pyarrow.struct([("lat", pyarrow.float64())])
    files = in_files(pyarrow.schema([("small", pyarrow.int16()), ("place", place)]))
    old = write(one, 0, 1)
    commit(one, "aa", [old], {}, {TP: 1})
    for table in (one, other):
        table.add_columns(files)
        assert table.lacking(files) == []
    wider = pyarrow.struct([*place, ("names", pyarrow.list_(pyarrow.struct([("a", pyarrow.string())])))])
    one.refresh()
    one.add_columns(in_files(pyarrow.schema([("place", wider)])))
    new = {
        "small": pyarrow.scalar(5, pyarrow.int16()),
        "place": pyarrow.scalar({"lat": 1.5, "names": [{"a": "x"}]}, wider),
    }
    commit(one, "bb", [write(one, 1, 2, **new)], {TP: 1}, {TP: 2})
    rows = sorted(
        one.scan().to_arrow().select(["_offset", "small", "place"]).to_pylist(), key=lambda row: row["_offset"]
    )
    assert rows == [
        {"_offset": 0, "small": None, "place": None},
        {"_offset": 1, "small": 5, "place": {"lat": 1.5, "names": [{"a": "x"}]}},
    ]
    for kind in (pyarrow.string(), pyarrow.float64()):
        with pytest.raises(TableError, match=r"Column small of lake\.t has type int and would now have type"):
            other.add_columns(in_files(pyarrow.schema([("small", kind)])))
    with pytest.raises(TableError, match="differ in case only"):
        other.add_columns(in_files(pyarrow.schema([("Small", pyarrow.int32())])))


def test_readers_skip_files_by_date_and_offset_and_the_date_may_be_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    there = created(tmp_path)
    commit(there, "aa", [write(there, 0, 2), write(there, 2, 3, day=None)], {}, {TP: 3})
    commit(there, "bb", [write(there, 3, 5)], {TP: 3}, {TP: 5})
    iceberg = load_catalog("test", **properties(tmp_path)).load_table("lake.t")
    assert len(list(iceberg.scan("_date = '2013-01-01'").plan_files())) == 2
    assert len(list(iceberg.scan("_date is null").plan_files())) == 1
    assert len(list(iceberg.scan("_offset = 4").plan_files())) == 1
    found = polars.scan_iceberg(iceberg).filter(polars.col("_date") == DAY).select("_offset").collect()
    assert sorted(found["_offset"]) == [0, 1, 3, 4]
    first = iceberg.snapshots()[0].snapshot_id
    assert iceberg.scan(snapshot_id=first).to_arrow().num_rows == 3


def test_what_cannot_be_used_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="The Iceberg catalog nowhere cannot be used: ") as said:
        IcebergWarehouse("nowhere", {}, "lake")
    assert "\n" not in str(said.value)
    with pytest.raises(TableError, match=r"cannot be used: .*unable to open database file"):
        IcebergWarehouse("test", {"uri": f"sqlite:///{tmp_path}/no/folder.db"}, "lake").check()
    other = load_catalog("test", **properties(tmp_path))
    other.create_namespace("lake")
    table = other.create_table("lake.t", of_table(in_files(), "date"), properties={"moldau/t/0": "x"})
    with table.update_spec() as spec:
        spec.add_field("_timestamp", "month", "month")
    there = created(tmp_path)
    with pytest.raises(TableError, match=r"lake\.t is partitioned by .*month.*Loads never partition this way"):
        assert there.partition_by
    with pytest.raises(TableError, match="its property moldau/t/0 is 'x' and not a number"):
        there.offsets([TP])
    with pytest.raises(TableError, match=r"is an Iceberg table: Spark's procedures rewrite_data_files"):
        Warehouse(tmp_path / "w" / "lake" / "t").tables()


@pytest.mark.parametrize("nested", [False, True])
def test_columns_are_widened_by_a_load_and_readers_find_old_and_new_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: bool
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")

    def column(number: pyarrow.DataType, fraction: pyarrow.DataType) -> pyarrow.DataType:
        there = pyarrow.struct([("n", number), ("x", fraction)])
        return (
            pyarrow.struct([("l", pyarrow.list_(there)), ("m", pyarrow.map_(pyarrow.string(), number))])
            if nested
            else there
        )

    def value(number: int, fraction: float) -> Any:
        there = {"n": number, "x": fraction}
        return {"l": [there], "m": [("k", number)]} if nested else there

    narrow, wide = column(pyarrow.int32(), pyarrow.float32()), column(pyarrow.int64(), pyarrow.float64())
    files = in_files(pyarrow.schema([("o", wide)]))
    one, other = created(tmp_path), created(tmp_path)
    one.add_columns(in_files(pyarrow.schema([("o", narrow)])))
    commit(one, "aa", [write(one, 0, 2, "a", o=pyarrow.scalar(value(5, 1.5), narrow))], {}, {TP: 2})
    other.refresh()
    stale = created(tmp_path)
    for table in (one, other):
        table.add_columns(files)
        assert table.lacking(files) == []
    commit(one, "bb", [write(one, 2, 3, "b", o=pyarrow.scalar(value(1 << 40, 0.1), wide))], {TP: 2}, {TP: 3})
    with pytest.raises(Conflict):
        commit(stale, "cc", [write(stale, 2, 3, "c", o=pyarrow.scalar(value(6, 1.5), narrow))], {TP: 2}, {TP: 3})
    there = created(tmp_path)
    there.add_columns(in_files(pyarrow.schema([("o", narrow)])))
    commit(there, "dd", [write(there, 3, 4, "d", o=pyarrow.scalar(value(7, 1.5), narrow))], {TP: 3}, {TP: 4})
    iceberg = load_catalog("test", **properties(tmp_path)).load_table("lake.t")
    rows = {row["_offset"]: row["o"] for row in iceberg.scan().to_arrow().select(["_offset", "o"]).to_pylist()}
    assert rows == {0: value(5, 1.5), 1: value(5, 1.5), 2: value(1 << 40, 0.1), 3: value(7, 1.5)}
    if not nested:
        found = polars.scan_iceberg(iceberg).select("_offset", "o").collect()
        assert dict(found.rows()) == rows
        found_too = iceberg.scan().to_duckdb("t").sql("SELECT _offset, o FROM t").fetchall()
        assert dict(found_too) == rows
