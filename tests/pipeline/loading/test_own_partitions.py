"""Partition columns that the user names: values in the log and in folders, nulls, limits, Iceberg, `--upsert`."""

import datetime
import json
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow
import pytest
from deltalake import DeltaTable

from moldau.cli import pipeline_load
from moldau.errors import ConfigError
from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.keys import with_keys
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.topic_tables import TopicTables
from moldau.pipeline.loading.writing import TopicWriter, WrittenFiles
from moldau.pipeline.tables import own_partitions
from moldau.pipeline.tables.columns import TableError, in_files, of_table
from moldau.pipeline.tables.committing import LoadedTable
from moldau.pipeline.tables.file_parts import read_part
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.maintenance import compact, vacuum
from moldau.pipeline.tables.versions import at_version, columns_of, portions
from moldau.pipeline.tables.warehouse import Warehouse
from tests.pipeline.loading.upserted import Sent, Upserted, fetched

BY = "region,day,n,yes"
DDL = "region STRING, day DATE, n INT, yes BOOLEAN, id BIGINT, x DOUBLE"
DECODER = decoder_of("t", Decoding("json", DDL), list)
ODD = "a/b=c%d e:ž'\"?"
TP = TopicPartition("t", 0)


def record(offset: int, **fields: Any) -> Sent:
    return Sent(0, offset, b"%d" % offset, json.dumps({"id": offset, **fields}).encode(), offset)


RECORDS = [
    record(0, region="eu", day="2024-02-29", n=-1, yes=True),
    record(1, region=ODD, day="2024-02-29", n=5, yes=False),
    record(2),
    record(3, region="eu", day="2024-02-29", n=-1, yes=True),
    record(4, region=""),
    record(5, region="x" * 65),
]


def write(table: LoadedTable, folder: Path, records: list[Sent], by: str = BY) -> WrittenFiles:
    rejected = Warehouse(folder).place_of_rejected("t")
    target = Target(
        "t", "", "", "ab", "lz4", table.where, rejected, by, DECODER, {}, table_format=table.table_format
    )  # fmt: skip
    writer = TopicWriter(target, f"part-{records[0].offset}")
    writer.add(fetched(records))
    return writer.finish()


def columns(by: str = BY) -> pyarrow.Schema:
    assert DECODER is not None
    return of_table(in_files(DECODER.schema), by)


def test_readers_of_delta_find_each_value(tmp_path: Path) -> None:
    table = Warehouse(tmp_path).create("t", columns(), BY)
    assert table.partition_columns == BY.split(",") and table.partition_by == BY
    written = write(table, tmp_path, RECORDS)
    assert [file.records for file in written.rejected] == [1]
    table.commit("a", written.files, {}, {TP: 6})
    folders = {str(Path(file.path).parent) for file in written.files}
    odd = "a%2Fb%3Dc%25d e%3Až%27%22%3F"
    nothing = "__HIVE_DEFAULT_PARTITION__"
    assert folders == {
        "region=eu/day=2024-02-29/n=-1/yes=true", f"region={odd}/day=2024-02-29/n=5/yes=false",
        f"region={nothing}/day={nothing}/n={nothing}/yes={nothing}",
    }  # fmt: skip
    day = datetime.date(2024, 2, 29)
    expected = [(0, "eu", day, -1, True), (1, ODD, day, 5, False), (2, None, None, None, None),
                (3, "eu", day, -1, True), (4, None, None, None, None)]  # fmt: skip
    for turn in range(2):
        delta = DeltaTable(tmp_path / "t")
        names = ["id", *BY.split(",")]
        assert sorted(polars.scan_delta(str(tmp_path / "t")).select(names).collect().rows()) == expected
        rows = delta.to_pyarrow_dataset()
        assert rows is not None
        assert duckdb.sql(f"SELECT {', '.join(names)} FROM rows ORDER BY ALL").fetchall() == expected
        table.commit(
            f"b{turn}", write(table, tmp_path, [record(6 + turn, region=ODD)]).files, {TP: 6 + turn}, {TP: 7 + turn}
        )
        expected.append((6 + turn, ODD, None, None, None))
        compact(table.where)
    vacuum(table.where, 0, force=True)
    assert polars.scan_delta(str(tmp_path / "t")).select("region").collect()["region"].to_list().count(ODD) == 3
    version = at_version(table.where)
    parts = [part for portion in portions(table.where, version) for part in portion]
    found = [read_part(table.where, columns_of(version), part, ["id", "region"]) for part in parts]
    regions = sorted((one["id"], one["region"]) for part in found for batch in part for one in batch.to_pylist())
    assert regions == [row[:2] for row in expected], "as Moldau's reader for Spark reads it"
    table.refresh()
    assert table.removed("t", {TP: 8}) is None and table.last_offset(0, 0, 9) == 7


def test_iceberg_partitions_by_identity(tmp_path: Path) -> None:
    where = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/w"}
    table = IcebergWarehouse("test", where, "lake").create("t", columns("region,n"), "region,n")
    assert table.partition_by == "region,n"
    written = write(table, tmp_path, RECORDS, "region,n")
    table.commit_once("a", written.files, {})
    found = table.scan().to_arrow().select(["id", "region", "n"]).to_pylist()
    assert sorted(tuple(one.values()) for one in found) == [
        (0, "eu", -1), (1, ODD, 5), (2, None, None), (3, "eu", -1), (4, "", None),
    ]  # fmt: skip
    assert len(list(table.scan().filter("region = 'eu'").plan_files())) == 1


def test_a_key_may_be_a_partition_and_a_row_moves_with_its_values(tmp_path: Path) -> None:
    keys = Decoding("json", "region STRING, id BIGINT", of="key")
    decoder = with_keys("t", Decoding("json", "n INT"), keys, lambda of: [])
    upserted = Upserted(tmp_path, decoder, "_key_region,n")

    def sent(offset: int, region: str | None, n: int | None) -> Sent:
        value = None if n is None else b'{"n": %d}' % n
        return Sent(0, offset, json.dumps({"region": region, "id": 1}).encode(), value, offset)

    upserted.load([[sent(0, "eu", 1), sent(1, "a/b", 1), sent(2, None, 1)]])
    upserted.load([[sent(3, "eu", 2), sent(4, "a/b", None), sent(5, None, 1)]])
    assert upserted.rows("_key_region", "n", "_offset") == [("eu", 2, 3), (None, 1, 5)]
    compact(upserted.table().where)
    upserted.load([[sent(6, "eu", None), sent(7, "a/b", 1), sent(8, None, None)]])
    assert upserted.rows("_key_region", "n", "_offset") == [("a/b", 1, 7)]


def test_too_many_values_and_columns_that_cannot_be_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moldau.pipeline.loading.writing.VALUES_MAX", 3)
    table = Warehouse(tmp_path).create("t", columns("id"), "id")
    with pytest.raises(TableError, match="--partition-by id has more than 3 values in one load"):
        write(table, tmp_path, [record(offset) for offset in range(4)], "id")
    for by, sentence in (
        ("nowhere", "--partition-by names nowhere, a column that this load of u does not make: its columns are reg"),
        ("x", "cannot be partitioned by x"),
        ("_offset", "cannot be partitioned by _offset: name a decoded column"),
    ):  # fmt: skip
        tables = TopicTables("u", Warehouse(tmp_path), Settings(partition_by=by))
        with pytest.raises(TableError, match=sentence):
            tables.check(DECODER)
    with pytest.raises(TableError, match=r"names region, a .* of u does not make: --decode and --decode-key make col"):
        TopicTables("u", Warehouse(tmp_path), Settings(partition_by="region")).check(None)
    known = TopicTables("t", Warehouse(tmp_path), Settings())
    known.refresh([TP], None)
    with pytest.raises(TableError, match="is partitioned by id, which is not among the columns of this load"):
        known.check(None)
    for wrong in ("region,", "region,region"):
        with pytest.raises(ConfigError, match=f"--partition-by '{wrong}' is none of date, hour, none, nor columns"):
            pipeline_load._partitions(wrong, False)


def test_dates_that_no_calendar_has_are_rejected() -> None:
    rows = pyarrow.record_batch(
        {"d": pyarrow.array([0, 10**7, None, -(10**7)], pyarrow.int32()).cast(pyarrow.date32())}
    )
    mask, why = own_partitions.unfit(rows, "d")
    assert mask.to_pylist() == [False, True, False, True] and "not a date of the years 1 to 9999" in why
