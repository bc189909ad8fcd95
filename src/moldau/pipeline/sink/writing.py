"""What one Spark task writes: its rows in one transaction, with a marker that tells that its batch is written.

A task that runs again first fences its predecessor (InitProducerId), which ends the predecessor's transaction, and then
reads the marker. If the batch is committed already, it writes nothing and checks that it was given the same rows.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow
import pyarrow.compute as compute
from pyspark.sql.datasource import WriterCommitMessage

from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError
from moldau.pipeline.options import OptionError
from moldau.pipeline.sink.markers import BatchMarker, TaskOfQuery, committed, place, tasks_with_markers
from moldau.pipeline.sink.options import SinkOptions
from moldau.pipeline.worker_process import keep_imported
from moldau.records.arrays import repeated

SEND_BYTES = 8 * 1024 * 1024
SEND_ROWS = 131_072


class BatchDivided(MoldauError):
    """A batch was replayed with other rows in a task than before, so that it cannot be completed exactly once."""


class RowRefused(MoldauError):
    """A row that no record can be made of, such as one with a time before 1970."""


@dataclass
class WrittenRows(WriterCommitMessage):
    """What one task tells the driver. `is_replay`: it had committed the batch before. `is_first`: it had committed
    nothing in this run of the query."""

    task: TaskOfQuery
    marker: BatchMarker
    is_replay: bool = False
    is_first: bool = False


def write_task(
    options: SinkOptions, columns: tuple[str, ...], task: TaskOfQuery, batch: int, given: Iterable[Any], run: str = ""
) -> WrittenRows:
    """Write the rows of one task as batch number `batch` of its query, which is in this `run`. Without rows it asks the
    broker nothing."""
    tables = gathered(given, columns)
    first = next(tables, None)
    if first is None:
        return WrittenRows(task, BatchMarker(batch, 0, 0))
    keep_imported()
    tables = itertools.chain([first], tables)
    with Producer(options.producer_settings(task.transactional_id)) as producer:
        producer.init_transactions()
        with Admin(options.bootstrap_servers) as admin:
            before = committed(admin, task)
        if before is not None and before.batch >= batch:
            check_same(before, counted(tables, batch), task)
            return WrittenRows(task, before, is_replay=True)
        rows = size = 0
        topics: set[str] = set()
        with producer.transaction() as transaction:
            for table in tables:
                for topic, part in by_topic(table, options.topic):
                    _send(producer, topic, part)
                    topics.add(topic)
                rows, size = rows + table.num_rows, size + content_bytes(table)
            marker = BatchMarker(batch, rows, size, run)
            transaction.send_offsets({place(min(topics)): marker.offset()}, task.transactional_id)
        return WrittenRows(task, marker, is_first=before is None or before.run != run)


def _send(producer: Producer, topic: str, rows: pyarrow.Table) -> None:
    try:
        producer.send_table(topic, rows)
    except (TypeError, ValueError) as error:
        raise RowRefused(f"A row cannot be written to topic {topic}: {error}.") from None


def counted(tables: Iterable[pyarrow.Table], batch: int) -> BatchMarker:
    """What the marker of these rows would be."""
    rows = size = 0
    for table in tables:
        rows, size = rows + table.num_rows, size + content_bytes(table)
    return BatchMarker(batch, rows, size)


def check_same(before: BatchMarker, now: BatchMarker, task: TaskOfQuery) -> None:
    """Raise `BatchDivided` if a replayed batch has other rows in this task than those it had committed."""
    if before.batch > now.batch:
        raise BatchDivided(
            f"Task {task.number} has committed batch {before.batch} already, and is given batch {now.batch}: the "
            "checkpoint is older than what the topic holds. Start with a new checkpoint, or with a greater txnVersion."
        )
    if not before.has_rows_of(now):
        raise BatchDivided(
            f"Task {task.number} had committed batch {now.batch} with {before.rows} rows, and its replay has "
            f"{now.rows}: the batch is divided among tasks in another way. Restart the query with the number of "
            "partitions it had (minPartitions, spark.sql.shuffle.partitions)."
        )


def check_division(options: SinkOptions, written: Sequence[WrittenRows], batch: int) -> None:
    """Raise `BatchDivided` if an earlier attempt divided this batch among other tasks: only tasks that have rows of it
    now may have committed it."""
    if not written:
        return
    have_rows = {one.task for one in written if one.marker.rows}
    with Admin(options.bootstrap_servers) as admin:
        for task in tasks_with_markers(admin, written[0].task):
            before = None if task in have_rows else committed(admin, task)
            if before is not None and before.batch == batch:
                raise BatchDivided(
                    f"Task {task.number} had committed batch {batch} with {before.rows} rows, and its replay has "
                    "none of them there: the batch is divided among tasks in another way, and these rows may be "
                    "written twice. Restart the query with the number of partitions it had."
                )


def gathered(given: Iterable[Any], columns: tuple[str, ...]) -> Iterator[pyarrow.Table]:
    """The rows in tables large enough to fill Kafka's batches."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in given:
        if batch.num_rows:
            waiting.append(batch.select(list(columns)))
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= SEND_ROWS or size >= SEND_BYTES:
            yield pyarrow.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def by_topic(table: pyarrow.Table, topic: str | None) -> Iterator[tuple[str, pyarrow.Table]]:
    """The rows of each topic, in their order. Raises `OptionError` for a row without a topic."""
    if topic is not None:
        yield topic, table
        return
    names, rows = table.column("topic"), table.drop_columns(["topic"])
    if names.null_count:
        raise OptionError("A row has no topic: column topic is null, and the option topic is not set.")
    every = compute.unique(names).to_pylist()
    for name in every:
        same = None if len(every) == 1 else compute.equal(names, repeated(name, pyarrow.string(), len(names)))
        yield name, rows if same is None else rows.filter(same)


def content_bytes(table: pyarrow.Table) -> int:
    """The bytes of all keys and values."""
    columns = [table.column(name) for name in ("key", "value") if name in table.column_names]
    return sum(compute.sum(compute.binary_length(column)).as_py() or 0 for column in columns)
