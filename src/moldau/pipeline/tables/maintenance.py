"""What keeps a table healthy: compaction of small files, removal of files no version needs, and its history.

A compaction is a commit of its own that changes no row; loads may run meanwhile, because they only add files. `vacuum`
removes files that are older than the retention and that no version within the retention names: those that compactions
replaced, and those that dead loads left. Files of a running load are younger; therefore a shorter retention than the
table's has to be forced.
"""

from typing import Any, NamedTuple

from moldau.pipeline.tables.committing import LOAD_ID, RECORDS
from moldau.pipeline.tables.storage import Location, errors_in_a_sentence, sync_added
from moldau.pipeline.tables.table import opened

FILE_BYTES = 256 * 1024 * 1024


class Compacted(NamedTuple):
    """The numbers of files that a compaction replaced and wrote."""

    removed: int
    added: int


class Version(NamedTuple):
    """One version of a table. `load_id` and `records` are those of a load, None for every other operation."""

    version: int
    timestamp_ms: int
    operation: str
    load_id: str | None
    records: int | None


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
    with errors_in_a_sentence(where.uri):
        removed = opened(where).vacuum(
            retention_hours, dry_run=dry_run, enforce_retention_duration=not force, full=True
        )
    return len(removed)


def history(where: Location, limit: int | None = None) -> list[Version]:
    """The versions of the table whose log entries are kept, newest first."""
    with errors_in_a_sentence(where.uri):
        entries: list[dict[str, Any]] = opened(where).history(limit)
    return [
        Version(
            int(entry["version"]), int(entry.get("timestamp", 0)), str(entry.get("operation", "")),
            entry.get(LOAD_ID), entry.get(RECORDS),
        )
        for entry in entries
    ]  # fmt: skip
