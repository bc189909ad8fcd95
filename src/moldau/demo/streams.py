"""Questions over streams, with Structured Streaming: windowed counts, a stream joined with tables, the top k.

Each function takes DataFrames (a stream, tables) and returns a streaming DataFrame. `answer` runs it over the records
that exist now and returns the rows with the record rate. A table is a topic read as the newest value of each key. Event
time is the record's timestamp.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from moldau.errors import MoldauError
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.decoding.event_times import TIMESTAMP
from moldau.pipeline.streams import join_table, latest_by_key, records, run_to_end, tumbling, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FLIGHT = ("origin", "dest", "carrier", "dep_delay", "arr_delay")
WEATHER = ("origin", "wind_speed", "precip", "visib")
AIRLINE = ("carrier", "name")
AIRPORT = ("faa", "name")
DELAYED_MINUTES = 15
"""A flight counts as delayed from this many minutes on, as the Bureau of Transportation Statistics counts."""

Classes: TypeAlias = tuple[tuple[float, str], ...]
BEYOND = float("inf")
VISIBILITY: Classes = ((2, "below 2 miles"), (5, "2 to 5 miles"), (10, "5 to 10 miles"), (BEYOND, "10 miles"))
RAIN: Classes = ((0.005, "dry"), (0.1, "up to 0.1 inch an hour"), (BEYOND, "more rain"))
WIND: Classes = ((10, "below 10 mph"), (20, "10 to 20 mph"), (30, "20 to 30 mph"), (BEYOND, "30 mph and more"))
CLASSES = {
    column: [name for _, name in classes]
    for column, classes in (("visibility", VISIBILITY), ("rain", RAIN), ("wind", WIND))
}


@dataclass(frozen=True)
class QueryResult:
    """The rows of a finished query, with the number of records and micro-batches read, and the duration in seconds."""

    rows: list[dict[str, Any]]
    records: int
    batches: int
    seconds: float


def stream_of(
    spark: "SparkSession", bootstrap: str, topic: str, values: AvroValues, records_per_trigger: int
) -> "DataFrame":
    """A topic's Avro values as a stream from the first record on, with the record's timestamp as `at`."""
    return decoded_events(records(spark, bootstrap, topic, maxOffsetsPerTrigger=records_per_trigger), values)


def table_of(spark: "SparkSession", bootstrap: str, topic: str, values: AvroValues) -> "DataFrame":
    """A topic as a table: the newest value of each key. A null value deletes its key, as compaction would."""
    return decoded_events(latest_by_key(records(spark, bootstrap, topic, stream=False)), values)


def decoded_events(rows: "DataFrame", values: AvroValues) -> "DataFrame":
    """The Avro values of rows as the columns of the reader's schema, followed by `at`: the record's timestamp. Null
    values (tombstones) are left out. A value that cannot be decoded fails the query."""
    schema = values.schema.append(pyarrow.field("at", TIMESTAMP))

    def decode(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            found = values.found(batch.column(0))
            if found.bad:
                raise MoldauError(f"a value cannot be decoded: {next(iter(found.bad.values())).reason}")
            yield pyarrow.RecordBatch.from_arrays([*found.columns, batch.column(1).cast(TIMESTAMP)], schema=schema)

    present = rows.where("value IS NOT NULL").select("value", "timestamp")
    return present.mapInArrow(decode, from_arrow_schema(schema))


def windowed_counts(flights: "DataFrame", window: str = "1 hour", zone: str = "America/New_York") -> "DataFrame":
    """Scheduled departures of each airport in each window of event time, and how many were cancelled.

    `start` is the window's start in UTC as text; `day` and `hour` are the same moment on the clocks of `zone`.
    """
    counts = {"departures": sf.count("*"), "cancelled": sf.count_if(sf.isnull("dep_delay"))}
    counted = windowed(flights, "at", tumbling(window), counts, by="origin", delay="1 day")
    start = sf.col("window.start")
    local = sf.from_utc_timestamp(start, zone)
    return counted.select(
        sf.date_format(start, "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("start"),
        sf.date_format(local, "yyyy-MM-dd").alias("day"),
        sf.hour(local).alias("hour"),
        "origin", "departures", "cancelled",
    )  # fmt: skip


def delays_in_weather(flights: "DataFrame", weather: "DataFrame", airlines: "DataFrame") -> "DataFrame":
    """Flights joined with the weather of their hour and their airline's name, summed by airline and weather class."""
    hourly = weather.select(
        sf.col("origin"), sf.col("at").alias("weather_hour"),
        _class("visib", VISIBILITY).alias("visibility"), _class("precip", RAIN).alias("rain"),
        _class("wind_speed", WIND).alias("wind"),
    )  # fmt: skip
    with_hour = flights.withColumn("weather_hour", sf.date_trunc("hour", "at"))
    in_weather = join_table(with_hour, hourly, ["origin", "weather_hour"])
    joined = join_table(in_weather, airlines.select("carrier", sf.col("name").alias("airline")), "carrier")
    return joined.groupBy("carrier", "airline", "visibility", "rain", "wind").agg(
        sf.count("*").alias("flights"),
        sf.count("dep_delay").alias("departed"),
        sf.sum("dep_delay").alias("delay_minutes"),
        sf.count_if(sf.col("dep_delay") >= DELAYED_MINUTES).alias("delayed"),
    )


def top_destinations(flights: "DataFrame", airports: "DataFrame", k: int = 10) -> "DataFrame":
    """The k destinations with the most flights, with their mean arrival delay."""
    names = airports.select(sf.col("faa").alias("dest"), sf.col("name").alias("airport"))
    named = join_table(flights, names, "dest")
    counted = named.groupBy("dest", "airport").agg(
        sf.count("*").alias("flights"), sf.avg("arr_delay").alias("arrival_delay_minutes")
    )
    return counted.orderBy(sf.desc("flights"), "dest").limit(k)


def answer(question: "DataFrame", name: str, checkpoint: Path) -> QueryResult:
    """Run a query over the records that exist now (Trigger.AvailableNow) and collect the complete result. If it is
    restarted, it has a new checkpoint."""
    began = time.monotonic()
    progress = run_to_end(
        lambda number: (
            question.writeStream.format("memory")
            .queryName(name)
            .outputMode("complete")
            .option("checkpointLocation", str(checkpoint if number == 1 else checkpoint / f"start-{number}"))
            .trigger(availableNow=True)
            .start()
        )
    )
    seconds = time.monotonic() - began
    rows = [row.asDict() for row in question.sparkSession.table(name).collect()]
    return QueryResult(rows, sum(step["numInputRows"] for step in progress), len(progress), seconds)


def _class(column: str, classes: Classes) -> Any:
    """The name of the first class whose bound is above the value; null stays null."""
    chosen = sf.when(sf.col(column).isNull(), None)
    for bound, name in classes:
        chosen = chosen.when(sf.col(column) < bound, name)
    return chosen
