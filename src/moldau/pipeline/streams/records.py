"""Topics as events: the rows of `format("moldau")`, and their JSON values as columns with an event time."""

from typing import TYPE_CHECKING

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import check_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = "at"


def records(
    spark: "SparkSession", bootstrap: str, topics: str, *, stream: bool = True, **options: str | int
) -> "DataFrame":
    """The records of topics (separated by commas) as rows of `format("moldau")`, from the first record on: a stream, or
    a batch read. `options` are those of the source, such as maxOffsetsPerTrigger."""
    reader = spark.readStream if stream else spark.read
    given = {"bootstrapServers": bootstrap, "subscribe": topics, "startingOffsets": "earliest", **options}
    return reader.format("moldau").options(**{name: str(value) for name, value in given.items()}).load()


def json_events(rows: "DataFrame", schema: str, event_time: str = "") -> "DataFrame":
    """The JSON values of rows as columns of `schema` (Spark's DDL), followed by `at`: the record's timestamp, or the
    field `event_time`, which the schema declares as a timestamp. A value that is not such JSON becomes nulls; null
    values (tombstones) are left out. Raises `ConfigError`."""
    from pyspark.sql import functions as sf

    check_columns(rows, ("value", "timestamp"), "the records' column")
    value = sf.from_json(sf.col("value").cast("string"), schema).alias("value")
    parsed = rows.where("value IS NOT NULL").select(value, sf.col("timestamp").alias(AT))
    events = parsed.select("value.*", AT)
    if events.columns.count(AT) > 1:
        raise ConfigError(f"a field of the schema is named {AT!r}, which is the name of the event time: rename it")
    if not event_time:
        return events
    check_columns(events, [event_time], "event time")
    return events.withColumn(AT, sf.col(event_time)).drop(event_time)
