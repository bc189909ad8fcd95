"""What keeps a table healthy: compaction of small files, removal of files no version needs, and its history.

A compaction is a commit of its own that changes no row; loads may run meanwhile, because they only add files. `vacuum`
removes files that are older than the retention and that no version within the retention names: those that compactions
replaced, and those that dead loads left. Files of a running load are younger; therefore a shorter retention than the
table's has to be forced.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow

from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.committing import LOAD_ID
from moldau.pipeline.tables.operation_records import counted, noted, replaces_files
from moldau.pipeline.tables.storage import Location, errors_in_a_sentence, sync_added
from moldau.pipeline.tables.table import opened
from moldau.pipeline.tables.widening import WIDENED

FILE_BYTES = 256 * 1024 * 1024


class Compacted(NamedTuple):
    """The numbers of files that a compaction replaced and wrote."""

    removed: int
    added: int


class Version(NamedTuple):
    """One version of a table. `load_id` is None unless a load made it. `records` were added, others `updated` and
    `removed`; None if the operation does not do that, or if nobody knows."""

    version: int
    timestamp_ms: int
    operation: str
    load_id: str | None
    records: int | None
    updated: int | None = None
    removed: int | None = None


def compact(where: Location, file_bytes: int = FILE_BYTES) -> Compacted:
    """Write files of the same partition that are smaller than `file_bytes` together, to files of about that size.
    Raises TableError if another compaction got in between."""
    from deltalake import WriterProperties

    table = opened(where)
    with errors_in_a_sentence(where.uri):
        done = table.optimize.compact(
            target_size=file_bytes,
            max_concurrent_tasks=1,
            writer_properties=WriterProperties(compression="LZ4_RAW"),
        )
        if done["numFilesAdded"]:
            sync_added(where, table.version())
    return Compacted(int(done["numFilesRemoved"]), int(done["numFilesAdded"]))


def vacuum(where: Location, retention_hours: int | None = None, *, dry_run: bool = False, force: bool = False) -> int:
    """Remove files that no version needs; the number of them. None is the table's own retention, 7 days by default.
    With `dry_run` they are only counted. Raises TableError for a shorter retention without `force`."""
    from deltalake.exceptions import DeltaError

    table = opened(where)
    with errors_in_a_sentence(where.uri):
        try:
            unneeded = table.vacuum(retention_hours, dry_run=dry_run, enforce_retention_duration=not force, full=True)
        except DeltaError as error:
            if retention_hours is None or "retention" not in str(error):
                raise
            raise TableError(
                f"{where.uri} keeps the files of old versions for longer than {retention_hours} hours, since a running "
                "load or a reader may need them; if none runs, add --force."
            ) from None
    return len(unneeded)


def history(where: Location, limit: int | None = None, *, count: bool = False) -> list[Version]:
    """The versions of the table whose log entries are kept, newest first. With `count`, records that an overwrite or a
    restore does not note are counted, which opens two versions for each of them."""
    with errors_in_a_sentence(where.uri):
        entries: list[dict[str, Any]] = opened(where).history(limit)
    return [_version(where, entry, count) for entry in entries]


def _version(where: Location, entry: Mapping[str, Any], count: bool) -> Version:
    version, changes = int(entry["version"]), noted(entry)
    if count and replaces_files(entry):
        before, after = _records(where, version - 1), _records(where, version)
        if before is not None and after is not None:
            changes = counted(changes, before, after)
    time_ms, operation = int(entry.get("timestamp", 0)), str(entry.get("operation", ""))
    if WIDENED in entry:
        operation = f"WIDEN {entry[WIDENED]}"
    return Version(version, time_ms, operation, entry.get(LOAD_ID), *changes)


def _records(where: Location, version: int) -> dict[str, int] | None:
    """The records of each file of a version; None if the log no longer has it, or does not know them."""
    from deltalake.exceptions import DeltaError

    if version < 0:
        return {}
    table = opened(where)
    with errors_in_a_sentence(where.uri):
        try:
            table.load_as_version(version)
        except DeltaError:
            return None
        listed = pyarrow.table(table.get_add_actions(flatten=True))
    if "num_records" not in listed.column_names or listed["num_records"].null_count:
        return None if listed.num_rows else {}
    return dict(zip(listed["path"].to_pylist(), listed["num_records"].to_pylist(), strict=True))
