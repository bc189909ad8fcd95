"""Which records of loads a table has lost since the last load: the files that went against the files that came.

Another tool may add, update, compact or rewrite rows as it likes; lost are the records (`_partition`, `_offset`) below
the recorded offsets that were in files that are gone, and are in no file that came instead. `delta_log` and
`iceberg_lineage` say which files those are, and only an operation that may have removed rows makes anyone read them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import pyarrow
import pyarrow.compute as compute

from moldau.names import counted
from moldau.pipeline.tables.columns import TableError

PLACES: Final = pyarrow.schema([("_partition", pyarrow.int32()), ("_offset", pyarrow.int64())])
"""The columns that name a record."""
REQUEUE: Final = "moldauRequeue"
"""The key under which a commit that takes records out of the quarantine says so, in the table's history."""
PORTION_ROWS: Final = 4_000_000
"""Records that are compared at a time: 64 MB."""


class RowsRemoved(TableError):
    """Records that loads had added were removed from a table."""


class Lost(NamedTuple):
    """The number of lost records of a partition, and the least of their offsets."""

    records: int
    least: int


class Removed(NamedTuple):
    """What removed records: an operation, and what is lost by partition; None if its files are gone or unreadable. Or
    what came `back`: records of a table with one row per key that loads had replaced or deleted."""

    operation: str
    lost: Mapping[int, Lost] | None
    back: bool = False

    def __str__(self) -> str:
        if self.back and self.lost is None:
            return f"{self.operation} brought rows back"
        if self.lost is None:
            return f"{self.operation} removed rows"
        rows = counted(sum(one.records for one in self.lost.values()), "row")
        return f"{self.operation} brought {rows} back" if self.back else f"{self.operation} removed {rows}"


PlaceBatches = Iterable[pyarrow.RecordBatch]
"""Batches of the columns `PLACES`."""


def compared(
    operation: str, gone: PlaceBatches, came: Callable[[int, int, int], PlaceBatches], recorded: Mapping[int, int]
) -> Removed | None:
    """What is lost of the records in `gone` whose offset is below the `recorded` one of their partition; None if
    nothing is. `came` returns the rows of a partition from an offset to an offset, both included."""
    lost: dict[int, Lost] = {}
    try:
        for partition, offsets in _portions(gone, recorded):
            edges = compute.min_max(offsets).as_py()
            for batch in came(partition, edges["min"], edges["max"]):
                offsets = offsets.filter(compute.invert(compute.is_in(offsets, value_set=batch["_offset"])))
            if len(offsets):
                before = lost.get(partition, Lost(0, edges["max"]))
                least = compute.min(offsets).as_py()
                lost[partition] = Lost(before.records + len(offsets), min(before.least, least))
    except FileNotFoundError:
        return Removed(operation, None)
    return Removed(operation, lost) if lost else None


def _portions(gone: PlaceBatches, recorded: Mapping[int, int]) -> Iterator[tuple[int, pyarrow.Array]]:
    """The offsets of each partition below the recorded one, about `PORTION_ROWS` rows at a time."""
    waiting: list[pyarrow.RecordBatch] = []
    rows = 0
    for batch in gone:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= PORTION_ROWS:
            yield from _by_partition(waiting, recorded)
            waiting, rows = [], 0
    if waiting:
        yield from _by_partition(waiting, recorded)


def _by_partition(
    batches: list[pyarrow.RecordBatch], recorded: Mapping[int, int]
) -> Iterator[tuple[int, pyarrow.Array]]:
    table = pyarrow.Table.from_batches(batches)
    partitions, offsets = table["_partition"], table["_offset"]
    for partition in compute.unique(partitions).to_pylist():
        if partition in recorded:
            ours = compute.and_(compute.equal(partitions, partition), compute.less(offsets, recorded[partition]))
            distinct = compute.unique(offsets.filter(ours))
            if len(distinct):
                yield partition, distinct


def time_text(time_ms: object) -> str:
    """` of 2026-11-27T21:50:00Z`, or nothing where a tool wrote no usable time."""
    try:
        at = datetime.fromtimestamp(int(str(time_ms)) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f" of {at:%Y-%m-%dT%H:%M:%S}Z"
