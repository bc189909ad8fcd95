"""Tables read by Spark with `format("moldau")`: every record as DuckDB reads it, old versions, and no file too many."""

import datetime
import decimal
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.datasource import EqualTo
from pyspark.sql.types import StructType

from moldau.errors import MoldauError
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.table_source.batch import FilteringTableReader, TableReader, schema_of_table
from moldau.pipeline.table_source.options import read_table_options
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.storage import location
from moldau.pipeline.tables.versions import at_version, portions
from tests.pipeline.tables.test_readers import commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UTC = datetime.UTC
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)


def read(spark: "SparkSession", table: Path, **options: str) -> "DataFrame":
    return spark.read.format("moldau").option("table", str(table)).options(**options).load()


def plain(value: Any) -> Any:
    """A value of Spark's or DuckDB's as comparable Python values."""
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    folder = tmp_path / "flights"
    for start in range(0, 100, 25):
        commit(folder, start, start + 25)
    return folder


def test_spark_reads_every_record_as_duckdb_does(spark: "SparkSession", flights: Path) -> None:
    table = DeltaTable(flights).to_pyarrow_dataset()
    assert table is not None
    columns = "_partition, _offset, value, _key, _date, _headers, epoch_us(_timestamp)"
    expected = duckdb.sql(f'SELECT {columns} FROM "table" ORDER BY _partition, _offset').fetchall()
    frame = read(spark, flights)
    assert frame.columns == [
        "value", "_key", "_partition", "_offset", "_timestamp", "_timestamp_type", "_headers", "_date",
    ]  # fmt: skip
    found = frame.selectExpr(*columns.replace("epoch_us", "unix_micros").split(", ")).collect()
    assert sorted([tuple(map(plain, row)) for row in found], key=lambda row: row[:2]) == expected
    assert len(expected) == 200
    assert spark.read.format("moldau").load(str(flights)).count() == 200


def test_all_types_come_as_they_are(spark: "SparkSession", tmp_path: Path) -> None:
    nested = pyarrow.struct([("a", pyarrow.int64()), ("l", pyarrow.list_(pyarrow.string()))])
    columns: dict[str, tuple[pyarrow.DataType, Any]] = {
        "b": (pyarrow.bool_(), True), "i1": (pyarrow.int8(), -1), "i2": (pyarrow.int16(), 2),
        "i4": (pyarrow.int32(), 3),
        "i8": (pyarrow.int64(), 1 << 60), "f": (pyarrow.float32(), 0.5), "d": (pyarrow.float64(), 0.1),
        "s": (pyarrow.string(), "ř"), "y": (pyarrow.binary(), b"\0"), "day": (pyarrow.date32(), NOON.date()),
        "at": (pyarrow.timestamp("us", "UTC"), NOON), "n": (pyarrow.decimal128(10, 2), decimal.Decimal("1.25")),
        "local": (pyarrow.timestamp("us"), NOON.replace(tzinfo=None)), "o": (nested, {"a": 1, "l": ["x", None]}),
        "m": (pyarrow.map_(pyarrow.string(), nested), [("k", {"a": 2, "l": None})]),
        "ls": (pyarrow.list_(nested), [{"a": None, "l": []}, None]), "p q": (pyarrow.string(), "a b/ř%20"),
    }  # fmt: skip
    values = {name: pyarrow.array([one, None], kind) for name, (kind, one) in columns.items()}
    write_deltalake(tmp_path, pyarrow.table(values), partition_by=["p q"])
    full, empty = sorted(read(spark, tmp_path).collect(), key=lambda row: row["b"] is None)
    found = plain(full)
    found["at"] = full["at"].astimezone(UTC)
    expected = {name: dict(one) if name == "m" else one for name, (_, one) in columns.items()}
    assert found == expected
    assert set(empty) == {None}
    assert read(spark, tmp_path, columns="o").where("o.a = 1").count() == 1
    assert read(spark, tmp_path, columns="P Q,i8").columns == ["p q", "i8"]


@pytest.mark.check  # a variant: `make test` has the usual case
def test_older_versions_are_read_by_number_and_time(spark: "SparkSession", flights: Path) -> None:
    for version in (0, 2, 4):
        assert read(spark, flights, versionAsOf=str(version)).count() == version * 50
    times = {one["version"]: one["timestamp"] for one in DeltaTable(flights).history()}
    for version in (1, 4):
        time = datetime.datetime.fromtimestamp(times[version] / 1000, UTC).isoformat()
        newest = max(one for one, at in times.items() if at <= times[version])
        assert read(spark, flights, timestampAsOf=time).count() == newest * 50


def test_files_that_a_filter_excludes_are_not_opened(spark: "SparkSession", flights: Path) -> None:
    for file in flights.glob("_date=1970-01-02/*"):
        file.write_bytes(b"no Parquet")
    chosen = {"filterPushdown": "true"}
    assert read(spark, flights, **chosen).where("_date = DATE'1970-01-01'").count() == 100
    for file in flights.glob("_date=1970-01-01/part-*"):
        if not file.name.startswith("part-50-"):
            file.unlink()
    text = "_date < '1970-01-02' AND _offset >= 50 AND _offset IN (50, 74) AND _key > 'k'"
    rows = read(spark, flights, **chosen).where(text).collect()
    assert sorted(row["_offset"] for row in rows) == [50, 50, 74, 74]


def test_a_file_that_is_gone_or_broken_is_named_in_a_sentence(flights: Path) -> None:
    for file in flights.glob("_date=1970-01-02/*"):
        file.write_bytes(b"no Parquet")
    for file in flights.glob("_date=1970-01-01/*"):
        file.unlink()
    reader = table_reader(flights, minPartitions="99")
    said = []
    for partition in reader.partitions():
        with pytest.raises(TableError) as caught:
            list(reader.read(partition))
        said.append(str(caught.value))
    assert len(said) == 8 and not any("\n" in one for one in said)
    assert sum("has lost _date=1970-01-01/part-" in one for one in said) == 4
    assert sum("cannot be used: " in one for one in said) == 4


@pytest.mark.check  # a variant: `make test` has the usual case
def test_queries_of_one_frame_do_not_see_the_filters_of_others(spark: "SparkSession", flights: Path) -> None:
    frame = read(spark, flights)
    assert (frame.where("_offset < 10").count(), frame.count()) == (20, 200)
    assert frame.where("_offset < 10").union(frame.where("_offset >= 95")).count() == 30


@pytest.mark.check  # a variant: `make test` has the usual case
def test_rows_of_files_from_before_a_change_have_nulls(spark: "SparkSession", tmp_path: Path) -> None:
    old = pyarrow.table({"id": [1], "o": [{"a": 1}]})
    new = pyarrow.table({"id": [2], "o": [{"a": 2, "b": "x"}], "added": [0.5]})
    for rows in (old, new):
        write_deltalake(tmp_path, rows, mode="append", schema_mode="merge")
    found = [plain(row) for row in read(spark, tmp_path).orderBy("id").collect()]
    assert found == [
        {"id": 1, "o": {"a": 1, "b": None}, "added": None},
        {"id": 2, "o": {"a": 2, "b": "x"}, "added": 0.5},
    ]


def test_a_large_file_is_cut_and_small_ones_are_put_together(flights: Path) -> None:
    where = location(flights)
    assert len(portions(where, at_version(where))) <= 2
    cut = portions(where, at_version(where), at_least=16)
    assert len(cut) >= 8 and sum(len(parts) for parts in cut) == 8
    write_deltalake(flights.parent / "one", pyarrow.table({"n": range(2_000_000)}))
    reader = table_reader(flights.parent / "one", minPartitions="3")
    partitions = [pickle.loads(pickle.dumps(one)) for one in reader.partitions()]
    assert len(partitions) >= 3
    assert sum(batch.num_rows for one in partitions for batch in reader.read(one)) == 2_000_000


def test_text_is_filtered_in_files_that_a_delete_of_deltalake_has_written(tmp_path: Path) -> None:
    """These say that text and bytes are views, which Arrow cannot compare with the value of a filter."""
    rows = {"n": [1, 2, 3], "s": ["a", "b", "c"], "y": [b"x", b"y", b"z"], "o": [{"s": "p"}, {"s": "q"}, {"s": "r"}]}
    write_deltalake(tmp_path, pyarrow.table(rows))
    DeltaTable(tmp_path).delete("n = 1")
    for one in (EqualTo(("s",), "b"), EqualTo(("y",), b"y"), EqualTo(("o", "s"), "q")):
        reader = FilteringTableReader(read_table_options({"table": str(tmp_path)}), schema_of(tmp_path))
        reader.pushFilters([one])
        found = [row["n"] for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
        assert 2 in found, "Spark filters what comes once more"


def schema_of(table: Path) -> StructType:
    return schema_of_table(read_table_options({"table": str(table)}))


def table_reader(table: Path, **options: str) -> TableReader:
    parsed = read_table_options({"table": str(table), **options})
    reader: TableReader = pickle.loads(pickle.dumps(TableReader(parsed, schema_of_table(parsed))))
    return reader


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"table": "nowhere"}, "nowhere is not a Delta table."),
        ({"versionAsOf": "5"}, "has no version 5: its newest is 4."),
        ({"versionAsOf": "-1"}, "Option versionAsOf is the number of a version, not '-1'."),
        ({"timestampAsOf": "2000-01-01"}, "has no version of 2000-01-01T00:00:00+00:00: its log begins later."),
        ({"timestampAsOf": "2999-01-01"}, "2999-01-01T00:00:00+00:00 is later than the newest version"),
        ({"timestampAsOf": "soon"}, "Option timestampAsOf is a date or a time such as"),
        ({"timestampAsOf": "2999-01-01", "versionAsOf": "1"}, "exclude each other"),
        ({"columns": "_offset,offset"}, "Option columns names 'offset', which is not one of value, _key"),
        ({"columns": "_offset,_OFFSET"}, "Option columns names a column twice."),
        ({"path": "elsewhere"}, "Option table and the path given to load() disagree"),
        ({"table": ""}, "Option table is empty"),
        ({"subscribe": "flights"}, "The moldau table source has no option 'subscribe'"),
        ({"kafka.bootstrap.servers": "x"}, "a table is read without a broker"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(flights: Path, options: dict[str, str], sentence: str) -> None:
    source = MoldauSource({"table": str(flights), **options})
    with pytest.raises(MoldauError) as said:
        source.schema()
    assert sentence in str(said.value) and "\n" not in str(said.value)


def test_a_stream_and_a_foreign_schema_are_refused(spark: "SparkSession", flights: Path) -> None:
    with pytest.raises(Exception, match="A table is read in batch"):
        MoldauSource({"table": str(flights)}).streamReader(StructType())
    reading = spark.read.format("moldau").option("table", str(flights))
    with pytest.raises(Exception, match="has no column _offset of type int"):
        reading.schema("_offset INT").load().collect()
    assert reading.schema("_offset BIGINT, _key BINARY").load().count() == 200
