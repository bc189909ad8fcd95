"""Writing a range: the right date for each record, nothing lost in splitting, bounds kept, statistics true."""

import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.pipeline.loading import writing
from moldau.pipeline.loading.rejected import RejectedRecord, Rejections
from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.writing import TopicWriter
from moldau.pipeline.tables.columns import HEADERS, WHY, in_files
from moldau.pipeline.tables.data_file import Bounds, DataFile
from moldau.pipeline.tables.storage import location

DAY_US = 86_400_000_000


def batch(offsets: Sequence[int], times_us: Sequence[int]) -> Any:
    """A batch as `read_columns` gives it: Kafka's columns, the topic among them."""
    count = len(offsets)
    columns = {
        "key": pyarrow.nulls(count, pyarrow.binary()),
        "value": pyarrow.array([b"v%d" % offset for offset in offsets], pyarrow.binary()),
        "topic": pyarrow.array(["t"] * count),
        "partition": pyarrow.array([3] * count, pyarrow.int32()),
        "offset": pyarrow.array(offsets, pyarrow.int64()),
        "timestamp": pyarrow.array(times_us, pyarrow.int64()).cast(pyarrow.timestamp("us", "UTC")),
        "timestampType": pyarrow.array([0] * count, pyarrow.int32()),
        "headers": pyarrow.nulls(count, HEADERS),
    }
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def writer_to(folder: Path, partition_by: str = "date", **others: Any) -> TopicWriter:
    places = location(folder), location(folder / "rejected")
    target = Target("t", "", "read_committed", "abc", "lz4", *places, partition_by, None, {})
    return TopicWriter(target._replace(**others), "part-0")


def write(folder: Path, batches: Iterable[Any], partition_by: str = "date") -> tuple[DataFile, ...]:
    writer = writer_to(folder, partition_by)
    for one in batches:
        writer.add(one)
    written = writer.finish()
    assert written.rejected == ()
    return written.files


def read(folder: Path, files: Iterable[DataFile]) -> dict[int, tuple[bytes, int, str | None]]:
    """offset -> (value, time, date of its file); each offset once."""
    found: dict[int, tuple[bytes, int, str | None]] = {}
    for one in files:
        table = parquet.ParquetFile(folder / one.path).read()
        assert table.schema.equals(in_files())
        times = table["_timestamp"].cast(pyarrow.int64()).to_pylist()
        for value, offset, at in zip(table["value"].to_pylist(), table["_offset"].to_pylist(), times, strict=True):
            assert offset not in found
            found[offset] = value, at, one.partition_values["_date"]
    return found


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-3, 60), min_size=1, max_size=40), max_size=6), st.integers(1, 5))
def test_every_record_lands_once_in_the_file_of_its_utc_date(
    tmp_path_factory: pytest.TempPathFactory, days: list[list[int]], dates_max: int
) -> None:
    folder = tmp_path_factory.mktemp("writing")
    batches, expected, offset = [], {}, 0
    for part in days:
        times = [day * DAY_US + 7 for day in part]
        offsets = list(range(offset, offset + len(part)))
        batches.append(batch(offsets, times))
        for number, at in zip(offsets, times, strict=True):
            date = (datetime.date(1970, 1, 1) + datetime.timedelta(days=at // DAY_US)).isoformat()
            expected[number] = b"v%d" % number, at, date
        offset += len(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "DATES_MAX", dates_max)
        files = write(folder, batches)
    assert read(folder, files) == expected
    names = [one.path for one in files]
    assert len(names) == len(dict.fromkeys(names))


def test_a_file_is_described_as_it_is(tmp_path: Path) -> None:
    (one,) = write(tmp_path, [batch([5, 6], [DAY_US + 2000, DAY_US + 1000]), batch([9], [DAY_US + 5999])])
    assert one.path == "_date=1970-01-02/part-0-0.parquet" and one.partition_values == {"_date": "1970-01-02"}
    assert one.bounds == {
        "_partition": Bounds(3, 3),
        "_offset": Bounds(5, 9),
        "_timestamp": Bounds(DAY_US + 1000, DAY_US + 5999),
    }
    assert (one.records, one.bytes) == (3, (tmp_path / one.path).stat().st_size)


def test_a_time_outside_the_calendar_goes_to_the_null_date(tmp_path: Path) -> None:
    beyond = 400_000 * 365 * 86_400_000_000
    files = write(tmp_path, [batch([0, 1, 2], [beyond // 2, -beyond // 2, 0])])
    assert sorted((one.partition_values["_date"] or "", one.bounds["_offset"]) for one in files) == [
        ("", Bounds(0, 1)),
        ("1970-01-01", Bounds(2, 2)),
    ]
    assert len(read(tmp_path, files)) == 3
    by_hour = write(tmp_path, [batch([0, 1, 2], [beyond // 2, -1, 0])], "hour")
    assert sorted(tuple(one.partition_values.values()) for one in by_hour if one.partition_values["_date"]) == [
        ("1969-12-31", "23"),
        ("1970-01-01", "0"),
    ]


def test_large_portions_become_row_groups_and_files_and_memory_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 10_000)
    monkeypatch.setattr(writing, "ROWS_BYTES_MAX", 30_000)
    monkeypatch.setattr(writing, "OPEN_FILES_MAX", 2)
    writer = writer_to(tmp_path)
    for at in range(300):
        writer.add(batch(range(at * 100, at * 100 + 100), [DAY_US * (at % 3)] * 100))
        assert writer.rows_bytes <= 30_000 and writer.open_files <= 2
    files = writer.finish().files
    assert len(read(tmp_path, files)) == 30_000
    monkeypatch.setattr(writing, "OPEN_FILES_MAX", 3)
    files = write(tmp_path, [batch(range(at * 100, at * 100 + 100), [DAY_US * (at % 3)] * 100) for at in range(300)])
    assert len(files) == 3
    assert all(1 < parquet.ParquetFile(tmp_path / one.path).num_row_groups < 100 for one in files)
    monkeypatch.setattr(writing, "FILE_BYTES_MAX", 40_000)
    assert len(write(tmp_path, [batch(range(at * 100, at * 100 + 100), [0] * 100) for at in range(100)])) > 3


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    assert write(tmp_path, [batch([], [])]) == ()


class Numbers:
    """Decodes values as numbers; every third record is bad, and every fifth has no event time."""

    schema = pyarrow.schema([("number", pyarrow.int64()), ("at", pyarrow.timestamp("us", "UTC"))])
    event_time = "at"
    notes = ()
    keys = None

    def decode(self, batch: Any) -> tuple[Any, Any]:
        numbers = [int(value[1:]) for value in batch.column("value").to_pylist()]
        bad = pyarrow.array([number % 3 == 0 for number in numbers])
        times = [None if number % 5 == 0 else number * DAY_US for number in numbers]
        columns = [pyarrow.array(numbers), pyarrow.array(times, pyarrow.timestamp("us", "UTC")), *batch.columns[1:]]
        decoded = pyarrow.RecordBatch.from_arrays(columns, schema=in_files(self.schema))
        rejected = batch.filter(bad)
        for field in WHY:
            why = pyarrow.array(["divisible by 3"] * rejected.num_rows, field.type)
            rejected = rejected.append_column(field, why)
        return decoded.filter(pyarrow.compute.invert(bad)), rejected


def test_decoded_columns_take_the_place_of_the_value_and_bad_records_go_elsewhere(tmp_path: Path) -> None:
    writer = writer_to(tmp_path, decoder=Numbers())
    writer.add(batch(range(12), [0] * 12))
    files, rejected, rejections, _ = writer.finish()
    assert rejections == Rejections(4, tuple(RejectedRecord(3, n, "divisible by 3") for n in (0, 3, 6)))
    found = {}
    for one in files:
        table = parquet.ParquetFile(tmp_path / one.path).read()
        assert table.column_names == ["number", "at", *in_files().names[1:]]
        found |= dict.fromkeys(table["number"].to_pylist(), one.partition_values["_date"])
    assert found == {n: None if n == 5 or n == 10 else f"1970-01-{n + 1:02d}" for n in range(12) if n % 3}
    [bad] = rejected
    rows = parquet.ParquetFile(tmp_path / "rejected" / bad.path).read().to_pylist()
    assert [(row["_topic"], row["_partition"], row["_offset"], row["value"], row["reason"]) for row in rows] == [
        ("t", 3, n, b"v%d" % n, "divisible by 3") for n in (0, 3, 6, 9)
    ]


def test_records_that_are_in_quarantine_already_are_written_nowhere(tmp_path: Path) -> None:
    writer = writer_to(tmp_path, decoder=Numbers(), quarantined={3: frozenset({0, 4})})
    writer.add(batch(range(7), [0] * 7))
    files, rejected, *_ = writer.finish()
    assert sorted(one.bounds["_offset"].least for one in files) == [1, 2, 5]
    assert [one.records for one in rejected] == [2]
