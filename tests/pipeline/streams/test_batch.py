"""The stream operations on batch reads, against plain Python on random events: hundreds of cases in one Spark job."""

import datetime
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from moldau.errors import ConfigError
from moldau.pipeline import streams
from moldau.pipeline.streams.event_time import interval
from tests.pipeline.streams import model
from tests.pipeline.streams.model import Event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "case int, key string, item string, seconds long"
CASES = 300


@pytest.fixture(scope="module")
def chance() -> random.Random:
    return random.Random(20_130_101)


@pytest.fixture(scope="module")
def events(chance: random.Random) -> list[Event]:
    return some_events(chance)


@pytest.fixture(scope="module")
def frame_of(spark: "SparkSession") -> "Callable[..., DataFrame]":
    def create(events: list[Event]) -> "DataFrame":
        from pyspark.sql import functions as sf

        rows = spark.createDataFrame([tuple(event) for event in events], SCHEMA).coalesce(2)
        return rows.select("case", "key", "item", sf.timestamp_seconds("seconds").alias("at"))

    return create


@pytest.fixture(scope="module")
def frame(frame_of: "Callable[..., DataFrame]", events: list[Event]) -> "DataFrame":
    return frame_of(events).persist()


def some_events(chance: random.Random) -> list[Event]:
    """Cases with no to forty events, some of them crowded, some at edges of windows."""
    return [
        Event(case, chance.choice("abc"), chance.choice("pqrst"), chance.randrange(chance.choice((20, 60, 600))))
        for case in range(CASES)
        for _ in range(chance.randrange(40))
    ]


def seconds(name: str) -> Any:
    from pyspark.sql import functions as sf

    return sf.unix_seconds(name)


def rows(frame: "DataFrame", *columns: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


@pytest.mark.parametrize(
    ("size", "advance"),
    [pytest.param(10, 10, marks=pytest.mark.check), (30, 10), pytest.param(7, 3, marks=pytest.mark.check)],
)
def test_windows_count_what_plain_python_counts(
    frame: "DataFrame", events: list[Event], size: int, advance: int
) -> None:
    window = streams.sliding(f"{size} seconds", datetime.timedelta(seconds=advance))
    counted = streams.windowed_counts(frame, "at", window, ["case", "key"], "1 minute")
    assert counted.columns == ["window", "case", "key", "count"]
    found = rows(counted, "case", seconds("window.start"), seconds("window.end"), "key", "count")
    assert found == sorted((*window, count) for window, count in model.counts(events, size, advance).items())


def test_sessions_end_at_gaps(frame: "DataFrame", events: list[Event]) -> None:
    found = streams.sessions(frame, "at", "5 seconds", ["case", "key"])
    assert found.columns == ["window", "case", "key", "first", "last", "count"]
    assert rows(found, "case", "key", seconds("first"), seconds("last"), "count") == model.sessions(events, 5)


def test_the_top_k_of_each_window_are_ranked(frame: "DataFrame", events: list[Event]) -> None:
    found = streams.top_k(frame, "at", streams.tumbling("20 seconds"), "item", 3, by="case")
    assert found.columns == ["window", "case", "rank", "item", "measure"]
    assert rows(found, "case", seconds("window.start"), "rank", "item", "measure") == model.top_k(events, 20, 3)


def test_deduplication_keeps_the_earliest_row_of_each_key(frame: "DataFrame", events: list[Event]) -> None:
    first: dict[tuple[int, str], int] = {}
    for event in events:
        key = event.case, event.key
        first[key] = min(event.at, first.get(key, event.at))
    found = streams.deduplicate(frame, "at", ["case", "key"], "1 hour")
    assert found.columns == frame.columns
    assert rows(found, "case", "key", seconds("at")) == sorted((*key, at) for key, at in first.items())


@pytest.mark.parametrize("how", ["inner", *(pytest.param(how, marks=pytest.mark.check) for how in ("left", "full"))])
def test_rows_join_within_an_interval(
    frame: "DataFrame", frame_of: "Callable[..., DataFrame]", events: list[Event], how: str
) -> None:
    others = some_events(random.Random(7))
    right = frame_of(others).select("case", "key", seconds_later("at"))
    left = frame.drop("item")
    joined = streams.join_within(left, right, ["case", "key"], "at", "later", "4 seconds", "2 seconds", how)
    assert joined.columns == ["case", "key", "at", "later"]
    expected: list[tuple[Any, ...]] = [*model.pairs(events, others, 2, 4)]
    if how != "inner":
        matched = {(case, key, at) for case, key, at, _ in expected}
        expected += [(e.case, e.key, e.at, None) for e in events if (e.case, e.key, e.at) not in matched]
    if how == "full":
        met = {(case, key, at) for case, key, _, at in expected}
        expected += [(e.case, e.key, None, e.at) for e in others if (e.case, e.key, e.at) not in met]
    found = [tuple(row) for row in joined.select("case", "key", seconds("at"), seconds("later")).collect()]
    assert sorted(found, key=str) == sorted(expected, key=str)


def seconds_later(name: str) -> Any:
    from pyspark.sql import functions as sf

    return sf.col(name).alias("later")


def test_a_compacted_topic_is_a_table_of_the_latest_values(spark: "SparkSession", chance: random.Random) -> None:
    log = [(chance.choice("abcdef"), chance.choice(("x", "y", None)), offset) for offset in range(200)]
    latest: dict[str, str | None] = {}
    for key, value, _ in log:
        latest[key] = value
    given = [(key.encode(), value and value.encode(), at) for key, value, at in log] + [(None, b"no key", 999)]
    chance.shuffle(given)
    frame = spark.createDataFrame(given, "key binary, value binary, offset long").coalesce(1)
    table = streams.latest_by_key(frame)
    assert table.columns == ["key", "value", "offset"]
    found = {bytes(row.key).decode(): bytes(row.value).decode() for row in table.collect()}
    assert found == {key: value for key, value in latest.items() if value is not None}


def test_a_wrong_argument_is_refused_in_a_sentence(frame: "DataFrame", spark: "SparkSession") -> None:
    window = streams.tumbling("10 seconds")
    stream = spark.readStream.format("rate").load()
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: streams.tumbling("1 month"), "size is a number and a unit from microseconds to weeks, not '1 month'"),
        (lambda: streams.tumbling("0 seconds"), "size is '0 seconds', but must be above 0"),
        (lambda: streams.sliding("5 seconds", "6 seconds"), "rows between windows would be lost"),
        (lambda: interval(datetime.timedelta(seconds=-1), "delay"), "must be at least 0"),
        (lambda: streams.windowed_counts(frame, "time", window), "event time 'time' is not a column"),
        (lambda: streams.windowed_counts(frame, "key", window), "event time 'key' is a column of type string"),
        (lambda: streams.windowed_counts(frame, "at", window, "who"), "group 'who' is not a column; the columns are"),
        (lambda: streams.windowed(frame, "at", window, {}), "at least one aggregate"),
        (lambda: streams.windowed(frame, "at", window, {"key": seconds("at")}, "key"), "has the name of a group"),
        (lambda: streams.sessions(frame, "at", "5 seconds", ()), "at least one key column"),
        (lambda: streams.deduplicate(frame, "at", ()), "at least one key column"),
        (lambda: streams.top_k(frame, "at", window, "item", 0), "k must be at least 1"),
        (lambda: streams.top_k(frame, "at", streams.session("5 seconds"), "item", 1), "takes tumbling or sliding"),
        (lambda: streams.join_within(frame, frame, "key", "at", "at", "1 second"), "both sides of the join have"),
        (lambda: streams.join_within(frame, frame, "key", "at", "at", "1 second", how="semi"), "one of inner, left"),
        (lambda: streams.join_table(frame, frame, "key"), "both sides of the join have a column 'case'"),
        (lambda: streams.join_table(frame, stream, "key"), "takes a batch DataFrame as the table"),
        (lambda: streams.json_events(frame, "a int"), "the records' column 'value' is not a column"),
    ]
    for call, sentence in wrong:
        with pytest.raises(ConfigError) as refused:
            call()
        assert sentence in str(refused.value)
