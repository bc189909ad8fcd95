"""What Spark's Python data source API has, by version: Spark 4.0 and newer are supported.

4.0 has readers, batch writers of Arrow, and stream writers of rows. 4.1 added pushed filters and stream writers of
Arrow; 4.2 added read limits and Trigger.AvailableNow for streams. What a session's Spark lacks is an empty class
here.
"""

from typing import TYPE_CHECKING, Any

import pyspark

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
HAS_READ_LIMITS = VERSION >= (4, 2)

if TYPE_CHECKING or VERSION >= (4, 1):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamWriterBase
else:
    from pyspark.sql.datasource import DataSourceStreamWriter as StreamWriterBase

if TYPE_CHECKING or HAS_READ_LIMITS:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
else:

    class ReadLimit:
        """Spark before 4.2 has no limits, and never makes one of these."""

    ReadAllAvailable = ReadMaxRows = ReadLimit

    class SupportsTriggerAvailableNow:
        """Spark before 4.2 fixes the end of a stream with Trigger.AvailableNow without asking the source."""


TAKES_ARROW = VERSION >= (4, 1)
"""Whether a stream's writer is given Arrow batches; before 4.1 it is given rows."""

__all__ = [
    "HAS_READ_LIMITS", "TAKES_ARROW", "VERSION", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "StreamWriterBase",
    "SupportsTriggerAvailableNow", "of_this_spark",
]  # fmt: skip


def of_this_spark() -> str:
    """The version of Spark in use, for sentences."""
    return f"this is Spark {pyspark.__version__}"


def planned_with_filters(main: Any, modules: Any) -> bool:
    """A reader is given filters only if its option filterPushdown says so: Spark 4.1 to 4.3 keep what was planned with
    the filters of one query for later queries of the same DataFrame that have none, and leave out their rows.

    Whether the calling process is the one in which Spark pushes filters. In other processes a reader with
    `pushFilters` is an error unless spark.sql.python.filterPushdown.enabled is set, which they cannot see."""
    planner = "pyspark.sql.worker.data_source_pushdown_filters"
    return planner in modules or getattr(getattr(main, "__spec__", None), "name", None) == planner
