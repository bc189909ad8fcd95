"""What other tools do to a table between two loads: which of it removed records, and which did not. Without Spark."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from moldau.names import TopicPartition
from moldau.pipeline.tables import delta_log, removals
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.committing import Conflict, LoadedTable, commit
from moldau.pipeline.tables.iceberg_table import IcebergTable
from moldau.pipeline.tables.maintenance import compact, vacuum
from moldau.pipeline.tables.removals import Lost, Removed
from moldau.pipeline.tables.storage import location
from tests.pipeline.tables import test_iceberg_table as of_iceberg
from tests.pipeline.tables import test_table as of_delta

TP = TopicPartition("t", 0)
Change = Callable[[Path], object]
TAIL, HEAD = {0: Lost(5, 5)}, {0: Lost(3, 0)}


def lost(table: LoadedTable) -> tuple[str, Any]:
    """The words that name the operation, and what is lost by partition."""
    found = table.removed("t", table.offsets([TP]))
    return (found.operation.partition(" in ")[0].partition(" to ")[0], found.lost) if found else ("", None)


def delta(folder: Path) -> of_delta.Table:
    return of_delta.created(folder)


def everything(folder: Path, first: int = 0, end: int = 10) -> pyarrow.Table:
    rows = DeltaTable(folder).to_pyarrow_table().sort_by("_offset")
    return rows.slice(first, end - first)


def restored(*versions: int) -> Change:
    return lambda folder: [DeltaTable(folder).restore(version) for version in versions]


def merged(folder: Path) -> None:
    source = pyarrow.table({"_offset": pyarrow.array([0, 1, 2], pyarrow.int64())})
    merge = DeltaTable(folder).merge(source, "s._offset = t._offset", "s", "t")
    merge.when_matched_delete().execute()


def kept_short(folder: Path) -> None:
    """The log forgets its older entries, as `delta.logRetentionDuration` has it."""
    DeltaTable(folder).create_checkpoint()
    for entry in sorted((folder / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()


def noted(folder: Path, name: str) -> None:
    DeltaTable(folder).alter.set_table_description(name)


DELTA: list[tuple[str, Change, tuple[str, Any]]] = [
    ("nothing", lambda folder: None, ("", None)),
    ("a restore", restored(1), ("RESTORE", TAIL)),
    ("a restore that was undone", restored(1, 2), ("", None)),
    ("a restore to before the first load", restored(0), ("RESTORE", {0: Lost(10, 0)})),
    ("a deletion", lambda folder: DeltaTable(folder).delete("_offset < 3"), ("DELETE", HEAD)),
    ("a truncation", lambda folder: DeltaTable(folder).delete(), ("DELETE", {0: Lost(10, 0)})),
    ("a merge that deletes", merged, ("MERGE", HEAD)),
    ("an update", lambda folder: DeltaTable(folder).update(updates={"value": "null"}), ("", None)),
    (
        "an overwrite with less",
        lambda folder: write_deltalake(folder, everything(folder, 3), mode="overwrite"),
        ("WRITE (Overwrite)", HEAD),
    ),
    ("an overwrite", lambda folder: write_deltalake(folder, everything(folder), mode="overwrite"), ("", None)),
    ("an append", lambda folder: write_deltalake(folder, everything(folder), mode="append"), ("", None)),
    (
        "an append that was deleted",
        lambda folder: (
            write_deltalake(folder, everything(folder), mode="append"),
            DeltaTable(folder).restore(2),
        ),
        ("", None),
    ),
    ("a compaction", lambda folder: compact(location(folder)), ("", None)),
    ("a compaction undone", lambda folder: (compact(location(folder)), DeltaTable(folder).restore(2)), ("", None)),
    (
        "a deletion after a compaction",
        lambda folder: (compact(location(folder)), DeltaTable(folder).delete("_offset < 3")),
        ("DELETE", HEAD),
    ),
    (
        "a compaction, a vacuum and properties",
        lambda folder: (
            compact(location(folder)),
            vacuum(location(folder), 0, force=True),
            noted(folder, "flights"),
        ),
        ("", None),
    ),
    (
        "a deletion whose files are gone",
        lambda folder: (DeltaTable(folder).delete("_offset < 3"), vacuum(location(folder), 0, force=True)),
        ("DELETE", None),
    ),
    (
        "a deletion that the log no longer has",
        lambda folder: (DeltaTable(folder).delete("_offset < 3"), noted(folder, "flights"), kept_short(folder)),
        ("an operation that the table's log no longer has", None),
    ),
    (
        "a compaction that the log no longer has",
        lambda folder: (compact(location(folder)), noted(folder, "flights"), kept_short(folder)),
        ("", None),
    ),
]


@pytest.mark.parametrize(("change", "expected"), [one[1:] for one in DELTA], ids=[one[0] for one in DELTA])
def test_a_delta_table_says_what_other_tools_removed(tmp_path: Path, change: Change, expected: tuple[str, Any]) -> None:
    for until in (5, 10):
        of_delta.load(tmp_path, until)
    held = delta(tmp_path)
    assert lost(held) == ("", None)
    change(tmp_path)
    assert lost(delta(tmp_path)) == expected, "opened anew"
    held.refresh()
    assert lost(held) == expected, "held open, as a continuous load does"


def rolled_back(table: Any) -> None:
    with table.manage_snapshots() as snapshots:
        snapshots.rollback_to_snapshot(table.snapshots()[0].snapshot_id)


def rolled_forward(table: Any) -> None:
    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(table.snapshots()[1].snapshot_id)


def expired(table: Any) -> None:
    later = datetime.datetime.now() + datetime.timedelta(days=1)
    table.maintenance.expire_snapshots().older_than(later).commit()


def some(table: Any, first: int = 0) -> pyarrow.Table:
    return table.scan().to_arrow().sort_by("_offset").slice(first)


ICEBERG: list[tuple[str, Callable[[Any], object], tuple[str, Any]]] = [
    ("nothing", lambda table: None, ("", None)),
    ("a rollback", rolled_back, ("a rollback", TAIL)),
    ("a rollback that was undone", lambda table: (rolled_back(table), rolled_forward(table)), ("", None)),
    ("a deletion", lambda table: table.delete("_offset < 3"), ("overwrite", HEAD)),
    ("a deletion of whole files", lambda table: table.delete("_offset >= 5"), ("delete", TAIL)),
    ("an overwrite with less", lambda table: table.overwrite(some(table, 3)), ("delete", HEAD)),
    ("an overwrite", lambda table: table.overwrite(some(table)), ("", None)),
    ("an append", lambda table: table.append(some(table)), ("", None)),
    ("a rollback, then expiry", lambda table: (rolled_back(table), expired(table)), ("a rollback", None)),
    (
        "a deletion, then expiry",
        lambda table: (table.delete("_offset < 3"), table.append(some(table, 6)), expired(table)),
        ("an operation whose snapshot has expired", None),
    ),
    ("an append, then expiry", lambda table: (table.append(some(table)), expired(table)), ("", None)),
]


@pytest.mark.parametrize(("change", "expected"), [one[1:] for one in ICEBERG], ids=[one[0] for one in ICEBERG])
def test_an_iceberg_table_says_what_other_tools_removed(
    tmp_path: Path, change: Callable[[Any], object], expected: tuple[str, Any]
) -> None:
    for until in (5, 10):
        of_iceberg.load(tmp_path, until)
    held = of_iceberg.created(tmp_path)
    assert lost(held) == ("", None)
    change(load_catalog("test", **of_iceberg.properties(tmp_path)).load_table("lake.t"))
    assert lost(of_iceberg.created(tmp_path)) == expected, "opened anew"
    held.refresh()
    assert lost(held) == expected, "held open, as a continuous load does"


def unmarked(folder: Path) -> None:
    """The log as earlier versions of Moldau wrote it: without what loads had seen, and without a number of rows."""
    for entry in (folder / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            action.get("commitInfo", {}).pop(delta_log.SEEN, None)
        kept = [one for one in actions if not one.get("txn", {}).get("appId", "").endswith("/rows")]
        entry.write_text("".join(f"{json.dumps(one)}\n" for one in kept))


def test_what_was_removed_from_a_table_of_an_earlier_version_is_seen_too(tmp_path: Path) -> None:
    for until in (5, 10):
        of_delta.load(tmp_path / "delta", until)
        of_iceberg.load(tmp_path / "iceberg", until)
    unmarked(tmp_path / "delta")
    assert lost(delta(tmp_path / "delta")) == ("", None)
    DeltaTable(tmp_path / "delta").restore(1)
    assert lost(delta(tmp_path / "delta")) == ("RESTORE", TAIL)
    iceberg = load_catalog("test", **of_iceberg.properties(tmp_path / "iceberg")).load_table("lake.t")
    with iceberg.transaction() as change:
        change.remove_properties("moldau/snapshot", "moldau/t/rows")
    assert lost(of_iceberg.created(tmp_path / "iceberg")) == ("", None)
    rolled_back(iceberg)
    assert lost(of_iceberg.created(tmp_path / "iceberg")) == ("a rollback", TAIL)


def test_only_entries_behind_the_last_load_are_read_and_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = delta_log._entry

    def counting(where: Any, version: int) -> Any:
        read.append(version)
        return real(where, version)

    for until in range(5, 50, 5):
        of_delta.load(tmp_path, until)
    monkeypatch.setattr(delta_log, "_entry", counting)
    table = delta(tmp_path)
    assert lost(table) == lost(table) == ("", None) and read == [9], "the entry of the last load"
    start = table.offsets([TP])
    commit(table, "next", [of_delta.write(tmp_path, 45, 50)], start, {TP: 50})
    assert lost(table) == ("", None) and read == [9], "its own commit is known"
    noted(tmp_path, "flights")
    table.refresh()
    assert lost(table) == ("", None) and read == [9, 11]


@pytest.mark.parametrize("change", [restored(1), lambda folder: DeltaTable(folder).delete("_offset >= 5")])
def test_a_removal_between_the_look_and_the_commit_ends_the_load_of_a_delta_table(
    tmp_path: Path, change: Change
) -> None:
    for until in (5, 10):
        of_delta.load(tmp_path, until)
    table = delta(tmp_path)
    assert lost(table) == ("", None)
    change(tmp_path)
    with pytest.raises(Conflict, match=r"Rows were removed from .* meanwhile; nothing was added to it"):
        commit(table, "next", [of_delta.write(tmp_path, 10, 12)], {TP: 10}, {TP: 12})
    assert lost(table)[1] == lost(delta(tmp_path))[1] == TAIL


def test_what_came_between_the_look_and_the_commit_is_looked_at_by_the_next_load(tmp_path: Path) -> None:
    for until in (5, 10):
        of_delta.load(tmp_path, until)
    table = delta(tmp_path)
    assert lost(table) == ("", None)
    compact(location(tmp_path))
    assert commit(table, "next", [of_delta.write(tmp_path, 10, 12)], {TP: 10}, {TP: 12}) == 4
    window = delta_log.since(location(tmp_path), None, 4)
    assert [entry.version for entry in window.entries] == [3, 4] and window.whole


def test_a_removal_between_the_look_and_the_commit_ends_the_load_of_an_iceberg_table(tmp_path: Path) -> None:
    for until in (5, 10):
        of_iceberg.load(tmp_path, until)
    table = of_iceberg.created(tmp_path)
    assert lost(table) == ("", None)
    other = load_catalog("test", **of_iceberg.properties(tmp_path)).load_table("lake.t")
    other.append(some(other, 9))
    commit(table, "next", [of_iceberg.write(table, 10, 12)], {TP: 10}, {TP: 12})
    other.refresh()
    other.delete("_offset < 3")
    with pytest.raises(Conflict, match=r"Rows were removed from lake\.t meanwhile; nothing was added to it"):
        commit(table, "last", [of_iceberg.write(table, 12, 14)], {TP: 12}, {TP: 14})


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_an_accepted_removal_is_not_spoken_of_again_and_the_next_one_is(tmp_path: Path, kind: str) -> None:
    module: Any = of_delta if kind == "delta" else of_iceberg
    for until in (5, 10):
        module.load(tmp_path, until)

    def delete(condition: str) -> None:
        if kind == "delta":
            DeltaTable(tmp_path).delete(condition)
        else:
            load_catalog("test", **of_iceberg.properties(tmp_path)).load_table("lake.t").delete(condition)

    delete("_offset < 3")
    table = module.created(tmp_path)
    found = table.removed("t", {TP: 10})
    assert isinstance(found, Removed) and found.lost == HEAD and str(found).endswith("removed 3 rows")
    commit(table, "accepted", [], {TP: 10}, {TP: 10}, accepted=found)
    assert lost(table) == lost(module.created(tmp_path)) == ("", None) and table.rows("t") == 7
    delete("_offset = 9")
    assert lost(module.created(tmp_path))[1] == {0: Lost(1, 9)}


def test_records_are_compared_in_portions_and_null_places_and_other_partitions_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removals, "PORTION_ROWS", 4)

    def places(*rows: tuple[int | None, int | None]) -> list[pyarrow.RecordBatch]:
        columns = zip(*rows, strict=True)
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, removals.PLACES, strict=True)]
        return [pyarrow.RecordBatch.from_arrays(arrays, schema=removals.PLACES)]

    gone = [batch for n in range(6) for batch in places((0, 2 * n), (1, n), (None, n), (0, None), (7, n))]
    asked = []

    def came(partition: int, least: int, greatest: int) -> list[pyarrow.RecordBatch]:
        asked.append((partition, least, greatest))
        return places((partition, 4), (partition, 0)) + places((partition, 5))

    assert removals.compared("X", gone, came, {0: 9, 1: 3}) == Removed("X", {0: Lost(3, 2), 1: Lost(2, 1)})
    assert len(asked) > 2, "a few rows at a time"
    assert removals.compared("X", gone, came, {}) is None and removals.compared("X", [], came, {0: 9}) is None


def test_a_log_that_is_no_log_is_one_sentence(tmp_path: Path) -> None:
    of_delta.load(tmp_path, 5)
    table = delta(tmp_path)
    for text in ("[1]\n", "{\n", '{"commitInfo": 3}\n{"add": 4}\n', '{"remove": {}}\n'):
        (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(text)
        with pytest.raises(TableError, match="cannot be used: ") as said:
            table.removed("t", {TP: 5})
        assert "\n" not in str(said.value)


def test_a_deletion_vector_hides_rows_that_nobody_counts(tmp_path: Path) -> None:
    of_delta.load(tmp_path, 5)
    of_delta.load(tmp_path, 10)
    first = {"path": "_date=2013-01-01/part-0-5.parquet", "dataChange": True}
    hidden = first | {"deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "cardinality": 2}}
    info = {"commitInfo": {"operation": "DELETE", "timestamp": "soon"}}
    lines = [json.dumps(one) for one in (info, {"add": hidden}, {"remove": first})]
    (tmp_path / "_delta_log" / f"{3:020d}.json").write_text("\n".join(lines))
    window = delta_log.since(location(tmp_path), 2, 3)
    assert delta_log.removed(location(tmp_path), window, {0: 10}) == Removed("DELETE in version 3", None)


def test_no_snapshot_of_a_load_means_nothing_to_compare(tmp_path: Path) -> None:
    table = of_iceberg.created(tmp_path)
    assert table.removed("t", {}) is None and isinstance(table, IcebergTable) and table.count() == 0
