"""How many rows a query has dropped because they were late."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def late_rows(query: "StreamingQuery") -> int:
    """The number of rows that the query's stateful operations dropped as late since it was started, over the progress
    that Spark keeps (`spark.sql.streaming.numRecentProgressUpdates`, 100 micro-batches). An aggregation counts rows
    after its partial aggregation, so several late rows of one window and group count as one."""
    return sum(
        int(operator["numRowsDroppedByWatermark"])
        for progress in query.recentProgress
        for operator in progress["stateOperators"]
    )
