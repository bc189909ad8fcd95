"""What happened to an Iceberg table since the last load: the snapshots from the load's to the current one.

A load notes the id of its snapshot in the table's properties. If it is an ancestor of the current snapshot, and all
snapshots in between append or replace, no row is gone. Otherwise the files of both snapshots are compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow

from moldau.pipeline.tables.committing import LOAD_ID
from moldau.pipeline.tables.removals import PLACES, REQUEUE, PlaceBatches, Removed, compared, time_text

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as PyIcebergTable
    from pyiceberg.table.snapshots import Snapshot

SAFE = ("append", "replace")
EXPIRED = "an operation whose snapshot has expired"


class Lineage(NamedTuple):
    """The snapshots that are newer than the load's, newest first. `reached` says whether the load's is their ancestor;
    None if snapshots in between have expired, so that nobody can say."""

    newer: list["Snapshot"]
    reached: bool | None


def newest_of_loads(table: "PyIcebergTable") -> int | None:
    """The newest snapshot that a load made, if any is kept: of tables whose properties do not name it."""
    of_loads = [one for one in table.snapshots() if one.summary and LOAD_ID in one.summary.additional_properties]
    return max(of_loads, key=lambda one: one.sequence_number or one.timestamp_ms).snapshot_id if of_loads else None


def removed(
    table: "PyIcebergTable", mark: int, recorded: Mapping[int, int], rows: int | None, unique: bool = False
) -> Removed | None:
    """What was removed since the snapshot `mark` of the records that loads had added; None if nothing. `rows` is the
    number of rows that the table has at least. In a table with one row per key (`unique`) it also counts if records
    came back that loads had replaced or deleted."""
    lineage = _lineage(table, mark)
    for at, snapshot in enumerate(lineage.newer):
        if snapshot.summary is not None and REQUEUE in snapshot.summary.additional_properties:
            # it took records out of the quarantine, after it had looked at all snapshots before
            lineage, mark = Lineage(lineage.newer[:at], True), snapshot.snapshot_id
            break
    suspects = [one for one in lineage.newer if _operation(one) not in SAFE]
    if lineage.reached and not suspects:
        return None
    operation = _named(table, lineage, suspects)
    if table.snapshot_by_id(mark) is not None:
        return _compared(table, mark, recorded, operation, unique)
    fewer = lineage.reached is None and rows is not None and total(table) < rows
    return Removed(operation, None) if lineage.reached is False or fewer or any(map(_deletes, suspects)) else None


def _lineage(table: "PyIcebergTable", mark: int) -> Lineage:
    newer: list[Snapshot] = []
    at = table.metadata.current_snapshot_id
    while at is not None and at != -1 and at != mark:
        snapshot = table.snapshot_by_id(at)
        if snapshot is None:
            return Lineage(newer, None)
        newer.append(snapshot)
        at = snapshot.parent_snapshot_id
    if at != mark and newer and newer[-1].sequence_number != 1:
        return Lineage(newer, None)  # pyiceberg's expiry takes the parent's id from a snapshot that was not the first
    return Lineage(newer, at == mark)


def _operation(snapshot: "Snapshot") -> str:
    return snapshot.summary.operation.value if snapshot.summary else "unknown operation"


def _deletes(snapshot: "Snapshot") -> bool:
    """Whether a snapshot may have removed a row, by its summary."""
    if snapshot.summary is None:
        return True
    counts = snapshot.summary.additional_properties
    names = ("deleted-records", "added-position-deletes", "added-equality-deletes", "added-delete-files")
    return any(counts.get(name, "0") != "0" for name in names)


def _named(table: "PyIcebergTable", lineage: Lineage, suspects: list["Snapshot"]) -> str:
    """The oldest operation that may have removed rows, as a sentence names it."""
    if lineage.reached is False:
        log = table.metadata.snapshot_log
        when = time_text(log[-1].timestamp_ms) if log else ""
        return f"a rollback to snapshot {table.metadata.current_snapshot_id}{when}"
    if not suspects:
        return EXPIRED
    first = suspects[-1]
    return f"{_operation(first)} in snapshot {first.snapshot_id}{time_text(first.timestamp_ms)}"


def total(table: "PyIcebergTable") -> int:
    """The number of rows of the newest snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return 0
    counted = snapshot.summary.additional_properties.get("total-records", "") if snapshot.summary else ""
    return int(counted) if counted.isdecimal() else int(table.scan().count())


def _compared(
    table: "PyIcebergTable", mark: int, recorded: Mapping[int, int], operation: str, unique: bool
) -> Removed | None:
    """What the current snapshot lacks of the snapshot `mark`: only files that one of them does not have are read."""
    from pyiceberg.expressions.parser import parse

    before = {_key(task): task for task in table.scan(snapshot_id=mark).plan_files()}
    now = {_key(task): task for task in (table.scan().plan_files() if table.current_snapshot() else [])}
    gone = [task for key, task in before.items() if key not in now]
    came = [task for key, task in now.items() if key not in before]

    def of_partition(tasks: Sequence["FileScanTask"], partition: int, least: int, greatest: int) -> PlaceBatches:
        wanted = parse(f"_partition = {partition} and _offset >= {least} and _offset <= {greatest}")
        return _rows(table, tasks, wanted)

    loss = compared(operation, _rows(table, gone, None), partial(of_partition, came), recorded)
    if loss is None and unique:
        back = compared(operation, _rows(table, came, None), partial(of_partition, gone), recorded)
        loss = back and back._replace(back=True)
    return loss


def _key(task: "FileScanTask") -> tuple[str, frozenset[str]]:
    return task.file.file_path, frozenset(one.file_path for one in task.delete_files)


def _rows(table: "PyIcebergTable", tasks: Iterable["FileScanTask"], wanted: Any) -> Iterator[pyarrow.RecordBatch]:
    """The places of the rows in these files."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    columns = table.schema().select(*PLACES.names)
    scan = ArrowScan(table.metadata, table.io, columns, AlwaysTrue() if wanted is None else wanted)
    for batch in scan.to_record_batches(tasks):
        yield batch.select(PLACES.names).cast(PLACES)
