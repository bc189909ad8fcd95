"""Questions over the search log: how often each class of user searches in each period, and for what.

Each function takes the events of `searches_of`, batch or stream, and returns a DataFrame (`moldau.pipeline.streams`).
"""

from typing import TYPE_CHECKING

from moldau.demo.search.searches import CLASSES, SCHEMA, TOPIC
from moldau.pipeline.streams import deduplicate, json_events, records, top_k, tumbling, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELAY = "10 minutes"
"""How late a search may come."""


def searches_of(spark: "SparkSession", bootstrap: str, *, stream: bool = True) -> "DataFrame":
    """The searches: `id`, `user`, `keyword`, `at` (when the user searched) and `class`; each id once."""
    from pyspark.sql import functions as sf

    rows = records(spark, bootstrap, TOPIC, stream=stream)
    events = deduplicate(json_events(rows, SCHEMA, event_time="time"), "at", "id", DELAY)
    named = sf.split_part(sf.col("user"), sf.lit("-"), sf.lit(1))
    return events.withColumn("class", sf.when(named.isin(*CLASSES), named).otherwise(CLASSES[0]))


def activity(searches: "DataFrame", period: str = "1 hour") -> "DataFrame":
    """`window`, `class`, `searches`, and `users` (about how many different ones), for each period and class."""
    from pyspark.sql import functions as sf

    counts = {"searches": sf.count("*"), "users": sf.approx_count_distinct("user")}
    return windowed(searches, "at", tumbling(period), counts, by="class")


def top_keywords(searches: "DataFrame", period: str = "1 hour", k: int = 10) -> "DataFrame":
    """`window`, `class`, `rank`, `keyword` and `measure` (the number of searches): the k most frequent keywords of
    each period and class."""
    return top_k(searches, "at", tumbling(period), "keyword", k, by="class")
