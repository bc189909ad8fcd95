"""`pipeline load`: everything new since the last load becomes Parquet, exactly once (D13).

The driver plans ranges from the warehouse's offsets to the log's ends. Spark distributes them to tasks. Each task
fetches its ranges, writes Parquet from Arrow on its own machine, and returns only a description of each file. Then the
driver commits (`warehouse.py`). Rows never enter the JVM. Spark only distributes the ranges, restarts lost tasks and
collects the results.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.fetching import read_columns
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.manifest import Manifest
from moldau.pipeline.options import Subscription
from moldau.pipeline.positions import DataLost, Offsets, earliest, latest, subscribed, waits_for_transaction
from moldau.pipeline.ranges import OffsetRange, between, cut, pack
from moldau.pipeline.session import errors_in_a_sentence
from moldau.pipeline.warehouse import Staged, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPRESSION = "lz4"
TASKS_PER_CORE = 2
PIECE_RECORDS_MIN = 250_000
TASKS_PER_CORE_MAX = 8


class LoadFailed(MoldauError):
    """A task could not fetch or write its range; nothing was committed."""


class Task(NamedTuple):
    """One range and the folder for its files; pickled and sent to a worker."""

    bootstrap: str
    part: OffsetRange
    staging: str
    load_id: str
    compression: str
    isolation_level: str


class Outcome(NamedTuple):
    """The result of one range; `failure` is a sentence, or empty on success."""

    part: OffsetRange
    files: tuple[Staged, ...]
    failure: str = ""


@dataclass(frozen=True)
class Loaded:
    """The result of a load. `manifest` is None if nothing was new; seconds last from the first fetch to the
    manifest."""

    manifest: Manifest | None
    records: int
    bytes: int
    seconds: float
    taken_back: int

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0


def load(
    session: "Callable[[], SparkSession]",
    bootstrap: str,
    topics: Sequence[str],
    warehouse: Warehouse,
    *,
    fail_on_data_loss: bool = True,
    compression: str = COMPRESSION,
    isolation_level: str = "read_committed",
) -> Loaded:
    """Load what is new in `topics`; raises MoldauError with one sentence and leaves the warehouse as it was. With
    isolation level read_committed a load ends where a transaction is open; the next one goes on from there.

    `session` is called only if something is to be loaded, so that a load without new records does not start Spark.
    """
    with warehouse.locked():
        taken_back = warehouse.recover()
        start, end = plan(bootstrap, topics, warehouse.offsets(), fail_on_data_loss, isolation_level)
        ranges = between(start, end)
        if not ranges:
            return Loaded(None, 0, 0, 0.0, taken_back)
        spark = session()
        began = time.monotonic()
        load_id = warehouse.runtime.random.uuid().hex[:12]
        with errors_in_a_sentence():
            task = Task(bootstrap, ranges[0], str(warehouse.staging(load_id)), load_id, compression, isolation_level)
            staged = _run(spark, task, ranges)
        manifest = warehouse.commit(load_id, staged, {part.topic_partition: part.end for part in ranges})
        records, size = sum(one.file.records for one in staged), sum(one.file.bytes for one in staged)
        return Loaded(manifest, records, size, time.monotonic() - began, taken_back)


def plan(
    bootstrap: str,
    topics: Sequence[str],
    loaded: Offsets,
    fail_on_data_loss: bool = True,
    isolation_level: str = "read_committed",
) -> tuple[Offsets, Offsets]:
    """The offset range to load for each partition. Raises `DataLost` if the log no longer fits the warehouse's
    offsets."""
    partitions = subscribed(bootstrap, Subscription(topics=tuple(dict.fromkeys(topics))))
    first, end = earliest(bootstrap, partitions), latest(bootstrap, partitions, isolation_level)
    start: Offsets = {}
    for tp in partitions:
        at = loaded.get(tp, first[tp])
        if at > end[tp] and not waits_for_transaction(bootstrap, tp, at):
            raise DataLost(
                f"The warehouse has {tp.topic} partition {tp.partition} up to offset {at}, but its log ends at "
                f"{end[tp]}: the topic was deleted and created again, so load it into another warehouse."
            )
        if at < first[tp] and fail_on_data_loss:
            raise DataLost(
                f"Offsets {at} to {first[tp] - 1} of {tp.topic} partition {tp.partition} are gone from the log and "
                "were never loaded; use --allow-data-loss to continue without them."
            )
        start[tp] = max(at, first[tp])
    return start, end


def _run(spark: "SparkSession", task: Task, ranges: Sequence[OffsetRange]) -> list[Staged]:
    """Have Spark do a task like this one for pieces of these ranges."""
    try:
        Path(task.staging).mkdir(parents=True, exist_ok=True)  # only here: a leftover task of a dead load must not
    except OSError as error:
        raise LoadFailed(f"{task.staging} cannot be created: {error.strerror}.") from None
    context = spark.sparkContext
    cores = max(1, context.defaultParallelism)
    total = sum(part.size for part in ranges)
    pieces = cut(ranges, max(PIECE_RECORDS_MIN, -(-total // (TASKS_PER_CORE * cores))))
    packed = [[task._replace(part=part) for part in parts] for parts in pack(pieces, TASKS_PER_CORE_MAX * cores)]
    outcomes = context.parallelize(packed, len(packed)).flatMap(write_ranges).collect()
    for outcome in outcomes:
        if outcome.failure:
            raise LoadFailed(f"{_named(outcome.part)} could not be loaded: {outcome.failure}")
    assert sorted(outcome.part for outcome in outcomes) == sorted(pieces), "every planned range comes back once"
    return [file for outcome in outcomes for file in outcome.files]


def write_ranges(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Runs in a Spark task. Expected failures are returned as values; Spark retries a task whose worker dies."""
    from pyspark import TaskContext

    from moldau.pipeline.writing import RangeWriter

    context = TaskContext.get()
    attempt = context.taskAttemptId() if context else 0
    for number, task in enumerate(tasks):
        part = task.part
        try:
            writer = RangeWriter(Path(task.staging), f"{attempt}-{number}", part, task.load_id, task.compression)
            for batch in read_columns(
                task.bootstrap, *part.topic_partition, part.start, part.end, isolation_level=task.isolation_level
            ):
                writer.add(batch)
            yield Outcome(part, tuple(writer.finish()))
        except OSError as error:
            yield Outcome(part, (), f"{error.strerror or error} ({error.filename or task.staging}).")
        except MoldauError as error:
            yield Outcome(part, (), f"{error}.")


def _named(part: OffsetRange) -> str:
    return f"{TopicPartition(part.topic, part.partition)} from offset {part.start} to {part.end}"
