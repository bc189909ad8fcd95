"""The warehouse as a tier of the audit: the rows of a topic's table, read batch by batch.

A record's delay is the time at which its file was written minus its event time; a compaction writes files anew.
"""

from typing import Any

import pyarrow

from moldau.pipeline.audit.tiers import LOG_APPEND_TIME, add_columns, event_times
from moldau.pipeline.audit.windows import Digests
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.records.digests import Rows, digest_of

BATCH_ROWS = 65_536
COLUMNS = ["_key", "value", "_timestamp", "_timestamp_type", "_headers"]


class WarehouseTier:
    """What `moldau pipeline load` has committed to a warehouse: a folder or a URL."""

    name = "warehouse"

    def __init__(self, warehouse: str):
        self._warehouse = Warehouse(warehouse)
        self._warehouse.check()

    def digests(self, topic: str, length_ms: int) -> tuple[Digests, list[str]]:
        """The digests of the topic's committed records. Raises `TableError` for a file that cannot be read, and for a
        table of decoded columns or of the newest records, which no longer has all values."""
        rows: Rows = {}
        table = self._warehouse.table(topic)
        if table is not None:
            if table.key_columns:
                raise TableError(
                    f"{table.where.uri} has only the newest record of each key (--upsert), so it cannot be audited."
                )
            for name in ("value", "_key"):
                if name not in table.columns.names:
                    raise TableError(f"{table.where.uri} has decoded columns and no {name}, so it cannot be audited.")
            written_ms = {file.path: file.modified_ms for file in table.files()}
            for fragment in table.dataset().get_fragments():
                self._add(rows, fragment, length_ms, written_ms[fragment.path])
        notes = [] if rows else [f"{self.name}: {self._warehouse.where.uri} has no record of topic {topic}."]
        return {start: digest_of(row) for start, row in rows.items()}, notes

    def _add(self, rows: Rows, fragment: Any, length_ms: int, written_ms: int) -> None:
        try:
            for batch in fragment.to_batches(columns=COLUMNS, batch_size=BATCH_ROWS):
                times = _event_times(batch)
                add_columns(rows, batch.column("_key"), batch.column("value"), times, length_ms, written_ms)
        except (OSError, pyarrow.ArrowException) as error:
            why = str(error).splitlines()[0].rstrip(".")
            raise TableError(f"{fragment.path} cannot be read: {why}.") from None


def _event_times(batch: Any) -> Any:
    kinds = batch.column("_timestamp_type")
    if len(kinds) and kinds[0].as_py() == LOG_APPEND_TIME:
        return event_times(batch.column("_headers"), batch.column("_timestamp"))
    return batch.column("_timestamp")
