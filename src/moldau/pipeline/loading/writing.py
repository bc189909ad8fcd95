"""Writes the records of a portion to Parquet files, one for each date (or hour). Runs in the Spark tasks of a load.

Columns are written as they were fetched or decoded; only Arrow looks at single records. Rows of a date wait in memory
until they fill a row group, so records may come in any order of dates, from any number of partitions. `ROWS_BYTES_MAX`
bounds what waits, `OPEN_FILES_MAX` the files that are open, `DATES_MAX` the dates that are remembered: a date that
recurs after its file was closed gets another file. When `finish` returns, the files are complete and, on a local disk,
flushed.
"""

import datetime
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from moldau.pipeline.decoding.rejections import WRONG_PARTITION, Rejection, with_why
from moldau.pipeline.decoding.topic_decoder import DELETES
from moldau.pipeline.loading.rejected import Rejections
from moldau.pipeline.loading.target import Quarantined, Target
from moldau.pipeline.loading.upserting import NewestRows, apart, columns_of_tombstones, with_marks
from moldau.pipeline.tables.columns import (
    PARTITION_COLUMNS,
    REJECTED,
    WITH_STATISTICS,
    TableError,
    as_table_columns,
    in_files,
)
from moldau.pipeline.tables.data_file import DAYS_OF_CALENDAR, EPOCH_ORDINAL, Bounds, DataFile, TableFormat, folder_of
from moldau.pipeline.tables.own_partitions import VALUES_MAX, PartitionValues, by_value, own_columns, texts, unfit
from moldau.pipeline.tables.storage import Location, file_system

ROW_GROUP_BYTES = 32 * 1024 * 1024
ROWS_BYTES_MAX = 128 * 1024 * 1024
FILE_BYTES_MAX = 1024 * 1024 * 1024
OPEN_FILES_MAX = 64
DATES_MAX = 4096
COMPRESSIONS = ("lz4", "snappy", "zstd", "none")
HOURS = 24
BYTES = ("value", "_key", "_headers")
Unit = int | None | PartitionValues
"""What has files of its own: a date, an hour, or the values of the user's partition columns."""
DELTA_ENCODED = {"_offset": "DELTA_BINARY_PACKED", "_timestamp": "DELTA_BINARY_PACKED"}
"""Not in Iceberg tables: the vectorised reader of older Iceberg versions in Spark refuses this encoding."""


class WrittenFiles(NamedTuple):
    """The files of a portion: its records, those that could not be decoded, and with `--upsert` its tombstones."""

    files: tuple[DataFile, ...]
    rejected: tuple[DataFile, ...]
    rejections: Rejections
    tombstones: tuple[DataFile, ...] = ()


class Layout(NamedTuple):
    """How the files of one table are written."""

    table: Location
    columns: pyarrow.Schema
    partition_by: str
    event_time: str
    compression: str
    table_format: TableFormat = "delta"


class OneFile:
    """A Parquet file that is being written, and the rows that wait for its next row group."""

    def __init__(self, layout: Layout, path: str, partition_values: Mapping[str, str | None]):
        self._layout = layout
        self._path = path
        self._partition_values = partition_values
        self._rows: list[Any] = []
        self.rows_bytes = 0
        self.bytes_added = 0
        self._records = 0
        self._bounds: dict[str, Bounds] = {}
        self._unbounded: set[str] = set()
        of_iceberg = layout.table_format == "iceberg"
        self._partition_columns = PARTITION_COLUMNS.get(layout.partition_by, []) if of_iceberg else []
        apart = [] if of_iceberg else own_columns(layout.partition_by)
        self._columns = pyarrow.schema([field for field in layout.columns if field.name not in apart])
        self._sink: Any = None
        self._writer: Any = None

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def add(self, batch: Any) -> None:
        for name in WITH_STATISTICS:
            column = batch.column(name)
            least, greatest = compute.min_max(
                column.cast(pyarrow.int64()) if name == "_timestamp" else column
            ).as_py().values()  # fmt: skip
            if column.null_count:  # in files that another tool has written
                self._unbounded.add(name)
            else:
                bounds = Bounds(least, greatest)
                self._bounds[name] = bounds.and_also(self._bounds[name]) if name in self._bounds else bounds
        self._records += batch.num_rows
        self._rows.append(batch)
        self.rows_bytes += batch.nbytes
        self.bytes_added += batch.nbytes

    def write(self) -> None:
        """Write the waiting rows as one row group."""
        if not self._rows:
            return
        if self._writer is None:
            self._open()
        table = pyarrow.Table.from_batches(self._rows, self._layout.columns).select(self._columns.names)
        for field in self._partition_columns:
            value = pyarrow.scalar(self._partition_values[field.name], pyarrow.string()).cast(field.type)
            table = table.append_column(field, pyarrow.repeat(value, table.num_rows))
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._rows, self.rows_bytes = [], 0

    def close(self) -> DataFile:
        """Finish the file; a local one is flushed to disk."""
        self.write()
        self._writer.close()
        where = self._layout.table
        if where.is_local:
            fd = os.open(where.path / self._path, os.O_RDONLY)
            try:
                os.fsync(fd)
                size = os.fstat(fd).st_size
            finally:
                os.close(fd)
        else:
            size = self._sink.tell()
            self._sink.close()
        bounds = {name: of_column for name, of_column in self._bounds.items() if name not in self._unbounded}
        return DataFile(self._path, size, time.time_ns() // 1_000_000, self._partition_values, self._records, bounds)

    def _open(self) -> None:
        where = self._layout.table
        if where.is_local:
            path = Path(where.uri, self._path)
            path.parent.mkdir(exist_ok=True, parents=True)
            self._sink = str(path)
        else:
            self._sink = file_system(where).open_output_stream(self._path)
        columns = pyarrow.schema([*self._columns, *self._partition_columns])
        names = columns.names
        self._writer = parquet.ParquetWriter(
            self._sink, columns, compression=self._layout.compression, data_page_size=1 << 20,
            use_dictionary=[name for name in names if name not in (*BYTES, *DELTA_ENCODED)],
            column_encoding=DELTA_ENCODED if self._layout.table_format == "delta" else None,
            write_statistics=[name for name in names if name not in BYTES],
        )  # fmt: skip


class TableWriter:
    """Writes batches to the files of one table, by date; `finish` returns the files.

    Names of files begin with `stem`, which must be unique in the table.
    """

    def __init__(self, layout: Layout, stem: str):
        self._layout = layout
        self._stem = stem
        self._files: dict[Unit, OneFile] = {}  # the least recently used first
        self._own = own_columns(layout.partition_by)
        self._units: set[PartitionValues] = set()
        self._done: list[DataFile] = []
        self._created = 0
        self.rows_bytes = 0

    def add(self, batch: Any) -> None:
        """Take one batch in the table's columns."""
        if batch.num_rows:
            units = by_value(batch, self._own) if self._own else None
            for unit, rows in units or _by_unit(batch, self._layout.event_time, self._layout.partition_by):
                self._add(unit, rows)

    @property
    def open_files(self) -> int:
        return sum(file.is_open for file in self._files.values())

    def finish(self) -> tuple[DataFile, ...]:
        """Complete every file and return all files, oldest first."""
        for unit in list(self._files):
            self._close(unit)
        return tuple(self._done)

    def _add(self, unit: Unit, batch: Any) -> None:
        file = self._files.pop(unit, None)
        if file is None:
            if len(self._files) >= DATES_MAX:
                self._close(next(iter(self._files)))
            file = self._new(unit)
        self._files[unit] = file
        before = file.rows_bytes
        file.add(batch)
        self.rows_bytes += file.rows_bytes - before
        if file.rows_bytes >= ROW_GROUP_BYTES:
            self._write(unit)
        while self.rows_bytes > ROWS_BYTES_MAX:
            self._write(max(self._files, key=lambda one: self._files[one].rows_bytes))
        if file.bytes_added >= FILE_BYTES_MAX:
            self._close(unit)

    def _new(self, unit: Unit) -> OneFile:
        if isinstance(unit, tuple):
            self._units.add(unit)
            if len(self._units) > VALUES_MAX:
                raise TableError(
                    f"--partition-by {self._layout.partition_by} has more than {VALUES_MAX:,} values in one load: "
                    "begin a new table with columns of fewer values"
                )
            values = dict(zip(self._own, texts(unit), strict=True))
        else:
            values = partition_values(unit, self._layout.partition_by)
        name = f"{self._stem}-{self._created}.parquet"
        self._created += 1
        folder = folder_of(values)
        return OneFile(self._layout, f"{folder}/{name}" if folder else name, values)

    def _write(self, unit: Unit) -> None:
        file = self._files[unit]
        if not file.is_open:
            opened = [other for other, one in self._files.items() if one.is_open]
            if len(opened) >= OPEN_FILES_MAX:
                self._close(opened[0])
        self.rows_bytes -= file.rows_bytes
        file.write()

    def _close(self, unit: Unit) -> None:
        file = self._files.pop(unit)
        self.rows_bytes -= file.rows_bytes
        self._done.append(file.close())


class TopicWriter:
    """Decodes fetched batches and writes them to the topic's table, and what could not be decoded to the other one."""

    def __init__(self, target: Target, stem: str):
        decoder = self._decoder = target.decoder
        self._quarantined = target.quarantined
        columns = in_files(decoder.schema, decoder.keys) if decoder else in_files()
        event_time = decoder.event_time if decoder else "_timestamp"
        how = target.compression, target.table_format
        layout = Layout(target.table, columns, target.partition_by, event_time, *how)
        self._topic = target.topic
        self._own = own_columns(target.partition_by)
        self._writer = TableWriter(layout, stem)
        self.rejections = Rejections()
        self._rejected = TableWriter(Layout(target.rejected, REJECTED, "none", "_timestamp", *how), stem)
        self._columns = columns
        self._newest = NewestRows(target.key_columns) if target.key_columns else None
        self._of_tombstones = columns_of_tombstones(columns, target.key_columns)
        layout = Layout(target.table, self._of_tombstones, "none", "_timestamp", *how)
        self._tombstones = TableWriter(layout, f"{stem}-tombstones")

    def add(self, fetched: Any) -> None:
        """Take one fetched batch (`moldau.client.fetching`)."""
        batch = as_table_columns(fetched)
        if self._quarantined:
            batch = _without(batch, self._quarantined)
        if self._newest is not None:
            batch, without_key = with_marks(batch)
            if without_key is not None:
                self._reject(without_key)
        if self._decoder is None or not batch.num_rows:
            self._take(batch)  # without decoded columns there are no partition columns but those of the load
            return
        decoded, rejected = self._decoder.decode(batch)
        assert decoded.num_rows + rejected.num_rows == batch.num_rows, "a decoder returns every record once"
        self._take(self._fit(decoded, batch))
        if rejected.num_rows:
            self._reject(rejected)

    def _fit(self, decoded: Any, batch: Any) -> Any:
        """The decoded rows without those whose values cannot be partitions; these are rejected as they were given."""
        for name in self._own:
            mask, why = unfit(decoded, name)
            if mask is not None and self._newest is not None:
                mask = compute.and_not(mask, decoded[DELETES])  # these go to no partition
            if mask is not None:
                given = batch.filter(compute.is_in(batch["_offset"], decoded.filter(mask)["_offset"]))
                self._reject(with_why(given, [Rejection(WRONG_PARTITION, why, name)] * given.num_rows))
                decoded = decoded.filter(compute.invert(mask))
        return decoded

    def _take(self, batch: Any) -> None:
        if self._newest is None:
            self._writer.add(batch)
        else:
            self._put(self._newest.add(batch))

    def _put(self, rows: Any) -> None:
        if rows is not None:
            values, tombstones = apart(rows)
            self._writer.add(values.select(self._columns.names))
            self._tombstones.add(tombstones.select(self._of_tombstones.names))

    def _reject(self, rejected: Any) -> None:
        topics = pyarrow.array([self._topic]).take(pyarrow.array([0] * rejected.num_rows))
        self._rejected.add(rejected.append_column("_topic", topics).select(REJECTED.names))
        self.rejections = self.rejections.and_also(Rejections.of(rejected))

    @property
    def rows_bytes(self) -> int:
        """The bytes of the rows that wait in memory."""
        waiting = 0 if self._newest is None else self._newest.rows_bytes + self._tombstones.rows_bytes
        return self._writer.rows_bytes + self._rejected.rows_bytes + waiting

    @property
    def open_files(self) -> int:
        return self._writer.open_files + self._rejected.open_files

    def finish(self) -> WrittenFiles:
        if self._newest is None:
            return WrittenFiles(self._writer.finish(), self._rejected.finish(), self.rejections)
        self._put(self._newest.finish())
        return WrittenFiles(self._writer.finish(), self._rejected.finish(), self.rejections, self._tombstones.finish())


def partition_values(unit: int | None, partition_by: str) -> dict[str, str | None]:
    """The values of the partition columns of a date (days since 1970) or hour (hours since 1970)."""
    if partition_by == "none":
        return {}
    if unit is None:
        return {"_date": None} if partition_by == "date" else {"_date": None, "_hour": None}
    day, hour = (unit, 0) if partition_by == "date" else divmod(unit, HOURS)
    date = datetime.date.fromordinal(day + EPOCH_ORDINAL).isoformat()
    return {"_date": date} if partition_by == "date" else {"_date": date, "_hour": str(hour)}


def _by_unit(batch: Any, event_time: str, partition_by: str) -> Iterator[tuple[int | None, Any]]:
    """The rows of each date or hour, in their order. None stands for times that are null or have no date."""
    if partition_by == "none":
        yield None, batch
        return
    times = batch.column(event_time)
    units = _units(times, partition_by)
    edges = compute.min_max(units)
    if edges["min"] == edges["max"] and not units.null_count:
        yield edges["min"].as_py(), batch
        return
    order = compute.sort_indices(units)  # a stable sort; nulls last
    runs = compute.run_end_encode(units.take(order))
    start = 0
    for unit, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield unit, batch.take(order.slice(start, end - start))
        start = end


def _units(times: Any, partition_by: str) -> Any:
    """Days or hours since 1970, null where there is no date."""
    days = times.cast(pyarrow.date32(), safe=False).cast(pyarrow.int32())
    edges = compute.min_max(days)
    least, greatest = edges["min"].as_py(), edges["max"].as_py()
    if least is not None and (least not in DAYS_OF_CALENDAR or greatest not in DAYS_OF_CALENDAR):
        first, last = pyarrow.scalar(DAYS_OF_CALENDAR[0], days.type), pyarrow.scalar(DAYS_OF_CALENDAR[-1], days.type)
        dated = compute.and_(compute.greater_equal(days, first), compute.less_equal(days, last))
        days = compute.if_else(dated, days, pyarrow.scalar(None, days.type))
    if partition_by == "date":
        return days
    within = compute.subtract(
        times.cast(pyarrow.timestamp("us")).cast(pyarrow.int64()),
        compute.multiply(days.cast(pyarrow.int64()), pyarrow.scalar(86_400_000_000)),
    )
    hours = compute.divide(within, pyarrow.scalar(3_600_000_000))
    return compute.add(compute.multiply(days.cast(pyarrow.int64()), pyarrow.scalar(HOURS)), hours)


def _without(batch: Any, quarantined: Quarantined) -> Any:
    """The batch without records that are in the table of rejected records already. A batch has one partition."""
    known = quarantined.get(batch.column("_partition")[0].as_py()) if batch.num_rows else None
    if not known:
        return batch
    there = compute.is_in(batch.column("_offset"), pyarrow.array(sorted(known), pyarrow.int64()))
    return batch.filter(compute.invert(there))
