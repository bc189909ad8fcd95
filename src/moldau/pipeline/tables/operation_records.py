"""How many records each operation of a table added, updated and removed, as its writer noted it in the log.

`deltalake` and Spark note the same numbers under names of their own (`operationMetrics` of a commit), Spark as text. An
overwrite notes only what it added, a restore no records: those are counted from the files of the versions around them.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moldau.pipeline.tables.committing import RECORDS
from moldau.pipeline.tables.widening import WIDENED


class Changes(NamedTuple):
    """The numbers of records; None for what an operation does not do, or does not say."""

    added: int | None = None
    updated: int | None = None
    removed: int | None = None


ADDED: Final = ("num_target_rows_inserted", "numTargetRowsInserted", "num_added_rows", "numOutputRows")
UPDATED: Final = ("num_updated_rows", "numUpdatedRows", "num_target_rows_updated", "numTargetRowsUpdated")
REMOVED: Final = ("num_deleted_rows", "numDeletedRows", "num_target_rows_deleted", "numTargetRowsDeleted")
BY_OPERATION: Final = {
    "WRITE": (ADDED, (), ()),
    "CREATE TABLE AS SELECT": (ADDED, (), ()),
    "STREAMING UPDATE": (ADDED, (), ()),
    "DELETE": ((), (), REMOVED),
    "UPDATE": ((), UPDATED, ()),
    "MERGE": (ADDED, UPDATED, REMOVED),
}


def noted(entry: Mapping[str, Any]) -> Changes:
    """What the commit of an entry of the history notes. Pure."""
    if RECORDS in entry:
        return Changes(_number(entry[RECORDS]))
    metrics = entry.get("operationMetrics")
    names = BY_OPERATION.get(str(entry.get("operation")))
    if names is None or not isinstance(metrics, Mapping):
        return Changes()
    counts = [
        next((number for name in some if (number := _number(metrics.get(name))) is not None), None) for some in names
    ]
    return Changes(*counts)


def replaces_files(entry: Mapping[str, Any]) -> bool:
    """Whether the commit removed files without noting how many records were in them."""
    parameters = entry.get("operationParameters")
    mode = parameters.get("mode") if isinstance(parameters, Mapping) else None
    known = RECORDS in entry or WIDENED in entry
    return not known and (entry.get("operation") == "RESTORE" or mode == "Overwrite")


def counted(said: Changes, before: Mapping[str, int], after: Mapping[str, int]) -> Changes:
    """The changes of an operation, from the records by file of the versions before and after it. Records that were
    copied to another file count as neither, if the operation says how many it added. Pure."""
    came = sum(records for path, records in after.items() if path not in before)
    went = sum(records for path, records in before.items() if path not in after)
    copied = 0 if said.added is None else came - said.added
    return Changes(came - copied, said.updated, went - copied)


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None
