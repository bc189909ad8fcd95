"""`pipeline convert`: a warehouse of format 1 becomes Delta tables, losing nothing.

Topic by topic, the records are written anew under the columns' present names and committed in one step together with
the topic's offsets. Only when every topic is converted, and each table has as many records as its manifests, are the
old files removed, the manifests last. Killed at any moment and run again, it goes on: a topic whose table has offsets
is done, and what an earlier run wrote without committing is in no table.
"""

import contextlib
import shutil
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet

from moldau.errors import StorageError
from moldau.pipeline.conversion.manifests import STATE, OldFile, OldWarehouse, read
from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.writing import TopicWriter
from moldau.pipeline.tables.columns import TableError, in_files, names_of_partitions, of_table
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.runtime import Runtime

BATCH_RECORDS = 100_000


def convert(warehouse: Warehouse, partition_by: str = "date") -> dict[str, int]:
    """Convert a local warehouse; the number of records of each topic. Raises TableError with one sentence; then the old
    files are all still there."""
    if not warehouse.where.is_local:
        raise TableError("A warehouse of the earlier format is a local folder; an object store has none.")
    folder, runtime = warehouse.where.path, Runtime()
    if not (folder / STATE).is_dir():
        raise TableError(f"{folder} is not a warehouse of the earlier format.")
    try:
        release = runtime.disk.lock(folder / STATE / "lock")
    except (StorageError, OSError):
        raise TableError(f"Another command is writing to {folder}; wait until it has ended.") from None
    try:
        old = read(folder)
        converted = {}
        for topic in sorted({tp.topic for tp in old.offsets}):
            converted[topic] = _convert(warehouse, topic, old, partition_by, runtime.random.uuid().hex[:12])
        _remove(folder, old)
    except OSError as error:
        raise TableError(f"{error.filename or folder} cannot be used: {error.strerror}.") from None
    finally:
        release()
    return converted


def _convert(warehouse: Warehouse, topic: str, old: OldWarehouse, partition_by: str, load_id: str) -> int:
    """Make the table of one topic; the number of its records."""
    place = warehouse.place(topic)
    offsets = {tp: offset for tp, offset in old.offsets.items() if tp.topic == topic}
    files = [file for file in old.files if file.topic == topic]
    table = Table.create(place, of_table(in_files(), partition_by), names_of_partitions(partition_by))
    there = table.offsets(list(offsets))
    expected = sum(file.records for file in files)
    if not there:
        target = Target(
            topic, "", "", load_id, "lz4", place, warehouse.place_of_rejected(topic), table.partition_by, None, {}
        )  # fmt: skip
        writer = TopicWriter(target, f"part-00000-{load_id}-0")
        for file in files:
            _copy(file, writer)
        written = writer.finish().files
        records = sum(file.records for file in written)
        if records != expected:
            raise TableError(f"The files of {topic} have {records:,} records, but its manifests {expected:,}.")
        table.commit(load_id, written, {}, offsets)
        return records
    if any(there.get(tp, 0) < offset for tp, offset in offsets.items()):
        raise TableError(f"{place.uri} is a table with other offsets; convert into a folder without it.")
    if table.count() != expected:
        raise TableError(
            f"{place.uri} has {table.count():,} rows, but the manifests of {topic} {expected:,} records: another tool "
            "has changed the table; move it away and convert again."
        )
    return expected


def _copy(file: OldFile, writer: TopicWriter) -> None:
    try:
        with parquet.ParquetFile(file.path) as opened:
            for batch in opened.iter_batches(BATCH_RECORDS):
                writer.add(batch)
    except (pyarrow.ArrowException, KeyError) as error:
        first = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"{file.path} cannot be read: {first}; restore it from a backup.") from None


def _remove(folder: Path, old: OldWarehouse) -> None:
    """Remove the old files, then their folders if nothing else is in them, and the manifests last."""
    folders = set()
    for path in [*(file.path for file in old.files), *old.leftovers]:
        path.unlink(missing_ok=True)
        folders |= {path.parent, path.parent.parent}
    for path in sorted(folders, key=lambda one: -len(one.parts)):
        with contextlib.suppress(OSError):  # somebody else's files are in there, or it is gone
            path.rmdir()
    shutil.rmtree(folder / STATE)
