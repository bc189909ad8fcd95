"""Runs a query over what is there, although Spark may not wait long enough for the source's Python process."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STARTS_MAX = 5
STARTED_TOO_SLOWLY = "Python worker failed to connect back"
"""Spark waits 10 s for the Python process of a streaming source, and has no setting for it. The process of a batch
source or a task has no such limit."""


def run_to_end(start: "Callable[[int], StreamingQuery]") -> list[Any]:
    """Await the query that `start` starts, and return its progress. It is started again, with the number of the start
    from 1, if the Python process of its source started too slowly for Spark; nothing was read by then, so the query
    goes on from its checkpoint. Raises `StreamingQueryException`."""
    from pyspark.errors import StreamingQueryException

    number = 1
    while True:
        query = start(number)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if number == STARTS_MAX or STARTED_TOO_SLOWLY not in str(error):
                raise
            number += 1
        else:
            return list(query.recentProgress)
        finally:
            query.stop()
