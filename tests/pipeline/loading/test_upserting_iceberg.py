"""Iceberg tables with one row per key: as `test_upserting`, by overwrites that a catalog commits."""

import random
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.types import StringType

from harness.tiers import seed_or
from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.decoding.keys import with_keys
from moldau.pipeline.loading import merging, upserting
from moldau.pipeline.loading.removed_rows import standing
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.iceberg_table import IcebergTable
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.removals import RowsRemoved
from tests.pipeline.loading.upserted import Sent, Upserted, expected

TPS = [TopicPartition("t", number) for number in range(3)]


class Died(BaseException):
    """The process is gone."""


def properties(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/w"}


def warehouse(folder: Path) -> IcebergWarehouse:
    return IcebergWarehouse("test", properties(folder), "lake")


def by_others(folder: Path) -> PyIcebergTable:
    return load_catalog("test", **properties(folder)).load_table(("lake", "t"))


def sent(*values: tuple[bytes, bytes | None], first: int = 0) -> list[Sent]:
    return [Sent(0, first + at, key, value, first + at) for at, (key, value) in enumerate(values)]


@pytest.mark.parametrize("partition_by", ["none", "date"])
def test_loads_leave_the_newest(tmp_path: Path, partition_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upserting, "WAITING_BYTES_MAX", 300)
    monkeypatch.setattr(merging, "CHUNK_ROWS", 7)
    chance = random.Random(seed_or(6))
    upserted, model, time_ms = Upserted(warehouse(tmp_path), partition_by=partition_by), {}, 0
    for turn in range(4):
        records = []
        for at in range(20):
            time_ms += chance.randrange(3) * 10_000_000
            key, value = b"k%d" % chance.randrange(20), chance.choice((b"v%d" % time_ms, None))
            records.append(Sent(at % 2, 10 * turn + at // 2, key, value, time_ms))
        upserted.load([records[0::2]], [records[1::2]])
        model = expected(records, model)
        assert upserted.rows() == sorted((one.key, one.value, one.partition, one.offset) for one in model.values())
        table = upserted.table()
        assert table.count() == len(model) == table.rows("t")
        assert table.removed("t", table.offsets(TPS)) is None
    assert by_others(tmp_path).scan().to_arrow().num_rows == len(model), "other readers see the same"


def test_decoded_keys_that_are_partitions_too(tmp_path: Path) -> None:
    keys = Decoding("json", "region STRING, id SMALLINT", of="key")
    decoder = with_keys("t", Decoding("json", "n SMALLINT"), keys, lambda of: [])
    upserted = Upserted(warehouse(tmp_path), decoder, "_key_region,n")
    eu, nowhere = b'{"region": "a/b", "id": 1}', b'{"id": 1}'
    upserted.load([sent((eu, b'{"n": 1}'), (nowhere, b'{"n": 1}'))])
    upserted.load([sent((eu, b'{"n": 2}'), (nowhere, None), first=2)])
    assert upserted.rows("_key_region", "_key_id", "n", "_offset") == [("a/b", 1, 2, 2)]


def test_whoever_commits_first_is_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upserted = Upserted(warehouse(tmp_path))
    upserted.load([sent((b"a", b"1"), (b"b", b"1"))])
    real, others = IcebergTable.commit_once, []

    def commit_once(self: Any, *arguments: Any, **others_given: Any) -> Any:
        if others:
            others.pop()()
        return real(self, *arguments, **others_given)

    monkeypatch.setattr(IcebergTable, "commit_once", commit_once)
    foreign = by_others(tmp_path).scan().to_arrow().select(["_key", "value"]).slice(0, 1)
    others.append(lambda: by_others(tmp_path).append(foreign))
    held = upserted.table()
    assert held.removed("t", held.offsets(TPS)) is None
    upserted.load([sent((b"a", b"2"), first=2)])
    assert upserted.rows("_key", "value") == [(b"a", b"2"), (b"b", b"1")], "the foreign row of a is replaced, too"
    others.append(lambda: Upserted(warehouse(tmp_path)).load([sent((b"a", b"3"), first=3)]))
    with pytest.raises(Conflict, match="Another load has committed to"):
        upserted.load([sent((b"a", b"3"), first=3)])
    others.append(lambda: by_others(tmp_path).delete("_offset = 1"))
    with pytest.raises(Conflict, match="Rows were removed from"):
        upserted.load([sent((b"c", b"1"), first=4)])
    held.refresh()
    assert "removed 1 row" in str(held.removed("t", held.offsets(TPS)))


def headers_on_disk(upserted: Upserted) -> dict[bytes, Any]:
    """By key, as the files have them: pyiceberg's reader makes empty lists of null ones."""
    files = [live.path.removeprefix("file://") for live in upserted.table().live_files()]
    rows = [row for path in files for row in parquet.read_table(path, columns=["_key", "_headers"]).to_pylist()]
    return {row["_key"]: row["_headers"] for row in rows}


def test_rows_beside_a_replaced_one_keep_their_lists_and_columns_that_were_renamed(tmp_path: Path) -> None:
    upserted = Upserted(warehouse(tmp_path))
    upserted.load([sent((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))])
    upserted.load([sent((b"b", b"2"), first=3)])
    of = {b"a": None, b"b": [{"key": "h", "value": b"3"}], b"c": None}
    assert headers_on_disk(upserted) == of
    with by_others(tmp_path).update_schema() as update:
        update.add_column("extra", StringType())
    foreign = {"_key": [b"x", b"y"], "value": [b"1", b"1"], "extra": ["e", "f"]}
    by_others(tmp_path).append(pyarrow.table(foreign, by_others(tmp_path).schema().select(*foreign).as_arrow()))
    with by_others(tmp_path).update_schema() as update:
        update.rename_column("extra", "more")
    upserted.load([sent((b"x", b"2"), first=5)])
    rows = by_others(tmp_path).scan(selected_fields=("_key", "more")).to_arrow().to_pylist()
    assert {row["_key"]: row["more"] for row in rows} == {b"a": None, b"b": None, b"c": None, b"x": None, b"y": "f"}
    assert headers_on_disk(upserted).items() >= of.items()


def test_a_load_that_dies_has_changed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upserted = Upserted(warehouse(tmp_path))
    upserted.load([sent((b"a", b"1"), (b"b", b"1"))])

    def die(*_: Any, **__: Any) -> Any:
        raise Died

    for where, name in ((merging, "_compared"), (merging.Rewriting, "finish"), (IcebergTable, "commit_once")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, die)
            with pytest.raises(Died):
                upserted.load([sent((b"a", b"2"), (b"b", None), first=2)])
        assert upserted.rows("value") == [(b"1",), (b"1",)] and upserted.table().offsets(TPS) == {TPS[0]: 2}
    upserted.load([sent((b"a", b"2"), (b"b", None), first=2)])
    assert upserted.rows("_key", "value") == [(b"a", b"2")]


def test_a_rollback_is_noticed_by_the_rows_that_come_back(tmp_path: Path) -> None:
    upserted = Upserted(warehouse(tmp_path))
    upserted.load([sent((b"a", b"1"), (b"b", b"1"))])
    upserted.load([sent((b"a", None), first=2)])
    table = by_others(tmp_path)
    with table.manage_snapshots() as snapshots:
        snapshots.rollback_to_snapshot(table.snapshots()[0].snapshot_id)
    with pytest.raises(RowsRemoved, match=r"a rollback to snapshot .* brought 1 row back; load what followed"):
        standing(upserted.table(), "t", TPS, "refuse")
    assert standing(upserted.table(), "t", TPS, "reload").offsets == {TPS[0]: 2}
