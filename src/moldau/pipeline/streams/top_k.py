"""The k items with the greatest count, or other measure, in each window."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import Duration, check_columns, names_of
from moldau.pipeline.streams.windows import WINDOW, Window, windowed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def top_k(
    events: "DataFrame",
    at: str,
    window: Window,
    item: str | Iterable[str],
    k: int,
    by: str | Iterable[str] = (),
    measure: "Column | None" = None,
    delay: Duration | None = None,
) -> "DataFrame":
    """The k items with the greatest measure in each window and group: columns `window`, those of `by`, `rank` (from 1),
    those of `item`, and `measure`. The measure is the number of events, or the given aggregate, which must be a number.
    Items with equal measures are ranked in ascending order.

    Output mode: append (all ranks of a window appear together, once, when the watermark has passed its end). Late rows:
    dropped. State: one row for each item, group and open window; the ranking of one window and group is computed in the
    memory of one task. Session windows are not possible. Raises `ConfigError`.
    """
    from pyspark.sql import functions as sf

    items, groups = names_of(item), names_of(by)
    if not items or k < 1:
        raise ConfigError("top_k needs at least one item column, and k must be at least 1")
    if window.is_session:
        raise ConfigError("top_k takes tumbling or sliding windows, because each item would have sessions of its own")
    if set(items) & set(groups) or {"rank", "measure"} & {*items, *groups}:
        raise ConfigError("a column of top_k is an item or a group, and neither is named rank or measure")
    check_columns(events, items, "item")
    measured = windowed(
        events, at, window, {"measure": sf.count("*") if measure is None else measure}, [*groups, *items], delay
    )
    row = sf.struct((-sf.col("measure")).alias("_order"), *items, "measure")
    ranked = measured.groupBy(WINDOW, *groups).agg(sf.slice(sf.sort_array(sf.collect_list(row)), 1, k).alias("_top"))
    each = ranked.select(WINDOW, *groups, sf.posexplode("_top").alias("_at", "_row"))
    return each.select(
        WINDOW, *groups, (sf.col("_at") + 1).alias("rank"), *(f"_row.{name}" for name in items), "_row.measure"
    )
