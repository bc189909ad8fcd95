"""`pipeline load`: everything new since the last load becomes rows of Delta tables, exactly once (D13).

The driver plans ranges from the tables' offsets to the log's ends. Spark distributes portions of them to tasks. Each
task fetches its ranges, writes Parquet from Arrow where it runs, and returns only a description of each file. Then the
driver commits the files and the new offsets of each topic. Rows never enter the JVM.

Rejected records go to a table of their own, which is committed first. A load that dies between the two commits leaves
the topic's offsets where they were, while the table of rejected records is ahead; the next load leaves out exactly the
records that it finds there (`_quarantined`), and so none is lost and none is in both tables, even if it decodes
differently.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading.decoding import ValueDecoder
from moldau.pipeline.loading.portions import portions
from moldau.pipeline.loading.target import Quarantined, Target
from moldau.pipeline.loading.tasks import Outcome, TaskPortion, write_portions
from moldau.pipeline.options import Subscription
from moldau.pipeline.positions import DataLost, Offsets, earliest, latest, subscribed, waits_for_transaction
from moldau.pipeline.ranges import OffsetRange, between
from moldau.pipeline.session import errors_in_a_sentence
from moldau.pipeline.tables.columns import REJECTED, check_decoded, in_files, missing, names_of_partitions, of_table
from moldau.pipeline.tables.data_file import DataFile
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPRESSION = "lz4"


class LoadFailed(MoldauError):
    """A task could not fetch or write its range; nothing was committed."""


@dataclass(frozen=True)
class Settings:
    """How a load reads and writes. `partition_by` counts for new tables only; `decoders` are by topic."""

    fail_on_data_loss: bool = True
    compression: str = COMPRESSION
    isolation_level: str = "read_committed"
    partition_by: str = "date"
    decoders: Mapping[str, ValueDecoder] | None = None


@dataclass(frozen=True)
class Commit:
    """What a load added to the table of one topic, and the version of the table that has it."""

    topic: str
    version: int
    files: int
    records: int
    bytes: int
    rejected: int


@dataclass(frozen=True)
class Loaded:
    """The result of a load: a commit for each topic that had something new. The seconds last from the first fetch to
    the last commit."""

    commits: tuple[Commit, ...] = ()
    seconds: float = 0.0

    @property
    def records(self) -> int:
        return sum(commit.records for commit in self.commits)

    @property
    def rejected(self) -> int:
        return sum(commit.rejected for commit in self.commits)

    @property
    def bytes(self) -> int:
        return sum(commit.bytes for commit in self.commits)

    @property
    def files(self) -> int:
        return sum(commit.files for commit in self.commits)

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0


def load(
    session: "Callable[[], SparkSession]",
    bootstrap: str,
    topics: Sequence[str],
    warehouse: Warehouse,
    settings: Settings = Settings(),
    runtime: Runtime | None = None,
) -> Loaded:
    """Load what is new in `topics`; raises MoldauError with one sentence, and then the topic that it names is as it
    was. With isolation level read_committed a load ends where a transaction is open; the next one goes on from there.

    `session` is called only if something is to be loaded, so that a load without new records does not start Spark.
    """
    warehouse.check()
    partitions = list(subscribed(bootstrap, Subscription(topics=tuple(dict.fromkeys(topics)))))
    by_topic: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp)
    loads = [_TopicLoad(topic, warehouse, by_topic[topic], settings) for topic in by_topic]
    loaded = {tp: offset for one in loads for tp, offset in one.loaded.items()}
    start, end = plan(bootstrap, partitions, loaded, settings)
    ranges = between(start, end)
    if not ranges:
        return Loaded()
    spark = session()
    began = time.monotonic()
    load_id = (runtime or Runtime()).random.uuid().hex[:12]
    fed = {part.topic for part in ranges}
    targets = {one.topic: one.target(bootstrap, load_id) for one in loads if one.topic in fed}
    with errors_in_a_sentence():
        outcomes = _run(spark, targets, ranges)
    commits = []
    for one in loads:
        if one.topic in fed:
            ends = {part.topic_partition: part.end for part in ranges if part.topic == one.topic}
            commits.append(one.commit(load_id, outcomes[one.topic], ends))
    return Loaded(tuple(commits), time.monotonic() - began)


def plan(
    bootstrap: str, partitions: Sequence[TopicPartition], loaded: Mapping[TopicPartition, int], settings: Settings
) -> tuple[Offsets, Offsets]:
    """The offset range to load for each partition. Raises `DataLost` if the log no longer fits the tables' offsets."""
    first, end = earliest(bootstrap, partitions), latest(bootstrap, partitions, settings.isolation_level)
    start: Offsets = {}
    for tp in partitions:
        at = loaded.get(tp, first[tp])
        if at > end[tp] and not waits_for_transaction(bootstrap, tp, at):
            raise DataLost(
                f"The warehouse has {tp.topic} partition {tp.partition} up to offset {at}, but its log ends at "
                f"{end[tp]}: the topic was deleted and created again, so load it into another warehouse."
            )
        if at < first[tp] and settings.fail_on_data_loss:
            raise DataLost(
                f"Offsets {at} to {first[tp] - 1} of {tp.topic} partition {tp.partition} are gone from the log and "
                "were never loaded; use --allow-data-loss to continue without them."
            )
        start[tp] = max(at, first[tp])
    return start, end


class _TopicLoad:
    """The tables of one topic during a load."""

    def __init__(self, topic: str, warehouse: Warehouse, partitions: Sequence[TopicPartition], settings: Settings):
        self.topic = topic
        self._place, self._place_of_rejected = warehouse.place(topic), warehouse.place_of_rejected(topic)
        self._partitions = partitions
        self._settings = settings
        self._decoder = (settings.decoders or {}).get(topic)
        self._columns = in_files(self._decoder.schema if self._decoder else None)
        if self._decoder:
            check_decoded(self._decoder.schema)
        self._table = Table.open(self._place)
        self._rejected: Table | None = None
        self.loaded: dict[TopicPartition, int] = {}
        if self._table:
            missing(self._table.columns, self._columns, self._place.uri)  # a wrong type is known before the work
            self.loaded = self._table.offsets(partitions)

    def target(self, bootstrap: str, load_id: str) -> Target:
        """What the tasks need to know; creates the table of a new topic."""
        wanted = self._settings.partition_by
        if self._table is None:
            columns = of_table(self._columns, wanted)
            self._table = Table.create(self._place, columns, names_of_partitions(wanted))
        self._rejected = Table.open(self._place_of_rejected)
        return Target(
            self.topic, bootstrap, self._settings.isolation_level, load_id, self._settings.compression,
            self._place, self._place_of_rejected, self._table.partition_by, self._decoder, self._quarantined(),
        )  # fmt: skip

    def commit(self, load_id: str, outcomes: Sequence[Outcome], end: Offsets) -> Commit:
        """Commit the rejected records first, then the others together with the topic's offsets."""
        assert self._table is not None
        files = [file for outcome in outcomes for file in outcome.files]
        rejected = [file for outcome in outcomes for file in outcome.rejected]
        if rejected:
            self._commit_rejected(load_id, rejected, end)
        self._table.add_columns(self._columns)
        version = self._table.commit(load_id, files, self.loaded, end)
        return Commit(
            self.topic, version, len(files), sum(file.records for file in files),
            sum(file.bytes for file in files), sum(file.records for file in rejected),
        )  # fmt: skip

    def _commit_rejected(self, load_id: str, files: Sequence[DataFile], end: Offsets) -> None:
        if self._rejected is None:
            self._rejected = Table.create(self._place_of_rejected, of_table(REJECTED, "none"), [])
            ahead: dict[TopicPartition, int] = {}
        else:
            ahead = self._rejected.offsets(list(end))
        self._rejected.commit(load_id, files, ahead, {tp: max(at, ahead.get(tp, 0)) for tp, at in end.items()})

    def _quarantined(self) -> Quarantined:
        """The rejected records that a load has committed without the topic's offsets: it died in between."""
        if self._rejected is None:
            return {}
        ahead = {
            tp: (self.loaded.get(tp, 0), at)
            for tp, at in self._rejected.offsets(self._partitions).items()
            if at > self.loaded.get(tp, 0)
        }
        return {
            tp.partition: frozenset(self._rejected.offsets_in(tp.partition, start, end))
            for tp, (start, end) in ahead.items()
        }


def _run(
    spark: "SparkSession", targets: Mapping[str, Target], ranges: Sequence[OffsetRange]
) -> dict[str, list[Outcome]]:
    """Have Spark write these ranges; the outcomes by topic."""
    context = spark.sparkContext
    cut = portions(ranges, max(1, context.defaultParallelism))
    work = [TaskPortion(number, targets[parts[0].topic], parts) for number, parts in enumerate(cut)]
    outcomes = context.parallelize([[one] for one in work], len(work)).flatMap(write_portions).collect()
    for outcome in outcomes:
        if outcome.failure:
            raise LoadFailed(outcome.failure)
    assert sorted(outcome.portion for outcome in outcomes) == list(range(len(work))), "every portion comes back once"
    found: dict[str, list[Outcome]] = {topic: [] for topic in targets}
    for outcome in outcomes:
        found[work[outcome.portion].target.topic].append(outcome)
    return found
