"""A task's part of `--upsert`: of the records of a portion only the newest of each key and partition are written.

Rows wait in memory until they are more than `WAITING_BYTES_MAX`; then those that a later record of their key replaces
are dropped, and if that was not half of them, all are written. So a key may be in several files of a load; `merging`
puts that right before the commit. Tombstones are written to files of their own, which no commit adds to the table.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow
import pyarrow.compute as compute

from moldau.pipeline.decoding.rejections import NO_KEY, Rejection, with_why
from moldau.pipeline.decoding.topic_decoder import DELETES
from moldau.pipeline.tables.newest import ORDER, identities, newest

WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
WITHOUT_KEY: Final = Rejection(NO_KEY, "the record has no key, which --upsert needs")


class NewestRows:
    """Rows that wait for newer ones of their keys."""

    def __init__(self, key_columns: Sequence[str]):
        self._key_columns = key_columns
        self._waiting: list[Any] = []
        self.rows_bytes = 0

    def add(self, batch: Any) -> Any:
        """Take a batch with the column `DELETES`; returns rows that are to be written now, None for none."""
        self._waiting.append(batch)
        self.rows_bytes += batch.nbytes
        if self.rows_bytes <= WAITING_BYTES_MAX:
            return None
        rows = self._newest()
        if rows.nbytes > WAITING_BYTES_MAX // 2:
            return rows
        self._waiting, self.rows_bytes = [rows], rows.nbytes
        return None

    def finish(self) -> Any:
        """The rows that are left, None for none."""
        return self._newest() if self._waiting else None

    def _newest(self) -> Any:
        rows = pyarrow.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self.rows_bytes = [], 0
        keyed = rows.select(ORDER).append_column("key", identities(rows, self._key_columns))
        places = newest(keyed)
        kept = pyarrow.concat_arrays([places.of_keys, places.of_other_partitions])
        [batch] = rows.take(kept.take(compute.sort_indices(kept))).combine_chunks().to_batches()
        return batch


def columns_of_tombstones(columns: pyarrow.Schema, key_columns: Sequence[str]) -> pyarrow.Schema:
    """The columns of the files of tombstones: the key, and what says which of two records is newer."""
    return pyarrow.schema([columns.field(name) for name in (*key_columns, *ORDER)])


def with_marks(batch: Any) -> tuple[Any, Any]:
    """The records that have a key, with the column `DELETES`, and the others with a reason each."""
    marked = batch.append_column(DELETES, batch["value"].is_null())
    if not batch["_key"].null_count:
        return marked, None
    without = batch.filter(batch["_key"].is_null())
    return marked.filter(batch["_key"].is_valid()), with_why(without, [WITHOUT_KEY] * without.num_rows)


def apart(rows: Any) -> tuple[Any, Any]:
    """Rows of values, and those of tombstones."""
    deletes = rows[DELETES]
    return rows.filter(compute.invert(deletes)), rows.filter(deletes)
