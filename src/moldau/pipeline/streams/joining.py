"""The join of two streams within an interval of event time."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import Duration, check_columns, interval, names_of, watermarked
from moldau.pipeline.streams.tables import check_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOWS = ("inner", "left", "right", "full")


def join_within(
    left: "DataFrame",
    right: "DataFrame",
    on: str | Iterable[str],
    left_at: str,
    right_at: str,
    after: Duration,
    before: Duration = "0 seconds",
    how: str = "inner",
    delay: Duration | None = None,
) -> "DataFrame":
    """Pairs of rows with the same key where the right row's time is at most `before` earlier and at most `after` later
    than the left row's (both included). Columns: those of `on`, then the others of both sides, whose names must differ.
    With `how` left, right or full, a row without a partner appears with nulls.

    Output mode: append; a row without a partner appears when the watermark shows that none can come. Late rows: may
    still be joined, but are dropped once the watermark has passed the interval. State: the rows of both sides whose
    interval the watermark has not passed. Raises `ConfigError`.
    """
    from pyspark.sql import functions as sf

    keys = names_of(on)
    if how not in HOWS:
        raise ConfigError(f"join_within is one of {', '.join(HOWS)}, not {how!r}")
    if not keys or left_at in keys or right_at in keys:
        raise ConfigError("join_within needs at least one key column, which is not an event time")
    for frame, name in ((left, "key of the left side"), (right, "key of the right side")):
        check_columns(frame, keys, name)
    check_apart(left, right, keys)
    one = watermarked(left, left_at, delay)
    other = watermarked(right, right_at, delay)
    other = other.select(
        *(sf.col(name).alias(f"_right_{name}") if name in keys else sf.col(name) for name in other.columns)
    )
    lower, upper = interval(before, "before"), interval(after, "after")
    condition = sf.expr(
        f"`{right_at}` >= `{left_at}` - interval {lower} AND `{right_at}` <= `{left_at}` + interval {upper}"
    )
    for name in keys:
        condition = condition & (sf.col(name) == sf.col(f"_right_{name}"))
    joined = one.join(
        other, condition, {"left": "left_outer", "right": "right_outer", "full": "full_outer"}.get(how, how)
    )
    return joined.select(
        *(sf.coalesce(name, f"_right_{name}").alias(name) for name in keys),
        *(name for frame in (left, right) for name in frame.columns if name not in keys),
    )
