# ruff: noqa: N803 (Spark names the arguments)
"""Writing a stream exactly once: each task commits its rows of a micro-batch together with the batch's number.

The transactional id of a task is made of the query's id, which is in the checkpoint, and the task's number, so that a
restarted query fences what is left of the one before it. A replayed batch is skipped by the tasks that have committed
it. That needs the replay to give each task the same rows, which holds if the number of tasks stays; if it changed, the
query fails with a sentence. Only the first batch of a run can be a replay. The writer does not know which batch that
is: it looks if a task has written a replay, or if no task has written in this run before.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.sink.markers import TaskOfQuery
from moldau.pipeline.sink.options import SinkOptions
from moldau.pipeline.sink.rows import batches_of_rows
from moldau.pipeline.sink.schema import columns_to_write
from moldau.pipeline.sink.writing import WrittenRows, check_division, write_task
from moldau.pipeline.spark_versions import TAKES_ARROW, StreamWriterBase

if TYPE_CHECKING:
    import pyarrow

QUERY_ID, BATCH_ID, RUN_ID = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
"""Local properties that Spark sets for the tasks of a micro-batch; the query's id is that of the checkpoint, and each
start of the query is a run."""


class StreamWriter(StreamWriterBase):
    """The writer of a query, made anew for each commit."""

    def __init__(self, options: SinkOptions, schema: StructType):
        self._options = options
        self._schema = schema
        self._columns = columns_to_write(schema, options)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        assert query is not None and batch is not None, "Spark names query and batch to the tasks of a stream"
        task = TaskOfQuery(self._options.prefix, query, context.partitionId())
        given: Iterable[pyarrow.RecordBatch] = iterator
        if not TAKES_ARROW:
            given = batches_of_rows(iterator, self._schema, self._columns)
        with in_a_sentence():
            return write_task(
                self._options, self._columns, task, int(batch), given, context.getLocalProperty(RUN_ID) or ""
            )

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Check that a replayed batch was divided among tasks as before."""
        written = [one for one in messages if isinstance(one, WrittenRows)]
        have_rows = [one for one in written if one.marker.rows]
        if have_rows and (any(one.is_replay for one in have_rows) or all(one.is_first for one in have_rows)):
            with in_a_sentence():
                check_division(self._options, written, batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Leave everything to the replay: its tasks end the transactions of these."""
