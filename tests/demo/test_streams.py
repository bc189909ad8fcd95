"""Windowed counts, the join and the top k over real streams of a few records; Avro values as events."""

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.demo import schemas, streams
from moldau.errors import MoldauError
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.session import errors_in_a_sentence
from moldau.pipeline.streams import json_events, latest_by_key, records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]
NOON_MS = 1_372_680_000_000  # 2013-07-01T12:00:00Z, 8:00 in New York
HOUR_MS = 3_600_000
Event = tuple[str, Mapping[str, Any] | None, int]
FLIGHT = "origin string, dest string, carrier string, dep_delay int, arr_delay int"
WEATHER = "origin string, wind_speed double, precip double, visib double"

FLIGHTS: list[Event] = [
    ("a", {"origin": "EWR", "dest": "ORD", "carrier": "UA", "dep_delay": 15, "arr_delay": 10}, NOON_MS + 60_000),
    ("b", {"origin": "EWR", "dest": "ORD", "carrier": "UA", "dep_delay": 2, "arr_delay": 20}, NOON_MS + HOUR_MS - 1),
    ("c", {"origin": "EWR", "dest": "LAX", "carrier": "B6", "dep_delay": None, "arr_delay": None}, NOON_MS + 120_000),
    ("d", {"origin": "JFK", "dest": "LAX", "carrier": "B6", "dep_delay": -4, "arr_delay": -8}, NOON_MS + HOUR_MS),
    ("e", {"origin": "JFK", "dest": "LAX", "carrier": "B6", "dep_delay": 50, "arr_delay": None}, NOON_MS + 5 * HOUR_MS),
]


@pytest.fixture
def topic_of(new_topic: NewTopic, produce: Produce) -> Callable[[Sequence[Event]], str]:
    def create(events: Sequence[Event]) -> str:
        topic = new_topic()
        produce(
            topic,
            [(key.encode(), None if value is None else json.dumps(value).encode(), at) for key, value, at in events],
        )
        return topic

    return create


@pytest.fixture
def ask(spark: "SparkSession", bootstrap: str, topic_of: Callable[[Sequence[Event]], str], tmp_path: Path) -> Any:
    """Runs a question over the stream of flights, two records in a micro-batch; the rows of the answer."""

    def run(name: str, question: Callable[[Any], Any]) -> list[dict[str, Any]]:
        flights = json_events(records(spark, bootstrap, topic_of(FLIGHTS), maxOffsetsPerTrigger=2), FLIGHT)
        answer = streams.answer(question(flights), name, tmp_path / "checkpoint")
        assert (answer.records, answer.batches) == (5, 3)
        return answer.rows

    return run


def table_of(spark: "SparkSession", bootstrap: str, topic: str, schema: str) -> "DataFrame":
    return json_events(latest_by_key(records(spark, bootstrap, topic, stream=False)), schema)


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")  # as `start_session`
def test_avro_values_are_events_and_one_that_is_none_fails_the_query(spark: "SparkSession") -> None:
    noon = datetime.datetime(2013, 7, 1, 12, tzinfo=datetime.UTC)
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        serialize = AvroSerializer(registry, schemas.schema("airports")).for_topic("airports", "value")
        row = {"faa": "LAX", "name": "Los Angeles Intl", "lat": 33.9, "lon": -118.4, "alt": 126, "tz": -8, "dst": "A"}
        values = AvroValues(registry, schemas.schema("airports", streams.AIRPORT))
        given = [(serialize({**row, "tzone": None}), noon), (None, noon)]
        frame = spark.createDataFrame(given, "value binary, timestamp timestamp")
        assert [tuple(one) for one in streams.decoded_events(frame, values).select("faa", "name").collect()] == [
            ("LAX", "Los Angeles Intl")
        ]
        assert [name for name, _ in streams.decoded_events(frame, values).dtypes] == ["faa", "name", "at"]
        frame = spark.createDataFrame([(b"{}", noon)], "value binary, timestamp timestamp")
        with pytest.raises(MoldauError, match="Spark failed"), errors_in_a_sentence():
            streams.decoded_events(frame, values).collect()


@pytest.mark.check  # `tests/pipeline/streams` has windows in `make test`
def test_departures_are_counted_in_windows_of_event_time(ask: Any) -> None:
    rows = ask("windows", streams.windowed_counts)
    assert sorted(tuple(row.values()) for row in rows) == [
        ("2013-07-01T12:00:00Z", "2013-07-01", 8, "EWR", 3, 1),
        ("2013-07-01T13:00:00Z", "2013-07-01", 9, "JFK", 1, 0),
        ("2013-07-01T17:00:00Z", "2013-07-01", 13, "JFK", 1, 0),
    ]


@pytest.mark.check  # `make test` has it with a tenth of the demo's data
def test_flights_meet_the_weather_of_their_hour_and_their_airlines_newest_name(
    ask: Any, spark: "SparkSession", bootstrap: str, topic_of: Callable[[Sequence[Event]], str]
) -> None:
    fog, fine = {"wind_speed": 4.0, "precip": 0.0, "visib": 1.5}, {"wind_speed": 35.0, "precip": 0.3, "visib": 10.0}
    weather = topic_of([("1", {"origin": "EWR", **fog}, NOON_MS), ("2", {"origin": "JFK", **fine}, NOON_MS + HOUR_MS)])
    airlines = topic_of(
        [("UA", {"carrier": "UA", "name": "Old"}, 0), ("B6", {"carrier": "B6", "name": "JetBlue"}, 0),
         ("UA", {"carrier": "UA", "name": "United"}, 0), ("ZZ", {"carrier": "ZZ", "name": "Gone"}, 0), ("ZZ", None, 0)]
    )  # fmt: skip
    table = table_of(spark, bootstrap, airlines, "carrier string, name string")
    assert sorted(row["name"] for row in table.collect()) == ["JetBlue", "United"]
    hours = table_of(spark, bootstrap, weather, WEATHER)
    rows = ask("joined", lambda flights: streams.delays_in_weather(flights, hours, table))
    assert sorted((tuple(row.values()) for row in rows), key=str) == [
        ("B6", "JetBlue", "10 miles", "more rain", "30 mph and more", 1, 1, -4.0, 0),
        ("B6", "JetBlue", "below 2 miles", "dry", "below 10 mph", 1, 0, None, 0),
        ("B6", "JetBlue", None, None, None, 1, 1, 50.0, 1),
        ("UA", "United", "below 2 miles", "dry", "below 10 mph", 2, 2, 17.0, 1),
    ]


def test_the_top_destinations_are_kept_over_the_stream(
    ask: Any, spark: "SparkSession", bootstrap: str, topic_of: Callable[[Sequence[Event]], str]
) -> None:
    airports = topic_of([("LAX", {"faa": "LAX", "name": "Los Angeles Intl"}, 0)])
    table = table_of(spark, bootstrap, airports, "faa string, name string")
    rows = ask("top", lambda flights: streams.top_destinations(flights, table, k=1))
    assert [tuple(row.values()) for row in rows] == [("LAX", "Los Angeles Intl", 3, -8.0)]


@pytest.mark.check  # for 11 s it only waits: longer than Spark does
def test_a_query_whose_python_process_starts_too_slowly_is_started_again(ask: Any, slow_once: Path) -> None:
    slow_once.touch()
    rows = ask("slow", streams.windowed_counts)
    assert len(rows) == 3 and not slow_once.exists()
