"""What Spark's filters say about offsets, partitions and times: a read leaves out what they exclude. Pure.

Spark applies every filter again, so only one thing has to hold here: no record that passes the filters is left out.
Filters that say nothing about these columns, or that are not understood, are skipped.
"""

import datetime
from collections.abc import Iterable
from typing import Any, NamedTuple

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)


class Narrowing(NamedTuple):
    """Bounds on the records that can pass: topics and partitions (None: all), offsets and times in us since 1970, each
    from `low` to `high`, both included (None: no bound)."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_low: int | None = None
    offset_high: int | None = None
    time_low_us: int | None = None
    time_high_us: int | None = None

    def admits(self, topic: str, partition: int) -> bool:
        """Whether records of this partition can pass."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


def narrowing(filters: Iterable[Any]) -> Narrowing:
    """The bounds of all filters together; `filters` are those of `pyspark.sql.datasource`."""
    bounds = Narrowing()
    for one in filters:
        name, column, value = type(one).__name__, getattr(one, "attribute", None), getattr(one, "value", None)
        if column in (("topic",), ("partition",)):
            bounds = _among(bounds, name, column[0], value)
        elif column == ("offset",) and isinstance(value, int):
            low, high = _bounds(name, value)
            bounds = bounds._replace(
                offset_low=_later(bounds.offset_low, low), offset_high=_sooner(bounds.offset_high, high)
            )
        elif column == ("timestamp",) and isinstance(value, datetime.datetime) and value.tzinfo is not None:
            low, high = _bounds(name, (value - EPOCH) // MICROSECOND)
            bounds = bounds._replace(
                time_low_us=_later(bounds.time_low_us, low), time_high_us=_sooner(bounds.time_high_us, high)
            )
    return bounds


def _among(bounds: Narrowing, name: str, column: str, value: Any) -> Narrowing:
    """Bounds from a filter that names topics or partitions; other comparisons of them are left to Spark."""
    if name in ("EqualTo", "EqualNullSafe"):
        named = frozenset([value])
    elif name == "In":
        named = frozenset(value)
    else:
        return bounds
    if column == "topic":
        return bounds._replace(topics=named if bounds.topics is None else named & bounds.topics)
    return bounds._replace(partitions=named if bounds.partitions is None else named & bounds.partitions)


def _bounds(name: str, value: int) -> tuple[int | None, int | None]:
    """The lowest and highest number that pass a comparison with whole numbers."""
    return {
        "EqualTo": (value, value),
        "EqualNullSafe": (value, value),
        "GreaterThan": (value + 1, None),
        "GreaterThanOrEqual": (value, None),
        "LessThan": (None, value - 1),
        "LessThanOrEqual": (None, value),
    }.get(name, (None, None))


def _later(one: int | None, other: int | None) -> int | None:
    return max((bound for bound in (one, other) if bound is not None), default=None)


def _sooner(one: int | None, other: int | None) -> int | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)
