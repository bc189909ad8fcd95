"""What Spark's filters say about offsets, partitions and times; filters that are not understood say nothing."""

import datetime
from typing import Any

import pytest
from pyspark.sql import datasource as ds

from moldau.pipeline.source.filters import Narrowing, narrowing

AT = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
AT_US = int(AT.timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], Narrowing()),
        ([ds.EqualTo(("partition",), 0), ds.LessThan(("offset",), 1000)], Narrowing(None, frozenset([0]), None, 999)),
        ([ds.In(("topic",), ("a", "b")), ds.EqualTo(("topic",), "b")], Narrowing(frozenset(["b"]))),
        ([ds.EqualTo(("partition",), 0), ds.EqualNullSafe(("partition",), 1)], Narrowing(None, frozenset())),
        ([ds.GreaterThan(("offset",), 4), ds.GreaterThanOrEqual(("offset",), 9)], Narrowing(offset_low=9)),
        ([ds.EqualTo(("offset",), 7)], Narrowing(offset_low=7, offset_high=7)),
        ([ds.GreaterThan(("timestamp",), AT)], Narrowing(time_low_us=AT_US + 1)),
        ([ds.LessThanOrEqual(("timestamp",), AT)], Narrowing(time_high_us=AT_US)),
    ],
)
def test_comparisons_of_a_records_place_and_time_are_understood(filters: list[Any], expected: Narrowing) -> None:
    assert narrowing(filters) == expected


@pytest.mark.parametrize(
    "unknown",
    [
        ds.Not(ds.EqualTo(("partition",), 0)),
        ds.IsNotNull(("offset",)),
        ds.EqualTo(("value",), b"x"),
        ds.GreaterThan(("partition",), 3),
        ds.StringStartsWith(("topic",), "a"),
        ds.EqualTo(("headers", "key"), "h"),
        ds.LessThan(("timestamp",), datetime.datetime(2026, 5, 1)),
        ds.LessThan(("offset",), None),
    ],
)
def test_every_other_filter_is_left_to_spark(unknown: Any) -> None:
    assert narrowing([unknown]) == Narrowing()
