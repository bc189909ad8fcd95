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

from moldau.pipeline import writing
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.warehouse import Staged
from moldau.pipeline.writing import SCHEMA, RangeWriter

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
        "headers": pyarrow.nulls(count, SCHEMA.field("headers").type),
    }
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def write(folder: Path, batches: Iterable[Any]) -> list[Staged]:
    writer = RangeWriter(folder, "0", OffsetRange("t", 3, 0, 10_000), "abc", "lz4")
    for one in batches:
        writer.add(one)
    return writer.finish()


def read(files: Iterable[Staged]) -> dict[int, tuple[bytes, int, str]]:
    """offset -> (value, time, date of its file); each offset once."""
    found: dict[int, tuple[bytes, int, str]] = {}
    for one in files:
        table = parquet.ParquetFile(one.staged_path).read()
        assert table.schema.equals(SCHEMA)
        times = table["timestamp"].cast(pyarrow.int64()).to_pylist()
        for value, offset, at in zip(table["value"].to_pylist(), table["offset"].to_pylist(), times, strict=True):
            assert offset not in found
            found[offset] = value, at, one.file.date
    return found


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-3, 60), min_size=1, max_size=40), max_size=6), st.integers(1, 5))
def test_every_record_lands_once_in_the_file_of_its_utc_date(
    tmp_path_factory: pytest.TempPathFactory, days: list[list[int]], open_files_max: int
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
    before = writing.OPEN_FILES_MAX
    writing.OPEN_FILES_MAX = open_files_max
    try:
        files = write(folder, batches)
    finally:
        writing.OPEN_FILES_MAX = before
    assert read(files) == expected
    names = [one.file.path for one in files]
    assert len(names) == len(dict.fromkeys(names))


def test_a_file_is_described_as_it_is(tmp_path: Path) -> None:
    (one,) = write(tmp_path, [batch([5, 6], [DAY_US + 2000, DAY_US + 1000]), batch([9], [DAY_US + 5999])])
    assert one.file.path == f"topic=t/date=1970-01-02/part-00003-{5:020d}-{10:020d}-abc.parquet"
    assert (one.file.start_offset, one.file.end_offset, one.file.records) == (5, 10, 3)
    day_ms = DAY_US // 1000
    assert (one.file.timestamp_ms_min, one.file.timestamp_ms_max) == (day_ms + 1, day_ms + 5)
    assert one.file.bytes == Path(one.staged_path).stat().st_size


def test_a_time_outside_the_calendar_goes_to_the_null_date(tmp_path: Path) -> None:
    beyond = 400_000 * 365 * 86_400_000_000
    files = write(tmp_path, [batch([0, 1, 2], [beyond // 2, -beyond // 2, 0])])
    assert sorted((one.file.date, one.file.start_offset, one.file.end_offset) for one in files) == [
        ("1970-01-01", 2, 3),
        (writing.UNDATED, 0, 2),
    ]
    assert len(read(files)) == 3


def test_large_ranges_become_row_groups_and_memory_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 10_000)
    monkeypatch.setattr(writing, "BUFFERED_BYTES_MAX", 12_000)
    writer = RangeWriter(tmp_path, "0", OffsetRange("t", 3, 0, 10_000), "abc", "lz4")
    for at in range(100):
        writer.add(batch(range(at * 100, at * 100 + 100), [DAY_US * (at % 2)] * 100))
        assert writer.buffered_bytes <= 12_000
    files = writer.finish()
    assert len(files) == 2 and len(read(files)) == 10_000
    assert all(1 < parquet.ParquetFile(one.staged_path).num_row_groups < 100 for one in files)


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    assert write(tmp_path, [batch([], [])]) == []
