"""Deduplication by key within the watermark."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.errors import ConfigError
from moldau.pipeline.streams.event_time import Duration, check_columns, names_of, watermarked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NUMBER = "_number"


def deduplicate(events: "DataFrame", at: str, by: str | Iterable[str], delay: Duration | None = None) -> "DataFrame":
    """The events without repetitions of a key; the columns stay.

    In a stream, the first row of a key that arrives is kept, and repetitions are dropped as long as their event times
    are less than the delay apart; a later one may be kept again. In a batch read, the row with the earliest event time
    of each key is kept.

    Output modes: append, update. Late rows: dropped. State: one row for each key, until the watermark has passed the
    kept row's time plus the delay. Raises `ConfigError`.
    """
    keys = names_of(by)
    if not keys:
        raise ConfigError("deduplicate needs at least one key column")
    check_columns(events, keys, "key")
    timed = watermarked(events, at, delay)
    if events.isStreaming:
        return timed.dropDuplicatesWithinWatermark(keys)
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as sf

    number = sf.row_number().over(Over.partitionBy(*keys).orderBy(at))
    return timed.withColumn(NUMBER, number).where(f"{NUMBER} = 1").drop(NUMBER)
