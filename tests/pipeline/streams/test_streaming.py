"""The stream operations on real streams from a real broker: watermarks, late rows, restarts from the checkpoint."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.tiers import sized
from moldau.pipeline import streams
from moldau.pipeline.streams import run_to_end
from tests.pipeline.streams import model
from tests.pipeline.streams.model import Event
from tests.spark import setting_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.check,  # Spark's own micro-batches: `test_batch.py` has the operations in `make test`, `sink` a stream
    pytest.mark.timeout(300),
]
SCHEMA = "key string, item string, number long"
RECORDS_PER_TRIGGER = sized(70, 70, 40)

Ask = Callable[["Callable[[DataFrame], DataFrame]"], list[list[tuple[Any, ...]]]]


@pytest.fixture(scope="module", autouse=True)
def few_shuffles(spark: "SparkSession") -> Any:
    with setting_of(spark, "spark.sql.shuffle.partitions", "1"):
        yield


def events_with_late_ones() -> list[Event]:
    """Events whose times advance by about a second each, of which some come up to 90 s late."""
    chance = random.Random(42)
    return [
        Event(0, chance.choice("ab"), chance.choice("pqr"), 1_000 + number - chance.choice((0, 0, 0, 3, 90)))
        for number in range(200)
    ]


class Query:
    """A query in append mode over a topic of events, run to the end of what the topic holds, as often as asked."""

    def __init__(self, operation: "Callable[[DataFrame], DataFrame]", stream: "DataFrame", folder: Path):
        self._result = operation(stream)
        self._folder = folder
        self.rows_of_batches: list[int] = []
        self.late = 0

    def run(self) -> list[Any]:
        """Everything that the query has emitted so far, exactly once, by the file sink."""
        session, out = self._result.sparkSession, str(self._folder / "out")

        def start(_: int) -> Any:
            writer = self._result.writeStream.format("parquet").option("path", out).outputMode("append")
            checkpoint = str(self._folder / "checkpoint")
            self.query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            return self.query

        progress = run_to_end(start)
        self.rows_of_batches += [step["numInputRows"] for step in progress]
        self.late += streams.late_rows(self.query)
        return session.read.schema(self._result.schema).parquet(out).collect()


@pytest.fixture
def send(produce: Callable[..., None]) -> Callable[[str, Sequence[Event]], None]:
    def send(topic: str, events: Sequence[Event]) -> None:
        produce(
            topic,
            [(event.key.encode(), json.dumps({"key": event.key, "item": event.item}).encode(), event.at * 1000)
             for event in events],
        )  # fmt: skip

    return send


@pytest.fixture
def query(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> "Callable[[Callable[[DataFrame], DataFrame]], tuple[str, Query]]":
    """A new topic, and a query over the stream of its events, some in each micro-batch."""

    def create(operation: "Callable[[DataFrame], DataFrame]") -> tuple[str, Query]:
        topic = new_topic()
        rows = streams.records(spark, bootstrap, topic, maxOffsetsPerTrigger=RECORDS_PER_TRIGGER)
        return topic, Query(operation, streams.json_events(rows, SCHEMA), tmp_path)

    return create


def batches(events: Sequence[Event], sizes: Sequence[int]) -> list[Sequence[Event]]:
    found, start = [], 0
    for size in sizes:
        found.append(events[start : start + size])
        start += size
    return found


def test_windows_drop_late_rows_and_go_on_after_a_restart(query: Any, send: Any) -> None:
    events = events_with_late_ones()
    window = streams.sliding("20 seconds", "10 seconds")
    topic, counting = query(lambda stream: streams.windowed_counts(stream, "at", window, "key", "15 seconds"))
    for part in (events[:90], events[90:]):
        send(topic, part)
        found = Counter({(0, at(r.window.start), at(r.window.end), r.key): r["count"] for r in counting.run()})
    assert sum(counting.rows_of_batches) == len(events)
    emitted, late = model.counts_of_stream(batches(events, counting.rows_of_batches), 20, 10, 15)
    assert found == emitted and len(emitted) > 20
    assert counting.late == late > 0


def test_counts_of_windows_are_grouped_again_by_the_times_of_their_windows(query: Any, send: Any) -> None:
    def counted_twice(stream: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as sf

        counts = streams.windowed_counts(stream, "at", streams.tumbling("10 seconds"), "key", "2 minutes")
        timed = counts.withColumn("at", sf.window_time("window"))
        return streams.windowed(timed, "at", streams.tumbling("30 seconds"), {"events": sf.sum("count")}, "key")

    events = events_with_late_ones()
    topic, counting = query(counted_twice)
    send(topic, events)
    send(topic, [Event(0, "a", "p", 9_000)])
    send(topic, [Event(0, "a", "p", 18_000)])
    found = {(at(row.window.start), row.key): row.events for row in counting.run() if at(row.window.start) < 9_000}
    assert found == Counter((event.at // 30 * 30, event.key) for event in events)


def test_the_top_k_of_a_stream_are_those_of_the_windows_that_are_over(query: Any, send: Any) -> None:
    events = [event._replace(at=event.at // 10 * 10) for event in events_with_late_ones() if event.at >= 1_000]
    window = streams.tumbling("30 seconds")
    topic, ranking = query(lambda stream: streams.top_k(stream, "at", window, "item", 2, delay="2 minutes"))
    send(topic, events)
    send(topic, [Event(0, "a", "p", 9_000)])
    found = sorted((0, at(row.window.start), row["rank"], row["item"], row["measure"]) for row in ranking.run())
    assert found == model.top_k(events, 30, 2)


def test_sessions_of_a_stream_are_emitted_once_and_only_when_they_are_over(query: Any, send: Any) -> None:
    events = sorted(events_with_late_ones(), key=lambda event: event.at)[::3]
    topic, watching = query(lambda stream: streams.sessions(stream, "at", "5 seconds", "key", delay="0 seconds"))
    send(topic, events)
    last = max(event.at for event in events)
    expected = [one for one in model.sessions(events, 5) if one[3] + 5 <= last]
    assert sessions_of(watching.run()) == expected and expected
    send(topic, [Event(0, "c", "p", last + 1_000)])
    assert sessions_of(watching.run()) == model.sessions(events, 5)


def sessions_of(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted((0, row.key, at(row["first"]), at(row["last"]), row["count"]) for row in rows)


def test_a_repetition_is_dropped_within_the_watermark_even_after_a_restart(query: Any, send: Any) -> None:
    topic, deduplicating = query(lambda stream: streams.deduplicate(stream, "at", ["key", "item"], "1 minute"))
    events = [Event(0, "a", item, 1_000 + number) for number, item in enumerate("pqpprqs")]
    send(topic, events)
    assert Counter(row["item"] for row in deduplicating.run()) == Counter("pqrs")
    send(topic, [*events, Event(0, "a", "t", 1_010)])
    assert Counter(row["item"] for row in deduplicating.run()) == Counter("pqrst")


def test_two_streams_join_within_an_interval(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], send: Any, tmp_path: Path
) -> None:
    views, clicks = new_topic(), new_topic()
    chance = random.Random(3)
    left = [Event(0, chance.choice("abcd"), "v", 1_000 + 2 * number) for number in range(60)]
    right = [Event(0, chance.choice("abcd"), "c", 1_000 + 2 * number) for number in range(60)]
    send(views, left)
    send(clicks, right)

    def events(topic: str, name: str) -> Any:
        return streams.json_events(streams.records(spark, bootstrap, topic), SCHEMA).selectExpr("key", f"at AS {name}")

    viewed, clicked = events(views, "viewed"), events(clicks, "clicked")
    joined = streams.join_within(
        viewed, clicked, "key", "viewed", "clicked", "10 seconds", how="left", delay="1 minute"
    )
    joining = Query(lambda _: joined, joined, tmp_path)
    joining.run()
    send(views, [Event(0, "a", "v", 5_000)])  # the watermark of a join is the lesser of both sides
    send(clicks, [Event(0, "b", "c", 5_000)])
    rows = joining.run()
    found = sorted((0, row.key, at(row.viewed), at(row.clicked)) for row in rows if row.clicked is not None)
    assert found == model.pairs(left, right, 0, 10)
    matched = {(key, viewed_at) for _, key, viewed_at, _ in found}
    alone = sorted((row.key, at(row.viewed)) for row in rows if row.clicked is None)
    assert alone == sorted((e.key, e.at) for e in left if (e.key, e.at) not in matched)


def test_a_table_read_in_foreach_batch_is_new_in_each_micro_batch(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], produce: Any, send: Any, tmp_path: Path
) -> None:
    topic, names = new_topic(), new_topic()
    seen: list[tuple[str, str | None]] = []

    def name(key: str, value: str | None) -> None:
        text = None if value is None else json.dumps({"key": key, "name": value}).encode()
        produce(names, [(key.encode(), text, 0)])

    def join(batch: "DataFrame", _: int) -> None:
        rows = streams.records(spark, bootstrap, names, stream=False)
        table = streams.json_events(streams.latest_by_key(rows), "key string, name string").drop("at")
        seen.extend(sorted((row.key, row["name"]) for row in streams.join_table(batch, table, "key").collect()))
        name("a", None)
        name("b", "Bob")

    name("a", "Ann")
    send(topic, [Event(0, key, "p", number) for number, key in enumerate("abab")])
    stream = streams.json_events(streams.records(spark, bootstrap, topic, maxOffsetsPerTrigger=2), SCHEMA)
    writer = stream.writeStream.foreachBatch(join).option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_to_end(lambda _: writer.trigger(availableNow=True).start())
    assert seen == [("a", "Ann"), ("b", None), ("a", None), ("b", "Bob")]


def at(moment: Any) -> int:
    """A timestamp that Spark returned, in seconds: the machine's zone is that of the session."""
    return int(moment.timestamp())
