"""Sessions of each key: runs of events without a gap."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import Duration, names_of
from moldau.pipeline.streams.windows import session, windowed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def sessions(
    events: "DataFrame",
    at: str,
    gap: Duration,
    by: str | Iterable[str],
    aggregates: "Mapping[str, Column] | None" = None,
    delay: Duration | None = None,
) -> "DataFrame":
    """The sessions of each key: columns `window`, those of `by`, `first` and `last` (the times of the first and the
    last event), `count`, and one for each aggregate. Events that are at most `gap` apart are in one session.

    Output modes: append (a session appears once, when the watermark has passed its last event plus the gap), complete.
    Late rows: dropped once the watermark has passed their time plus the gap. State: one row for each session that is
    still open. Raises `ConfigError`.
    """
    from pyspark.sql import functions as sf

    if not names_of(by):
        raise ConfigError("sessions need at least one key column")
    columns = {"first": sf.min(at), "last": sf.max(at), "count": sf.count("*")}
    return windowed(events, at, session(gap), {**columns, **(aggregates or {})}, by, delay)
