"""Writing a DataFrame: each task commits its rows in one transaction.

A task that Spark runs again within the job, because its executor died or it was slow, adds nothing twice. The rows of a
task are visible when that task ends, so a job that fails leaves the rows of its finished tasks. With txnAppId and
txnVersion (the names of Delta Lake) the tasks of a job that is run again have the ids that they had, and their markers
stay: what is written is not written again. Without them it is.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError
from moldau.pipeline.options import OptionError
from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.sink.markers import TaskOfQuery
from moldau.pipeline.sink.options import SinkOptions
from moldau.pipeline.sink.schema import columns_to_write
from moldau.pipeline.sink.writing import WrittenRows, check_division, write_task

if TYPE_CHECKING:
    import pyarrow


logger = logging.getLogger(__name__)


class BatchWriter(DataSourceArrowWriter):
    """One job that writes."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool):
        if overwrite:
            raise OptionError('A topic cannot be overwritten; write with mode("append").')
        self._options = options
        self._columns = columns_to_write(schema, options)
        self._job = options.app_id or f"job-{uuid.uuid4().hex[:12]}"

    def write(self, iterator: Iterator["pyarrow.RecordBatch"]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        with in_a_sentence():
            return write_task(
                self._options, self._columns, self._task(context.partitionId()), self._options.version, iterator
            )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Without txnAppId delete the groups of the markers, which nothing reads once the job has ended. With it check
        that an earlier attempt has not divided the rows among other tasks."""
        with in_a_sentence():
            if self._options.app_id is None:
                self._delete_markers(messages)
            else:
                written = [one for one in messages if isinstance(one, WrittenRows)]
                check_division(self._options, written, self._options.version)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """End the transactions of tasks that have failed, so that they do not hold up readers until they time out. If
        the broker does not answer, leave that to their time-out."""
        failed = [self._task(number) for number, message in enumerate(messages) if message is None]
        try:
            for task in failed:
                with Producer(self._options.producer_settings(task.transactional_id)) as producer:
                    producer.init_transactions()
            if self._options.app_id is None:
                self._delete_markers(messages)
        except MoldauError as error:
            logger.warning("The transactions of %d failed tasks were not ended: %s", len(failed), error)

    def _task(self, number: int) -> TaskOfQuery:
        return TaskOfQuery(self._options.prefix, self._job, number)

    def _delete_markers(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        written = [one for one in messages if isinstance(one, WrittenRows) and one.marker.rows]
        if written:
            with Admin(self._options.bootstrap_servers) as admin:
                admin.delete_groups([one.task.transactional_id for one in written])
