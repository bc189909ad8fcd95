"""The commit of files and offsets: all or nothing wherever it dies, and one of two that race wins."""

import os
import threading
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from moldau.names import TopicPartition
from moldau.pipeline.tables import committing, storage, table
from moldau.pipeline.tables.columns import TableError, in_files, of_table
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.data_file import Bounds, DataFile
from moldau.pipeline.tables.storage import location
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Died(BaseException):
    """The process is gone."""


def created(folder: Path) -> Table:
    return Table.create(location(folder), of_table(in_files(), "date"), ["_date"])


def write(folder: Path, start: int, end: int, name: str = "part") -> DataFile:
    """A file with the records `start` to before `end` of partition 0."""
    path = f"_date=2013-01-01/{name}-{start}-{end}.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    count = end - start
    values = {
        "value": [b"v%d" % n for n in range(start, end)],
        "_partition": [0] * count,
        "_timestamp_type": [0] * count,
    }
    values |= {"_offset": list(range(start, end)), "_timestamp": [1_357_000_000_000_000] * count}
    arrays = [pyarrow.array(values.get(field.name, [None] * count), field.type) for field in in_files()]
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=in_files()), folder / path)
    bounds = {"_partition": Bounds(0, 0), "_offset": Bounds(start, end - 1)}
    bounds["_timestamp"] = Bounds(1_357_000_000_000_000, 1_357_000_000_000_000)
    return DataFile(path, (folder / path).stat().st_size, 1, {"_date": "2013-01-01"}, count, bounds)


def offsets_in(folder: Path) -> list[int]:
    found = Table.open(location(folder))
    return sorted(found.dataset().to_table(columns=["_offset"])["_offset"].to_pylist()) if found else []


def load(folder: Path, until: int) -> None:
    """What the loader does: everything from the table's offset up to `until`."""
    there = created(folder)
    start = there.offsets([TP])
    first = start.get(TP, 0)
    if first < until:
        there.commit(f"load-{until}", [write(folder, first, until)], start, {TP: until})


def test_commits_add_up_and_offsets_go_on(tmp_path: Path) -> None:
    assert Table.open(location(tmp_path / "t")) is None
    for until in (3, 7, 7):
        load(tmp_path / "t", until)
    assert offsets_in(tmp_path / "t") == list(range(7))
    there = created(tmp_path / "t")
    assert there.offsets([TP, OTHER]) == {TP: 7} and there.version == 2
    assert [(file.records, Path(file.path).name) for file in there.files()] == [
        (4, "part-3-7.parquet"),
        (3, "part-0-3.parquet"),
    ]


STEPS = (
    (storage, "_sync"),
    (committing, "sync_folders"),
    (table, "sync_commit"),
    (Table, "_write"),
    (Table, "create"),
    (Table, "refresh"),
)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("where", "step"), STEPS, ids=[name for _, name in STEPS])
def test_dying_at_any_step_leaves_each_record_once_after_the_next_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, step: str, after: bool
) -> None:
    real, deaths = getattr(where, step), 0
    while True:
        folder = tmp_path / str(deaths)
        load(folder, 2)
        left = [deaths]

        def mortal(*arguments: Any, left: list[int] = left) -> Any:
            if left[0] == 0 and not after:
                raise Died
            found = real(*arguments)
            if left[0] == 0:
                raise Died
            left[0] -= 1
            return found

        with monkeypatch.context() as patch:
            patch.setattr(where, step, mortal)
            try:
                load(folder, 6)
                break
            except Died:
                deaths += 1
        assert offsets_in(folder) in (list(range(2)), list(range(6))), "a reader sees all of a load or nothing"
        load(folder, 6)
        assert offsets_in(folder) == list(range(6))
    assert deaths >= 1


def test_of_two_loads_of_the_same_offsets_one_commits(tmp_path: Path) -> None:
    one, other = created(tmp_path), created(tmp_path)
    one.commit("aa", [write(tmp_path, 0, 3, "a")], {}, {TP: 3})
    for _ in range(2):
        with pytest.raises(Conflict, match=r"Another load has committed to .* meanwhile; nothing was added"):
            other.commit("bb", [write(tmp_path, 0, 5, "b")], {}, {TP: 5})
    assert offsets_in(tmp_path) == [0, 1, 2]


def test_loads_of_different_partitions_both_commit(tmp_path: Path) -> None:
    one, other = created(tmp_path), created(tmp_path)
    assert one.commit("aa", [write(tmp_path, 0, 3)], {}, {TP: 3}) == 1
    assert other.commit("bb", [], {}, {OTHER: 9}) == 2, "offsets move on even without a record"
    assert created(tmp_path).offsets([TP, OTHER]) == {TP: 3, OTHER: 9}


def test_many_that_race_leave_each_record_once(tmp_path: Path) -> None:
    created(tmp_path)
    won = []

    def race(name: str) -> None:
        while True:
            there = created(tmp_path)
            start = there.offsets([TP])
            first = start.get(TP, 0)
            if first >= 20:
                return
            try:
                there.commit(f"{name}-{first}", [write(tmp_path, first, first + 2, name)], start, {TP: first + 2})
            except Conflict:
                continue
            won.append(name)

    threads = [threading.Thread(target=race, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert offsets_in(tmp_path) == list(range(20)) and len(won) == 10


def test_a_commit_that_arrived_though_its_store_reported_a_failure_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake.exceptions import CommitFailedError

    there, real = created(tmp_path), Table._write

    def lost_answer(*arguments: Any) -> None:
        real(*arguments)
        raise CommitFailedError("the answer was lost")

    monkeypatch.setattr(Table, "_write", lost_answer)
    assert there.commit("aa", [write(tmp_path, 0, 3)], {}, {TP: 3}) == 1
    assert offsets_in(tmp_path) == [0, 1, 2]


def test_new_columns_are_added_once_and_a_changed_type_is_refused(tmp_path: Path) -> None:
    one, other = created(tmp_path), created(tmp_path)
    wanted = in_files(
        pyarrow.schema([("month", pyarrow.int64()), ("place", pyarrow.struct([("lat", pyarrow.float64())]))])
    )
    one.add_columns(wanted)
    other.add_columns(wanted)
    names = created(tmp_path).columns.names
    assert names == [*of_table(in_files(), "date").names, "month", "place"]
    with pytest.raises(TableError, match=r"Column month of .* has type long and would now have type string"):
        other.add_columns(in_files(pyarrow.schema([("month", pyarrow.string())])))
    with pytest.raises(TableError, match="differ in case only"):
        other.add_columns(in_files(pyarrow.schema([("Month", pyarrow.int64())])))


def test_structs_get_new_fields_and_readers_find_them_null_in_older_rows(tmp_path: Path) -> None:
    where = location(tmp_path)
    old = pyarrow.schema([("o", pyarrow.struct([("a", pyarrow.int64())]))])
    kind = pyarrow.struct([("a", pyarrow.int64()), ("b", pyarrow.struct([("c", pyarrow.string())]))])
    table = Table.create(where, old, [])
    write_deltalake(tmp_path, pyarrow.table({"o": pyarrow.array([{"a": 1}], old.field("o").type)}), mode="append")
    table.refresh()
    for _ in range(2):
        table.add_columns(pyarrow.schema([("o", kind)]))
    with pytest.raises(TableError, match=r"Column o of .* has type .* and would now have type"):
        table.add_columns(pyarrow.schema([("o", pyarrow.struct([("a", pyarrow.string())]))]))
    write_deltalake(tmp_path, pyarrow.table({"o": pyarrow.array([{"a": 2, "b": {"c": "x"}}], kind)}), mode="append")
    rows = [{"a": 1, "b": None}, {"a": 2, "b": {"c": "x"}}]
    lake = DeltaTable(tmp_path).to_pyarrow_dataset()
    assert lake.count_rows() == 2
    assert [row[0] for row in duckdb.sql("SELECT o FROM lake ORDER BY o.a").fetchall()] == rows
    assert polars.scan_delta(str(tmp_path)).collect()["o"].sort().to_list() == rows


def test_files_are_described_so_that_readers_skip_them(tmp_path: Path) -> None:
    load(tmp_path, 10)
    load(tmp_path, 20)
    [fragment] = list(created(tmp_path).dataset().get_fragments(filter=pyarrow.dataset.field("_offset") == 15))
    assert fragment.path.endswith("part-10-20.parquet")


def test_what_cannot_be_used_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be used"):
        created(tmp_path / "file" / "t")
    for until in (2, 4):
        load(tmp_path / "t", until)
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(TableError, match="/t cannot be used: ") as said:
        Table.open(location(tmp_path / "t"))
    assert "\n" not in str(said.value) and "\x1b" not in str(said.value)


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = f"^{tmp_path}/file is a file, where a folder of tables is needed: name another warehouse.$"
    for name in ("file", "file/below"):
        with pytest.raises(TableError, match=said):
            Warehouse(tmp_path / name).check()
    with pytest.raises(TableError, match=said):
        Warehouse(tmp_path).table("file")


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "a\nb"])
def test_a_path_that_deltalake_takes_for_another_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TableError, match=r"cannot be the path of a table: rename the folder with '.+' in its name.$"):
        Warehouse(tmp_path / name)
    with pytest.raises(TableError, match="rename the folder"):
        location(tmp_path / name / "t")


@pytest.mark.parametrize("name", ["with blank", "ö 日本", "100%", "a#b?c", "a[1]{b}*", "a+b&c=d", "a:b"])
def test_other_characters_in_a_path_are_taken_as_they_are(tmp_path: Path, name: str) -> None:
    load(tmp_path / name, 2)
    load(tmp_path / name, 4)
    assert offsets_in(tmp_path / name) == list(range(4)) and os.listdir(tmp_path) == [name]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were flushed, in order."""
    found: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        found.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_folders_are_flushed_before_the_commit_and_its_log_entry_after(tmp_path: Path, synced: list[str]) -> None:
    load(tmp_path, 2)
    assert synced[-4:] == [
        str(tmp_path / "_date=2013-01-01"),
        str(tmp_path),
        str(tmp_path / "_delta_log" / f"{1:020d}.json"),
        str(tmp_path / "_delta_log"),
    ]


@pytest.mark.parametrize("version", [0, 1, 3])
@pytest.mark.parametrize("torn", ["half", "zeros", "empty"])
def test_an_entry_that_a_power_failure_has_torn_is_removed_and_its_records_are_loaded_again(
    tmp_path: Path, torn: str, version: int
) -> None:
    for until in [2, 4, 6][:version]:
        load(tmp_path, until)
    if not version:
        created(tmp_path)
    entry = tmp_path / "_delta_log" / f"{version:020d}.json"
    whole = entry.read_bytes()
    entry.write_bytes({"half": whole[: len(whole) // 2], "zeros": bytes(len(whole)), "empty": b""}[torn])
    found = Table.open(location(tmp_path))
    assert (found is None) == (version == 0)
    load(tmp_path, 8)
    assert offsets_in(tmp_path) == list(range(8))


def test_a_warehouse_knows_its_topics_and_keeps_some_names(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    assert warehouse.topics() == [] and warehouse.table("t") is None
    load(tmp_path / "t", 2)
    load(tmp_path / "_quarantine" / "t", 2)
    (tmp_path / "notes").mkdir()
    assert warehouse.topics() == ["t"]
    warehouse.check()
    with pytest.raises(TableError, match="is a table; name the folder that it is in"):
        Warehouse(tmp_path / "t").check()
    for name in ("_quarantine", "_moldau"):
        with pytest.raises(TableError, match="keeps this name for itself"):
            warehouse.place(name)


def test_a_warehouse_of_the_earlier_format_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    (tmp_path / "_moldau").mkdir()
    (tmp_path / "topic=t").mkdir()
    with pytest.raises(TableError, match=f"convert it once with 'moldau pipeline convert {tmp_path}'"):
        Warehouse(tmp_path).check()
