"""The two commits of a requeue: the topic's table gets the records, then the table of rejected records loses them.

Both tables count the requeues of their topic (`moldau/TOPIC/requeues`). The topic's table is counted up with the
rows it gets, so of two requeues at once one adds nothing. The other table takes over that count with the rows it loses.
While the counts differ, a requeue has died between its commits: rejected records that the topic's table has are to go.
"""

from collections.abc import Sequence

import pyarrow

from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.committing import (
    COMMIT_ATTEMPTS,
    Conflict,
    LoadedTable,
    Offsets,
    flush_files,
    refuse_changed_types,
    rows_key,
)
from moldau.pipeline.tables.data_file import DataFile, LiveFile
from moldau.pipeline.tables.removals import REQUEUE


def requeues_key(topic: str) -> str:
    """The name under which a table keeps the number of requeues."""
    return f"moldau/{topic}/requeues"


def requeues(table: LoadedTable, topic: str) -> int:
    return table.number(requeues_key(topic)) or 0


def unfinished(table: LoadedTable, rejected: LoadedTable, topic: str) -> bool:
    """Whether a requeue has committed to the topic's table only, as both tables were read last."""
    return requeues(table, topic) != requeues(rejected, topic)


def add_requeued(
    table: LoadedTable,
    topic: str,
    load_id: str,
    files: Sequence[DataFile],
    columns: pyarrow.Schema,
    loaded: Offsets,
    before: int,
) -> int:
    """Add records of offsets below `loaded` to the topic's table, in files with these columns, as requeue number
    `before` + 1. Returns the version. Raises Conflict, and then nothing was added."""
    flush_files(table, files)
    for attempt in range(COMMIT_ATTEMPTS):
        if attempt:
            table.refresh()
            version = table.version_of(load_id)
            if version is not None:  # the store had our commit, though it reported a failure
                return version
        refuse_changed_types(table, columns)
        _check(table, topic, loaded, before)
        rows = table.rows(topic)
        added = sum(file.records for file in files)
        kept = {requeues_key(topic): before + 1, rows_key(topic): (table.count() if rows is None else rows) + added}
        version = table.commit_once(load_id, files, kept)
        if version is not None:
            return version
    raise TableError(f"Other writers kept changing {table.name}, so this requeue added nothing. Run it again.")


def _check(table: LoadedTable, topic: str, loaded: Offsets, before: int) -> None:
    """Raise Conflict if the table is no longer as the requeue has read it."""
    there = table.offsets(list(loaded))
    if table.removed(topic, loaded) is not None or any(there.get(tp, 0) < at for tp, at in loaded.items()):
        raise Conflict(f"Rows were removed from {table.name} meanwhile; nothing was added to it.")
    if requeues(table, topic) != before:
        raise Conflict(f"Another requeue has committed to {table.name} meanwhile; nothing was added to it.")


def replace_rejected(
    rejected: LoadedTable,
    topic: str,
    load_id: str,
    gone: Sequence[LiveFile],
    files: Sequence[DataFile],
    number: int,
) -> bool:
    """Replace files of the rejected records, and take over the `number` of requeues. False if one of the files is no
    longer there. Raises Conflict if another tool removed rows. Nothing was changed then."""
    flush_files(rejected, files)
    for attempt in range(COMMIT_ATTEMPTS):
        if attempt:
            rejected.refresh()
            if rejected.version_of(load_id) is not None:
                return True
            if not {file.path for file in gone} <= {file.path for file in rejected.live_files()}:
                return False
        if rejected.removed(topic, rejected.all_offsets(topic)) is not None:
            raise Conflict(f"Rows were removed from {rejected.name} meanwhile: run this again.")
        left = rejected.count() - sum(file.records for file in gone) + sum(file.records for file in files)
        kept = {requeues_key(topic): number, rows_key(topic): max(0, left)}
        # nothing is gone if a requeue died between its commits and its records were taken out by hand
        removed, about = ([file.path for file in gone], {REQUEUE: len(gone)}) if gone else (None, {})
        if rejected.commit_once(load_id, files, kept, removed, about) is not None:
            return True
    raise TableError(f"Other writers kept changing {rejected.name}: run this requeue again.")
