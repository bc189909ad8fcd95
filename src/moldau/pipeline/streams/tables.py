"""A compacted topic as a table, and the join of a stream with a table."""

from typing import TYPE_CHECKING

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import check_columns, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

HOWS = ("inner", "left")


def latest_by_key(rows: "DataFrame") -> "DataFrame":
    """A topic as a table, from a batch read in the columns of `format("moldau")`: the row with the highest offset of
    each key. A key whose latest value is null (a tombstone) is not in the table, nor is a row without a key.

    Raises `ConfigError` for a stream.
    """
    from pyspark.sql import functions as sf

    check_columns(rows, ("key", "value", "offset"), "the records' column")
    if rows.isStreaming:
        raise ConfigError("latest_by_key takes a batch read (spark.read), not a stream")
    latest = rows.where("key IS NOT NULL").groupBy("key").agg(sf.max_by(sf.struct(*rows.columns), "offset").alias("_"))
    return latest.select("_.*").where("value IS NOT NULL")


def join_table(
    events: "DataFrame", table: "DataFrame", on: "str | Iterable[str]", how: str = "left", broadcast: bool = True
) -> "DataFrame":
    """Each event with the columns of the table's row for the same key; with `how="inner"` only events that have one.

    The table is a batch DataFrame with one row for each key. Spark plans its read once, when the query starts: every
    event meets the table as it was then, until the query is restarted. To refresh it, call `join_table` in
    `foreachBatch` with a DataFrame read there; a replayed micro-batch may then meet a newer table.

    Output modes: all. Late rows: kept. State: none; with `broadcast` the table must fit into the memory of each task.
    Raises `ConfigError`.
    """
    from pyspark.sql import functions as sf

    keys = names_of(on)
    if how not in HOWS:
        raise ConfigError(f"join_table is {' or '.join(HOWS)}, not {how!r}")
    if table.isStreaming:
        raise ConfigError("join_table takes a batch DataFrame as the table; join_within joins two streams")
    for frame, name in ((events, "key of the events"), (table, "key of the table")):
        check_columns(frame, keys, name)
    check_apart(events, table, keys)
    return events.join(sf.broadcast(table) if broadcast else table, keys, how)


def check_apart(left: "DataFrame", right: "DataFrame", keys: list[str]) -> None:
    """Raise `ConfigError` if two DataFrames share a column besides these."""
    both = [name for name in left.columns if name in right.columns and name not in keys]
    if both:
        raise ConfigError(f"both sides of the join have a column {both[0]!r}: rename or drop one of them")
