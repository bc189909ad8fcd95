"""Windows of event time (tumbling, sliding, session), and aggregates for each window."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import Duration, check_columns, interval, microseconds, names_of, watermarked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOW = "window"


class Window(NamedTuple):
    """How event time is divided; made by `tumbling`, `sliding` and `session`. Each field is Spark's interval text."""

    size: str
    advance: str = ""
    offset: str = ""
    is_session: bool = False

    def column(self, at: str) -> "Column":
        """The window of each row by its event time: a struct of `start` (included) and `end` (excluded)."""
        from pyspark.sql import functions as sf

        if self.is_session:
            return sf.session_window(at, self.size).alias(WINDOW)
        return sf.window(at, self.size, self.advance, self.offset).alias(WINDOW)


def tumbling(size: Duration, offset: Duration = "0 seconds") -> Window:
    """Windows of equal size without gaps or overlaps; each row is in one. They begin at 1970-01-01 UTC plus `offset`.
    Raises `ConfigError`."""
    return sliding(size, size, offset)


def sliding(size: Duration, advance: Duration, offset: Duration = "0 seconds") -> Window:
    """Windows of `size` that begin every `advance` (Kafka Streams' hopping windows); each row is in about size/advance
    of them. Raises `ConfigError` if `advance` is above `size`."""
    if microseconds(size, "size", positive=True) < microseconds(advance, "advance", positive=True):
        raise ConfigError(f"the advance {advance!r} is above the size {size!r}: rows between windows would be lost")
    return Window(interval(size, "size"), interval(advance, "advance"), interval(offset, "offset"))


def session(gap: Duration) -> Window:
    """Windows that end when no row follows within `gap`; `end` is the last row's time plus the gap. Raises
    `ConfigError`."""
    return Window(interval(gap, "gap", positive=True), is_session=True)


def windowed(
    events: "DataFrame",
    at: str,
    window: Window,
    aggregates: "Mapping[str, Column]",
    by: str | Iterable[str] = (),
    delay: Duration | None = None,
) -> "DataFrame":
    """Aggregates of the events in each window and group: columns `window`, those of `by`, and one for each aggregate.

    Output modes: append (a window appears once, when the watermark has passed its end), update (each change; not for
    sessions), complete. Late rows: dropped once the watermark has passed the end of their window, except in complete
    mode. State: one row for each group and window that the watermark has not passed; in complete mode all of them.

    `delay` is the watermark's; None if `events` have a watermark. Raises `ConfigError`.
    """
    keys = names_of(by)
    check_columns(events, keys, "group")
    if not aggregates:
        raise ConfigError("windowed needs at least one aggregate")
    for name in aggregates:
        if name in (WINDOW, *keys):
            raise ConfigError(f"the aggregate {name!r} has the name of a group or of the window")
    grouped = watermarked(events, at, delay).groupBy(window.column(at), *keys)
    return grouped.agg(*(column.alias(name) for name, column in aggregates.items()))


def windowed_counts(
    events: "DataFrame", at: str, window: Window, by: str | Iterable[str] = (), delay: Duration | None = None
) -> "DataFrame":
    """The number of events in each window and group: columns `window`, those of `by`, `count` (bigint). Output modes,
    late rows and state are those of `windowed`."""
    from pyspark.sql import functions as sf

    return windowed(events, at, window, {"count": sf.count("*")}, by, delay)
