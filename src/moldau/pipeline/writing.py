"""Writes one offset range to Parquet files, one for each event date. Runs in the loader's Spark tasks.

Columns are written as they were fetched; only Arrow works on single records. `BUFFERED_BYTES_MAX` bounds memory and
`OPEN_FILES_MAX` the open files: a date that recurs after its file was closed gets another file. When `finish` returns,
the files are complete and flushed in the load's staging folder; the driver moves them (see `warehouse.py`).
"""

import datetime
import os
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from moldau.pipeline.manifest import DataFile
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.warehouse import Staged

ROW_GROUP_BYTES = 32 * 1024 * 1024
BUFFERED_BYTES_MAX = 128 * 1024 * 1024
OPEN_FILES_MAX = 32
COMPRESSIONS = ("lz4", "snappy", "zstd", "none")
UNDATED = "__HIVE_DEFAULT_PARTITION__"  # what Hive, Spark, pyarrow and DuckDB all read as null

EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
DAYS_OF_CALENDAR = range(1 - EPOCH_ORDINAL, datetime.date.max.toordinal() - EPOCH_ORDINAL + 1)

SCHEMA = pyarrow.schema(
    [
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("timestamp", pyarrow.timestamp("us", "UTC")),
        ("timestampType", pyarrow.int32()),
        ("headers", pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))),
    ]
)


class DateFile:
    """An open Parquet file of one date, and the rows that wait for its next row group."""

    def __init__(self, path: Path, date: str, compression: str):
        self.path = path
        self._compression = compression
        self.date = date
        self.waiting: list[Any] = []
        self.waiting_bytes = 0
        self.records = 0
        self.start_offset = self.end_offset = 0
        self.timestamp_ms_min = self.timestamp_ms_max = 0
        self._writer: Any = None

    def add(self, batch: Any) -> None:
        offsets = batch.column("offset")
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        times = compute.min_max(batch.column("timestamp").cast(pyarrow.int64())).as_py()
        low, high = times["min"] // 1000, times["max"] // 1000
        if not self.records:
            self.start_offset, self.timestamp_ms_min, self.timestamp_ms_max = first, low, high
        self.timestamp_ms_min, self.timestamp_ms_max = min(self.timestamp_ms_min, low), max(self.timestamp_ms_max, high)
        self.end_offset = last + 1
        self.records += batch.num_rows
        self.waiting.append(batch)
        self.waiting_bytes += batch.nbytes

    def write(self) -> None:
        """Write the waiting rows as one row group."""
        if not self.waiting:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                str(self.path), SCHEMA, compression=self._compression, use_dictionary=["partition", "timestampType"],
                column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
                write_statistics=["partition", "offset", "timestamp"], data_page_size=1 << 20,
            )  # fmt: skip
        table = pyarrow.Table.from_batches(self.waiting, SCHEMA)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.waiting, self.waiting_bytes = [], 0

    def close(self) -> int:
        """Finish the file and flush it to disk. Returns its size in bytes."""
        self.write()
        self._writer.close()
        fd = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(fd)
            return os.fstat(fd).st_size
        finally:
            os.close(fd)


class RangeWriter:
    """Writes the batches of one range, in offset order, to files by date; `finish` returns the files.

    Files are created in the existing folder `staging`, under names that begin with `stem`, which must be unique.
    """

    def __init__(self, staging: Path, stem: str, part: OffsetRange, load_id: str, compression: str):
        self._part = part
        self._load_id = load_id
        self._compression = compression
        self._stem = stem
        self._staging = staging
        self._open: dict[str, DateFile] = {}  # the least recently used first
        self._done: list[Staged] = []
        self._created = 0
        self.buffered_bytes = 0

    def add(self, batch: Any) -> None:
        """Take one batch in Spark's columns (`moldau.client.fetching`)."""
        if not batch.num_rows:
            return
        days = batch.column("timestamp").cast(pyarrow.date32(), safe=False).cast(pyarrow.int32())
        columns = batch.select(SCHEMA.names)
        edges = compute.min_max(days)
        if edges["min"].as_py() not in DAYS_OF_CALENDAR or edges["max"].as_py() not in DAYS_OF_CALENDAR:
            days = _without_undated(days)
            edges = compute.min_max(days)
        if edges["min"] == edges["max"]:
            self._add(_date(edges["min"].as_py()), columns)
            return
        order = compute.sort_indices(days)
        runs = compute.run_end_encode(days.take(order))
        start = 0
        for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            self._add(_date(day), columns.take(order.slice(start, end - start)))
            start = end

    def finish(self) -> list[Staged]:
        """Complete every file and return all files, oldest first."""
        for file in list(self._open.values()):
            self._close(file)
        return self._done

    def _add(self, date: str, batch: Any) -> None:
        file = self._open.pop(date, None)
        if file is None:
            if len(self._open) >= OPEN_FILES_MAX:
                self._close(next(iter(self._open.values())))
            file = DateFile(self._staging / f"{self._stem}-{self._created}.parquet", date, self._compression)
            self._created += 1
        self._open[date] = file
        before = file.waiting_bytes
        file.add(batch)
        self.buffered_bytes += file.waiting_bytes - before
        if file.waiting_bytes >= ROW_GROUP_BYTES:
            self._write(file)
        while self.buffered_bytes > BUFFERED_BYTES_MAX:
            self._write(max(self._open.values(), key=lambda one: one.waiting_bytes))

    def _write(self, file: DateFile) -> None:
        self.buffered_bytes -= file.waiting_bytes
        file.write()

    def _close(self, file: DateFile) -> None:
        self.buffered_bytes -= file.waiting_bytes
        size = file.close()
        del self._open[file.date]
        part = self._part
        name = f"part-{part.partition:05d}-{file.start_offset:020d}-{file.end_offset:020d}-{self._load_id}.parquet"
        described = DataFile(
            path=f"topic={part.topic}/date={file.date}/{name}",
            topic=part.topic, partition=part.partition, date=file.date,
            start_offset=file.start_offset, end_offset=file.end_offset, records=file.records, bytes=size,
            timestamp_ms_min=file.timestamp_ms_min, timestamp_ms_max=file.timestamp_ms_max,
        )  # fmt: skip
        self._done.append(Staged(str(file.path), described))


def _without_undated(days: Any) -> Any:
    """The days, with all days outside the calendar mapped to one, so that their records keep their order."""
    first, last = pyarrow.scalar(DAYS_OF_CALENDAR[0], days.type), pyarrow.scalar(DAYS_OF_CALENDAR[-1], days.type)
    dated = compute.and_(compute.greater_equal(days, first), compute.less_equal(days, last))
    return compute.if_else(dated, days, pyarrow.scalar(DAYS_OF_CALENDAR[-1] + 1, days.type))


def _date(day: int) -> str:
    if day not in DAYS_OF_CALENDAR:
        return UNDATED
    return datetime.date.fromordinal(day + EPOCH_ORDINAL).isoformat()
