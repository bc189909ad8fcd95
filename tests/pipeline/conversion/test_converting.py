"""Conversion of a warehouse of format 1: every record and offset, wherever it is killed; nothing foreign is removed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable

from moldau.names import TopicPartition
from moldau.pipeline.conversion import converting
from moldau.pipeline.conversion.converting import convert
from moldau.pipeline.tables.columns import HEADERS, TableError
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse

OLD = pyarrow.schema(
    [
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.timestamp("us", "UTC")),
        ("timestampType", pyarrow.int32()),
        ("headers", HEADERS),
    ]
)
DAY_US = 86_400_000_000


def write(folder: Path, topic: str, day: int, start: int, end: int, load: str) -> dict[str, Any]:
    """A data file of format 1 and its entry in a manifest."""
    name = f"topic={topic}/date=1970-01-{day + 1:02d}/part-00000-{start:020d}-{end:020d}-{load}.parquet"
    rows = [
        {
            "key": b"k",
            "value": b"v%d" % n,
            "partition": 0,
            "offset": n,
            "timestamp": day * DAY_US + n,
            "timestampType": 0,
        }
        for n in range(start, end)
    ]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    arrays = [pyarrow.array([row.get(field.name) for row in rows], field.type) for field in OLD]
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=OLD), folder / name)
    return {"path": name, "topic": topic, "records": end - start}


def old_warehouse(folder: Path) -> Warehouse:
    """Two loads of two topics, a third that died, and a file of somebody else."""
    state = folder / "_moldau"
    (state / "staging" / "cc").mkdir(parents=True)
    for number, (load, start, end) in enumerate((("aa", 0, 5), ("bb", 5, 9)), 1):
        files = [write(folder, topic, day, start, end, load) for topic, day in (("t", number), ("u", 0))]
        offsets = {"t": {"0": end + 1, "1": 7}, "u": {"0": end}}
        tree = {"format": 1, "number": number, "load_id": load, "created_ms": 0, "offsets": offsets, "files": files}
        (state / f"manifest-{number:06d}.json").write_text(json.dumps(tree))
    dead = write(folder, "t", 3, 9, 12, "cc")
    (state / "pending-cc.json").write_text(json.dumps([dead["path"]]))
    return Warehouse(folder)


def check_converted(warehouse: Warehouse) -> None:
    for topic, offsets in (("t", {0: 10, 1: 7}), ("u", {0: 9})):
        table = warehouse.table(topic)
        assert table is not None
        rows = table.dataset().to_table(columns=["_offset", "value", "_date"]).sort_by("_offset")
        assert rows["value"].to_pylist() == [b"v%d" % n for n in range(9)]
        found = table.offsets([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        assert {tp.partition: at for tp, at in found.items()} == offsets
    assert not (warehouse.where.path / "_moldau").exists()
    warehouse.check()


def test_every_record_and_offset_is_in_a_table_and_only_what_is_not_ours_is_left(tmp_path: Path) -> None:
    warehouse = old_warehouse(tmp_path)
    stranger = tmp_path / "topic=t" / "date=1970-01-02" / "notes.txt"
    stranger.write_text("mine")
    with pytest.raises(TableError, match="moldau pipeline convert"):
        warehouse.check()
    assert convert(warehouse) == {"t": 9, "u": 9}
    assert stranger.read_text() == "mine"
    assert [path for path in tmp_path.glob("topic=*/**/*") if path.is_file()] == [stranger]
    stranger.unlink()
    check_converted(warehouse)
    with pytest.raises(TableError, match="is not a warehouse of the earlier format"):
        convert(warehouse)


def test_the_old_files_stay_if_rows_were_removed_from_a_table_before_the_conversion_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> None:
        raise Died

    warehouse = old_warehouse(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(converting, "_remove", die)
        with pytest.raises(Died):
            convert(warehouse)
    DeltaTable(tmp_path / "t").restore(0)
    with pytest.raises(TableError, match=r"/t has 0 rows, but the manifests of t 9 records"):
        convert(warehouse)
    DeltaTable(tmp_path / "t").restore(1)
    assert convert(warehouse) == {"t": 9, "u": 9}
    check_converted(warehouse)


class Died(BaseException):
    """The process is gone."""


@pytest.mark.parametrize(
    ("where", "step"),
    [(converting, "_copy"), (Table, "create"), (Table, "commit"), (converting, "_remove"), (Path, "unlink")],
)
def test_killed_at_any_step_and_run_again_it_has_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, step: str
) -> None:
    real, deaths = getattr(where, step), 0
    while True:
        warehouse, left = old_warehouse(tmp_path / str(deaths)), [deaths]

        def mortal(*arguments: Any, left: list[int] = left, **named: Any) -> Any:
            if left[0] == 0:
                raise Died
            left[0] -= 1
            return real(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(where, step, mortal)
            try:
                convert(warehouse)
                break
            except Died:
                deaths += 1
        convert(warehouse)
        check_converted(warehouse)
    assert deaths >= 1
    check_converted(warehouse)


def damage(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        tree = json.loads(path.read_text())
        change(tree)
        path.write_text(json.dumps(tree))

    return apply


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text("{"), "not a manifest"),
        (lambda path: path.write_text("[]"), "not a manifest"),
        (damage(lambda tree: tree.pop("offsets")), "not a manifest"),
        (damage(lambda tree: tree["files"][0].pop("path")), "not a manifest"),
        (damage(lambda tree: tree["files"][0].update(path="topic=t/../../x")), "not a path inside"),
        (damage(lambda tree: tree["files"][0].update(records=4)), "have 9 records, but its manifests 8"),
        (damage(lambda tree: tree.update(format=9)), "format 9"),
        (damage(lambda tree: tree.update(number=5)), "says it is manifest 5"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: (path.parent / "pending-cc.json").write_text("{"), "is damaged"),
        (lambda path: next(path.parents[1].glob("topic=t/*/*-bb.parquet")).write_text("x"), "cannot be read"),
        (lambda path: next(path.parents[1].glob("topic=t/*/*-bb.parquet")).unlink(), "No such file"),
    ],
)
def test_what_cannot_be_converted_is_said_in_one_sentence_and_stays(
    tmp_path: Path, spoil: Callable[[Path], object], said: str
) -> None:
    warehouse = old_warehouse(tmp_path)
    spoil(tmp_path / "_moldau" / "manifest-000001.json")
    there = sorted(path for path in tmp_path.glob("topic=*/**/*"))
    with pytest.raises(TableError, match=said):
        convert(warehouse)
    assert sorted(path for path in tmp_path.glob("topic=*/**/*")) == there
    assert (tmp_path / "_moldau" / "manifest-000002.json").exists()
