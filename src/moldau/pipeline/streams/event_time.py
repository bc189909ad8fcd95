"""Event time: durations as Spark's interval text, and the watermark of a DataFrame."""

import datetime
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DURATION = re.compile(r"\s*([0-9]{1,15})\s*(microsecond|millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)
Duration = str | datetime.timedelta
"""A time span: a number and a unit, such as "10 minutes", or a `timedelta`. Months and years vary in length and are not
allowed."""
UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def microseconds(duration: Duration, name: str, *, positive: bool = False) -> int:
    """The duration in microseconds. Raises `ConfigError`, which calls it `name`; with `positive` also for 0."""
    if isinstance(duration, datetime.timedelta):
        span = duration // datetime.timedelta(microseconds=1)
    else:
        match = DURATION.fullmatch(duration) if isinstance(duration, str) else None
        if match is None:
            raise ConfigError(f"{name} is a number and a unit from microseconds to weeks, not {duration!r}")
        span = int(match[1]) * UNITS[match[2].lower()]
    if span < 0 or (positive and span == 0):
        raise ConfigError(f"{name} is {duration!r}, but must be {'above' if positive else 'at least'} 0")
    return span


def interval(duration: Duration, name: str, *, positive: bool = False) -> str:
    """The duration as Spark's interval text. Raises `ConfigError` as `microseconds` does."""
    return f"{microseconds(duration, name, positive=positive)} microseconds"


def watermarked(events: "DataFrame", at: str, delay: Duration | None) -> "DataFrame":
    """The events with a watermark on column `at`; unchanged if `delay` is None, because they already have one. Raises
    `ConfigError` unless `at` is a column of timestamps."""
    from pyspark.sql.types import TimestampNTZType, TimestampType

    check_columns(events, [at], "event time")
    kind = events.schema[at].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise ConfigError(f"event time {at!r} is a column of type {kind.simpleString()}, not of timestamps")
    return events if delay is None else events.withWatermark(at, interval(delay, "delay"))


def names_of(columns: str | Iterable[str]) -> list[str]:
    """A column name or several as a list without repetitions."""
    return [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))


def check_columns(frame: "DataFrame", names: Iterable[str], what: str) -> None:
    """Raise `ConfigError` if the DataFrame lacks one of these columns."""
    for name in names:
        if name not in frame.columns:
            raise ConfigError(f"{what} {name!r} is not a column; the columns are {', '.join(frame.columns)}")
