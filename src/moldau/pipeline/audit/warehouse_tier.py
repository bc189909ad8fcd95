"""The warehouse as a tier of the audit: the committed files of a topic, read batch by batch.

A record's delay is the time of the commit of its file minus its event time.
"""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet

from moldau.pipeline.audit.tiers import LOG_APPEND_TIME, add_columns, event_times
from moldau.pipeline.audit.windows import Digests
from moldau.pipeline.manifest import WarehouseError
from moldau.pipeline.warehouse import Warehouse
from moldau.records.digests import Rows, digest_of

BATCH_ROWS = 65_536
COLUMNS = ["key", "value", "timestamp", "timestampType", "headers"]


class WarehouseTier:
    """What `moldau pipeline load` has committed to a warehouse."""

    name = "warehouse"

    def __init__(self, folder: Path):
        self._warehouse = Warehouse(folder)

    def digests(self, topic: str, length_ms: int) -> tuple[Digests, list[str]]:
        """The digests of the topic's committed records. Raises `WarehouseError` for a file that cannot be read."""
        rows: Rows = {}
        for manifest in self._warehouse.manifests():
            for file in manifest.files:
                if file.topic == topic:
                    self._add(rows, self._warehouse.folder / file.path, length_ms, manifest.created_ms)
        notes = [] if rows else [f"{self.name}: {self._warehouse.folder} has no record of topic {topic}."]
        return {start: digest_of(row) for start, row in rows.items()}, notes

    def _add(self, rows: Rows, path: Path, length_ms: int, committed_ms: int) -> None:
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=COLUMNS):
                    times = _event_times(batch)
                    add_columns(rows, batch.column("key"), batch.column("value"), times, length_ms, committed_ms)
        except (OSError, pyarrow.ArrowException) as error:
            why = str(error).splitlines()[0].rstrip(".")
            raise WarehouseError(f"{path} cannot be read: {why}.") from None


def _event_times(batch: Any) -> Any:
    kinds = batch.column("timestampType")
    if len(kinds) and kinds[0].as_py() == LOG_APPEND_TIME:
        return event_times(batch.column("headers"), batch.column("timestamp"))
    return batch.column("timestamp")
