"""Tables as their users read them: the examples of docs/warehouse.md run, and each reader finds every record."""

import re
from pathlib import Path

import duckdb
import polars
import pyarrow
import pytest
from deltalake import DeltaTable

from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.writing import TopicWriter
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.tables.columns import HEADERS, in_files, names_of_partitions, of_table
from moldau.pipeline.tables.storage import Location, location
from moldau.pipeline.tables.table import Table

PAGE = Path(__file__).parents[3] / "docs" / "warehouse.md"
DAY_US = 86_400_000_000
RECORDS = 100


def fetched(part: OffsetRange) -> pyarrow.RecordBatch:
    """Records of a partition, in turns of two dates; every tenth value is null, every fourth has a header."""
    offsets = list(range(part.start, part.end))
    columns = {
        "key": pyarrow.array([b"k%d" % n for n in offsets], pyarrow.binary()),
        "value": pyarrow.array([None if n % 10 == 9 else b"v%d" % n for n in offsets], pyarrow.binary()),
        "topic": pyarrow.array([part.topic] * len(offsets)),
        "partition": pyarrow.array([part.partition] * len(offsets), pyarrow.int32()),
        "offset": pyarrow.array(offsets, pyarrow.int64()),
        "timestamp": pyarrow.array([n % 2 * DAY_US + n for n in offsets], pyarrow.timestamp("us", "UTC")),
        "timestampType": pyarrow.array([0] * len(offsets), pyarrow.int32()),
        "headers": pyarrow.array([None if n % 4 else [{"key": "h", "value": b"x"}] for n in offsets], HEADERS),
    }
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def commit(folder: Path | Location, start: int, end: int, partition_by: str = "date") -> None:
    """A load of these offsets of two partitions into the table `flights`."""
    where = folder if isinstance(folder, Location) else location(folder)
    table = Table.create(where, of_table(in_files(), partition_by), names_of_partitions(partition_by))
    target = Target("flights", "", "", "ab", "lz4", where, where, partition_by, None, {})
    writer = TopicWriter(target, f"part-{start}")
    parts = [OffsetRange("flights", partition, start, end) for partition in (0, 1)]
    for part in parts:
        writer.add(fetched(part))
    before = table.offsets([part.topic_partition for part in parts])
    ends = {part.topic_partition: part.end for part in parts}
    table.commit(f"load-{start}", writer.finish().files, before, ends)


@pytest.fixture(params=["date", "hour", "none"])
def flights(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "flights"
    for start in range(0, RECORDS, 25):
        commit(folder, start, start + 25, request.param)
    return folder


def test_every_reader_finds_every_record(flights: Path) -> None:
    places = [(partition, offset) for partition in (0, 1) for offset in range(RECORDS)]
    delta = DeltaTable(flights)
    rows = delta.to_pyarrow_table(columns=["_partition", "_offset", "value", "_headers"]).sort_by(
        [("_partition", "ascending"), ("_offset", "ascending")]
    )
    assert list(zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True)) == places
    assert rows["value"].to_pylist()[:10] == [*(b"v%d" % n for n in range(9)), None]
    assert rows["_headers"].to_pylist()[:2] == [[{"key": "h", "value": b"x"}], None]
    frame = delta.to_pandas(columns=["_partition", "_offset"])
    assert sorted(zip(frame["_partition"], frame["_offset"], strict=True)) == places
    lazy = polars.scan_delta(str(flights)).select("_partition", "_offset", "value", "_timestamp")
    assert sorted(row[:2] for row in lazy.collect().rows()) == places
    assert lazy.filter(polars.col("_offset") == 7).collect()["value"].to_list() == [b"v7", b"v7"]
    table = delta.to_pyarrow_dataset()
    found = duckdb.sql("SELECT _partition, _offset FROM table ORDER BY ALL".replace("table", '"table"')).fetchall()
    assert found == places and table.count_rows() == 2 * RECORDS


def test_time_travel_goes_back_to_each_load(flights: Path) -> None:
    for version in range(5):
        assert DeltaTable(flights, version=version).to_pyarrow_dataset().count_rows() == version * 50


def test_the_examples_of_the_page_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for start in range(0, RECORDS, 25):
        commit(tmp_path / "flights", start, start + 25)
    DeltaTable(tmp_path / "flights").optimize.compact()
    page = PAGE.read_text().replace("WAREHOUSE", str(tmp_path))
    scripts = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(scripts) >= 3
    for script in scripts:
        exec(compile(script, "docs/warehouse.md", "exec"), {})
    said = capsys.readouterr().out
    assert "200" in said and "100 is the next offset of partition 0" in said and said.count("1970-01-02") == 2
    [sql] = re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    rows = duckdb.connect().execute(sql).fetchall()
    assert [(str(date), count) for date, count in rows] == [("1970-01-01", 100), ("1970-01-02", 100)]
