"""The warehouse as a tier of the audit: the rows of a topic's table, read batch by batch.

A record's delay is the time at which its file was written minus its event time; a compaction writes files anew.
"""

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow

from moldau.pipeline.audit.tiers import add_columns, places_of, times_of
from moldau.pipeline.audit.windows import Digests
from moldau.pipeline.tables.columns import TableError, in_files
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.records.digests import Rows, digest_of

BATCH_ROWS = 65_536
COLUMNS = ["_key", "value", "_timestamp", "_timestamp_type", "_headers"]


class WarehouseTier:
    """What `moldau pipeline load` has committed to a warehouse: a folder or a URL."""

    name = "warehouse"
    of_origin = True

    def __init__(self, warehouse: str):
        self._warehouse = Warehouse(warehouse)
        self._warehouse.check_exists()

    def digests(self, topic: str, length_ms: int) -> tuple[Digests, list[str]]:
        """The digests of the topic's committed records. Raises `TableError` for a file that cannot be read, and for a
        table of decoded columns or of the newest records, which no longer has all values."""
        rows: Rows = {}
        table = self._warehouse.table(topic)
        if table is None:
            self._refuse_iceberg(topic)
        else:
            if table.key_columns:
                raise TableError(
                    f"{table.where.uri} has only the newest record of each key (--upsert), so it cannot be audited."
                )
            for name in ("value", "_key"):
                if name not in table.columns.names:
                    raise TableError(
                        f"{table.where.uri} has decoded columns and no {name}, so it cannot be audited: load its topic "
                        "into another warehouse, without --decode and --decode-key, and audit that one."
                    )
            written_ms = {file.path: file.modified_ms for file in table.files()}
            for fragment in table.dataset().get_fragments():
                for batch in _batches(fragment, COLUMNS):
                    keys, values, arrival_ms = batch.column("_key"), batch.column("value"), written_ms[fragment.path]
                    add_columns(rows, keys, values, _event_times(batch), length_ms, arrival_ms)
        notes = [] if rows else [f"{self.name}: {self._warehouse.where.uri} has no record of topic {topic}."]
        return {start: digest_of(row) for start, row in rows.items()}, notes

    def _refuse_iceberg(self, topic: str) -> None:
        where = self._warehouse.place(topic)
        if "metadata" in where.folders():
            raise TableError(f"{where.uri} is an Iceberg table, and the audit reads Delta tables only.")

    def places(self, topic: str, length_ms: int, windows: Collection[int]) -> Iterator[Any]:
        """The places of committed records in the origin's log. Raises `TableError` for a file that cannot be read."""
        table = self._warehouse.table(topic)
        for fragment in [] if table is None else table.dataset().get_fragments():
            for batch in _batches(fragment, [*COLUMNS, "_partition", "_offset"]):
                names = ("_key", "value", "_partition", "_offset")
                yield places_of(batch, names, _event_times(batch), length_ms, windows)


def _batches(fragment: Any, names: list[str]) -> Iterator[Any]:
    kinds = in_files()
    columns = pyarrow.schema([kinds.field(name) for name in names])
    try:
        for batch in fragment.to_batches(columns=names, batch_size=BATCH_ROWS):
            yield batch.cast(columns)  # files that another tool has rewritten have other variants of these types
    except (OSError, pyarrow.ArrowException) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"{fragment.path} cannot be read: {why}.") from None


def _event_times(batch: Any) -> Any:
    return times_of(batch.column("_timestamp_type"), batch.column("_timestamp"), batch.column("_headers"))
