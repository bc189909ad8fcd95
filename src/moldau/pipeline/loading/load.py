"""`pipeline load`: everything new since the last load becomes rows of Delta or Iceberg tables, exactly once (D13).

The driver plans ranges from the tables' offsets to the log's ends. Spark distributes portions of them to tasks. Each
task fetches its ranges, writes Parquet from Arrow where it runs, and returns only a description of each file. Then the
driver commits the files and the new offsets of each topic. Rows never enter the JVM.

A topic that was deleted and created again has another id. The driver compares the ids with those in the tables, and the
tasks with those of the plan.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading.compacting import Compacting
from moldau.pipeline.loading.decoders import decoder_for
from moldau.pipeline.loading.decoding import ValueDecoder
from moldau.pipeline.loading.planning import Plan, Reached, plan, went_on
from moldau.pipeline.loading.portions import portions
from moldau.pipeline.loading.progress import LoadProgress
from moldau.pipeline.loading.rejected import Rejections, check, sentences
from moldau.pipeline.loading.settings import Loaded, Settings
from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.tasks import PortionResult, TaskPortion, write_portions
from moldau.pipeline.loading.topic_tables import TopicTables
from moldau.pipeline.options import Options, TopicSelection
from moldau.pipeline.positions import Subscribed, latest, subscribed
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.session import errors_in_a_sentence
from moldau.pipeline.source.progress import GroupProgress
from moldau.pipeline.tables.committing import LoadedWarehouse
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LAG_MS = 5_000
"""How long a load waits for the ends of the logs to say how far behind it is."""


class LoadFailed(MoldauError):
    """A task could not fetch or write its range; nothing was committed. `again` says whether the same load may succeed
    later."""

    def __init__(self, sentence: str, again: bool = False):
        super().__init__(sentence)
        self.again = again


def load(
    session: "Callable[[], SparkSession]",
    bootstrap: str,
    topics: Sequence[str],
    warehouse: LoadedWarehouse,
    settings: Settings = Settings(),
    runtime: Runtime | None = None,
) -> Loaded:
    """Load what is new in `topics`; raises MoldauError with one sentence, and then the topic that it names is as it
    was. With isolation level read_committed a load ends where a transaction is open; the next one goes on from there.

    `session` is called only if something is to be loaded, so that a load without new records does not start Spark.
    """
    subscription = TopicSelection(topics=tuple(dict.fromkeys(topics)))
    with Loader(session, bootstrap, subscription, warehouse, settings, runtime) as loader:
        return loader.load()


class Loader:
    """Loads the topics of a subscription, as often as it is asked to; use it in a with-statement."""

    def __init__(
        self,
        session: "Callable[[], SparkSession]",
        bootstrap: str,
        subscription: TopicSelection,
        warehouse: LoadedWarehouse,
        settings: Settings = Settings(),
        runtime: Runtime | None = None,
    ):
        warehouse.check()
        settings.decoding.check()
        settings.keys.check()
        self._session = session
        self._bootstrap = bootstrap
        self._subscription = subscription
        self._warehouse = warehouse
        self._settings = settings
        self._random = (runtime or Runtime()).random
        self._tables: dict[str, TopicTables] = {}
        self._partitions: Subscribed = {}
        self.progress = LoadProgress()
        self.compacting = Compacting(settings.small_files_max)
        self._progress = GroupProgress(
            Options(bootstrap_servers=bootstrap, subscription=subscription, group_id=settings.group)
        )

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()
        self.compacting.close()

    def plan(self) -> Plan:
        """What is new: topics and partitions that were created since are among it. Raises MoldauError."""
        self._partitions = subscribed(self._bootstrap, self._subscription)
        by_topic: dict[str, list[TopicPartition]] = {}
        for tp in self._partitions:
            by_topic.setdefault(tp.topic, []).append(tp)
        for topic, partitions in by_topic.items():
            if topic not in self._tables:
                self._tables[topic] = TopicTables(topic, self._warehouse, self._settings)
            self._tables[topic].refresh(partitions, self._partitions[partitions[0]])
        epochs = {tp: epoch for topic in by_topic for tp, epoch in self._tables[topic].epochs.items()}
        reached = Reached(self._loaded(), epochs)
        planned = plan(self._bootstrap, list(self._partitions), reached, self._settings)
        removed = [note for topic in by_topic for note in self._tables[topic].notes]
        return planned._replace(notes=(*planned.notes, *removed))

    def check_writable(self) -> None:
        """Raise TableError if this process may not write to the folders of a planned topic."""
        settings = self._settings
        rejects = settings.upsert or {settings.decoding.kind, settings.keys.kind} != {"none"}
        for topic in self._tables:
            self._warehouse.check_writable(topic, rejects)

    def load(self, planned: Plan | None = None) -> Loaded:
        """Load all that is new, in as many commits as `records_max` asks for. Raises MoldauError."""
        planned = planned or self.plan()
        loaded = self.run(planned)
        while planned.more:
            planned = self.plan()
            loaded = loaded.and_then(self.run(planned))
        return loaded

    def run(self, planned: Plan) -> Loaded:
        """Load what was planned just before, topic by topic in a commit each. Raises MoldauError."""
        commits, notes = [], planned.notes
        began = time.monotonic()
        if planned.notes:
            for topic in sorted({tp.topic for tp in self._partitions}):
                self._tables[topic].settle(self._new_id)
        if planned.ranges:
            self.check_writable()
            decoders = self._decoders(planned)
            load_id = self._new_id()
            new = [topic for topic in planned.topics if self._tables[topic].table is None]
            known = [topic for topic in planned.topics if topic not in new]
            # Before Spark starts, which takes longer than to say what is wrong with a table.
            targets = self._targets(known, load_id, decoders)
            spark = self._session()
            # If it cannot start, no empty table keeps the partitioning that this load was given.
            targets |= self._targets(new, load_id, decoders)
            began = time.monotonic()
            self.progress.begin(planned.records)
            with errors_in_a_sentence():
                outcomes = _run(spark, targets, planned.ranges, self.progress)
            self.progress.end()
            rejected = {topic: Rejections.total(one.rejections for one in outcomes[topic]) for topic in planned.topics}
            check(rejected, self._settings.rejected_max)
            notes += (*(note for one in decoders.values() if one for note in one.notes), *sentences(rejected))
            expired = [part for parts in outcomes.values() for outcome in parts for part in outcome.expired]
            notes += tuple(went_on(part) for part in sorted(expired))
            for topic in planned.topics:
                ends = {part.topic_partition: part.end for part in planned.ranges if part.topic == topic}
                tables = self._tables[topic]
                commits.append(tables.commit(load_id, outcomes[topic], ends, planned.epochs))
                assert tables.table is not None
                self.compacting.added(topic, tables.table, commits[-1].files)
                if self._settings.upsert:
                    self.compacting.close()  # a later commit would take away the files that it writes together
        self._progress.publish(self._loaded())
        return Loaded(tuple(commits), time.monotonic() - began, notes)

    def _targets(
        self, topics: Iterable[str], load_id: str, decoders: Mapping[str, ValueDecoder | None]
    ) -> dict[str, Target]:
        """Those of these topics; creates the tables that do not exist."""
        return {topic: self._tables[topic].target(self._bootstrap, load_id, decoders[topic]) for topic in topics}

    def _new_id(self) -> str:
        return self._random.uuid().hex[:12]

    def lag(self) -> dict[str, int]:
        """By topic, how many offsets the tables are behind the ends of the logs (high watermarks)."""
        loaded, lag = self._loaded(), dict.fromkeys(sorted({tp.topic for tp in self._partitions}), 0)
        for tp, end in latest(self._bootstrap, self._partitions, "read_uncommitted", timeout_ms=LAG_MS).items():
            lag[tp.topic] += max(0, end - loaded.get(tp, 0))
        return lag

    def _loaded(self) -> dict[TopicPartition, int]:
        return {tp: self._tables[tp.topic].loaded[tp] for tp in self._partitions if tp in self._tables[tp.topic].loaded}

    def _decoders(self, planned: Plan) -> dict[str, ValueDecoder | None]:
        """The decoder of each topic; what does not fit its table is known before the work begins."""
        decoders: dict[str, ValueDecoder | None] = {}
        for topic in planned.topics:
            tables = self._tables[topic]
            ranges = [part for part in planned.ranges if part.topic == topic]
            decoders[topic] = decoder_for(
                self._bootstrap, topic, tables.table, ranges, self._settings.decoding, self._settings.keys,
                self._settings.isolation_level,
            )  # fmt: skip
            tables.check(decoders[topic])
        return decoders


def _run(
    spark: "SparkSession", targets: Mapping[str, Target], ranges: Sequence[OffsetRange], progress: LoadProgress
) -> dict[str, list[PortionResult]]:
    """Have Spark write these ranges; the outcomes by topic."""
    context = spark.sparkContext
    cut = portions(ranges, max(1, context.defaultParallelism))
    work = [TaskPortion(number, targets[parts[0].topic], parts) for number, parts in enumerate(cut)]
    write = partial(write_portions, written=progress.accumulator(context))
    outcomes = context.parallelize([[one] for one in work], len(work)).flatMap(write).collect()
    failed = [outcome for outcome in outcomes if outcome.failure]
    if failed:
        raise LoadFailed(failed[0].failure, all(outcome.again for outcome in failed))
    assert sorted(outcome.portion for outcome in outcomes) == list(range(len(work))), "every portion comes back once"
    by_topic: dict[str, list[PortionResult]] = {topic: [] for topic in targets}
    for outcome in outcomes:
        by_topic[work[outcome.portion].target.topic].append(outcome)
    return by_topic
