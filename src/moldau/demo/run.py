"""`moldau pipeline demo` (also `make demo`): the whole pipeline on real data, from a fresh broker to a report.

The steps: start two brokers, the origin and its mirror, and a schema registry beside the origin; replay the events, in
Avro, into the origin and load them from the mirror meanwhile, load again (nothing is new), load them with decoded
columns, answer three questions over streams, audit origin, mirror and warehouse, check the books, write the report. All
results are in one folder: report.html, audit.html, summary.json, warehouse/ (values as produced), decoded/, data/ (the
origin's log) and mirror/. Leftovers of an earlier run, even running brokers, are removed first. The exit code is 1 if
the books do not balance or the audit finds a fault.
"""

import contextlib
import importlib.metadata
import json
import platform
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from moldau.client.administration.admin import Admin
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.demo import audit, flights, inventory, schemas, streams
from moldau.demo.audit import Book, Count
from moldau.demo.broker_process import running_broker, stop_leftover
from moldau.demo.flights import Events
from moldau.demo.live import AUDIT_TOPIC, AUDIT_WINDOW_MS, Counts, Replay, follow
from moldau.demo.mirroring import RunningMirror, running_mirror
from moldau.demo.registry_beside import register, running_registry
from moldau.demo.report.contents import Contents, Stage
from moldau.demo.report.page import render
from moldau.demo.report.summary import summary_tree
from moldau.demo.timeline import Timeline
from moldau.errors import MoldauError, StorageError
from moldau.names import TopicPartition, counted
from moldau.pipeline.audit.auditing import audit as compare
from moldau.pipeline.audit.report import render as audit_page
from moldau.pipeline.audit.tiers import ClusterTier, Tier
from moldau.pipeline.audit.warehouse_tier import WarehouseTier
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.load import load
from moldau.pipeline.loading.settings import Loaded, Settings
from moldau.pipeline.session import check_java, errors_in_a_sentence, own_session
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.registry.topic import DEFAULT_TOPIC
from moldau.runtime import RealDisk
from moldau.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = Path("build", "demo")
PARTITIONS = {"flights": 4, "weather": 4, "airlines": 1, "planes": 1, "airports": 1}
YEAR_MS = 365 * 24 * 3600 * 1000
KEEP_FOREVER = {"retention.ms": "-1", "segment.ms": str(10 * YEAR_MS)}
MIRRORED = (*PARTITIONS, AUDIT_TOPIC, DEFAULT_TOPIC)
"""The schemas too: a registry beside the mirror knows the ids in its records."""
UNPARTITIONED = Settings(partition_by="none")
"""Tables of a few MB are better in few files."""
WINDOWED, JOINED = 200_000, 400_000
"""Records of a micro-batch. Each one of a join reads the tables again, so a join has all flights in one."""
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the JVM. Its optimising compiler takes more processor time than it saves in so short a run."""
T = TypeVar("T")
MakeSession = Callable[[Path], contextlib.AbstractContextManager["SparkSession"]]
"""Starts the demo's Spark; the argument is the folder for its files."""


class DemoFailed(MoldauError):
    """A step of the demo failed; the text names the step."""


class Demo:
    """One run of the demo; its steps fill `stages` and `books`. `session` replaces the Spark that it starts."""

    def __init__(self, folder: Path, console: Console, source: Path | None = None, session: MakeSession | None = None):
        self.folder = folder.absolute()
        self.console = console
        self.source = source
        self.session = session or demo_session
        self.places = inventory.places(self.folder)
        self.warehouse, self.decoded = Warehouse(self.places.warehouse), Warehouse(self.places.decoded)
        self.stages: list[Stage] = []
        self.timeline = Timeline()
        self.began = time.monotonic()

    def run(self) -> int:
        """Run the whole demo. Returns the exit code."""
        check_java()
        for place in (self.places.data, self.places.mirror):
            if stop_leftover(place, self._pid_file(place)):
                self.console.print("Stopped the broker that an earlier run had left.")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = self.folder / "scratch"
        with contextlib.ExitStack() as brokers:
            origin, target = (brokers.enter_context(self._broker(at)) for at in (self.places.data, self.places.mirror))
            _create_topics(origin)
            registry = brokers.enter_context(self._registry(origin))
            ids = self._timed("Register the schemas", lambda: register(registry, flights.TOPICS), _none)
            topics = self._timed(
                "Read the source, encode it as Avro",
                lambda: [flights.read_events(topic, ids[topic], self.source) for topic in flights.TOPICS], _rows,
            )  # fmt: skip
            with running_mirror(origin, target, MIRRORED) as mirror, contextlib.ExitStack() as stack:
                started = self.session(scratch)
                spark = self._timed("Start Spark", lambda: stack.enter_context(started), _none)
                produced = self._live(spark, origin, target, mirror, topics)
                self._decode(spark, target, registry)
                with errors_in_a_sentence():
                    answers = self._questions(spark, target, registry, scratch / "checkpoints")
            faults = self._timed("Audit", lambda: self._audit(origin, target), _none)
            books = self._timed("Check the books", lambda: self._books(origin, registry, topics, produced), _none)
        shutil.rmtree(scratch, ignore_errors=True)
        return self.finish(books, faults, answers, topics)

    def _pid_file(self, place: Path) -> Path:
        return self.folder / f"{'broker' if place == self.places.data else place.name}.pid"

    @contextlib.contextmanager
    def _broker(self, place: Path) -> Iterator[str]:
        """A broker with its log in this folder; yields its address."""
        pid_file = self._pid_file(place)
        with running_broker(place, pid_file, pid_file.with_suffix(".log"), own_group=True) as bootstrap:
            what = "Broker" if place == self.places.data else "Its mirror"
            self.console.print(f"{what} listening on {bootstrap}, data in {_short(place)}")
            yield bootstrap

    @contextlib.contextmanager
    def _registry(self, bootstrap: str) -> Iterator[SchemaRegistry]:
        """A registry beside this broker; yields a client of it."""
        with running_registry(bootstrap) as url:
            self.console.print(f"Schema registry listening on {url}")
            yield SchemaRegistry(url)

    def _timed(self, name: str, work: Callable[[], T], records: Callable[[T], int]) -> T:
        """Do the work and record it as a stage; a stage without records has no rate."""
        began = time.monotonic()
        done = work()
        stage = Stage(name, records(done), time.monotonic() - began)
        self.stages.append(stage)
        pace = f"{stage.records:>9,} records {stage.records_per_second:>10,.0f}/s" if stage.records else ""
        self.console.print(
            f"  [green]✓[/green] {name:<36} {stage.seconds:>6.1f} s {pace}", highlight=False, soft_wrap=True
        )
        return done

    def _live(
        self, spark: "SparkSession", origin: str, target: str, mirror: RunningMirror, topics: Sequence[Events]
    ) -> Counts:
        """Replay, and load from the mirror meanwhile; then load again, which must find nothing. Returns what was
        produced."""
        columns = (TextColumn("  replay"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())

        def once() -> Loaded:
            return load(lambda: spark, target, flights.TOPICS, self.warehouse, UNPARTITIONED)

        with Progress(*columns, console=self.console, transient=True) as progress:
            bar = progress.add_task("replay", total=_rows(topics))
            partitions = [TopicPartition(topic, p) for topic, count in PARTITIONS.items() for p in range(count)]
            others = [TopicPartition(topic, 0) for topic in (AUDIT_TOPIC, DEFAULT_TOPIC)]
            settled = partial(mirror.wait_for, [*partitions, *others])
            replay = Replay(origin, topics, self.timeline, lambda count: progress.advance(bar, count), settled)
            produced = self._timed(
                "Replay, mirror, load meanwhile",
                lambda: follow(replay, once, self.warehouse, partitions, self.timeline), _produced,
            )  # fmt: skip
        again = self._timed("Load again (nothing is new)", once, lambda loaded: loaded.records)
        if again.records:
            raise DemoFailed(f"The load after the last one added {again.records:,} records, though nothing was new.")
        return produced

    def _decode(self, spark: "SparkSession", bootstrap: str, registry: SchemaRegistry) -> None:
        """Load all topics into tables whose columns are the fields of the Avro values."""

        def decode() -> list[Loaded]:
            return [
                load(lambda: spark, bootstrap, topics, self.decoded, replace(UNPARTITIONED, decoding=decoding))
                for topics, decoding in (
                    (flights.EVENTS, Decoding("avro", registry=registry, event_time="time_hour")),
                    (flights.TABLES, Decoding("avro", registry=registry)),
                )
            ]

        loads = self._timed("Load decoded columns", decode, lambda loads: sum(loaded.records for loaded in loads))
        rejected = sum(loaded.rejected for loaded in loads)
        if rejected:
            raise DemoFailed(f"{counted(rejected, 'record')} could not be decoded; see {self.places.decoded}.")

    def _questions(
        self, spark: "SparkSession", bootstrap: str, registry: SchemaRegistry, checkpoints: Path
    ) -> list[streams.QueryResult]:
        def reader(topic: str, fields: Sequence[str]) -> AvroValues:
            return AvroValues(registry, schemas.schema(topic, fields))

        def flight_stream(records_per_trigger: int) -> "DataFrame":
            values = reader("flights", streams.FLIGHT)
            return streams.stream_of(spark, bootstrap, "flights", values, records_per_trigger)

        def table(topic: str, fields: Sequence[str]) -> "DataFrame":
            return streams.table_of(spark, bootstrap, topic, reader(topic, fields))

        questions = {
            "Stream: departures per hour": lambda: streams.windowed_counts(flight_stream(WINDOWED)),
            "Stream: delays joined with weather": lambda: streams.delays_in_weather(
                flight_stream(JOINED), table("weather", streams.WEATHER), table("airlines", streams.AIRLINE)
            ),
            "Stream: top destinations": lambda: streams.top_destinations(
                flight_stream(JOINED), table("airports", streams.AIRPORT)
            ),
        }
        return [
            self._timed(name, partial(_answer, ask, checkpoints / str(at)), lambda answer: answer.records)
            for at, (name, ask) in enumerate(questions.items())
        ]

    def _audit(self, origin: str, target: str) -> list[str]:
        """Compare origin, mirror and warehouse with what the producer reported, and write the page. Returns the
        faults."""
        tiers: list[Tier] = [
            ClusterTier("origin", origin),
            ClusterTier("mirror", target, of_origin=True),
            WarehouseTier(str(self.places.warehouse)),
        ]
        audit = compare(origin, flights.TOPICS, tiers, audit_topic=AUDIT_TOPIC, window_ms=AUDIT_WINDOW_MS)
        (self.folder / "audit.html").write_text(audit_page(audit), encoding="utf-8")
        return [f"Audit: {fault}" for fault in [*audit.notes, *audit.sentences()]]

    def _books(
        self, bootstrap: str, registry: SchemaRegistry, topics: Sequence[Events], produced: Counts
    ) -> list[Book]:
        books = []
        for events in topics:
            topic = events.topic
            months = audit.MonthReader(registry, topic)
            loaded = audit.count_table(self.warehouse, topic, months)
            described = audit.count_described(self.warehouse, topic)
            if described != loaded.records:
                raise DemoFailed(f"{topic}: the table's log counts {described:,} records, not {loaded.records:,}.")
            source = Count(events.count, events.months(), audit.hash_sum(events.columns.to_batches()))
            stored, decoded = audit.count_log(bootstrap, topic, months), audit.count_decoded(self.decoded, topic)
            books.append(Book(topic, source, produced[topic], stored, loaded, decoded))
        return books

    def finish(
        self,
        books: Sequence[Book],
        faults: Sequence[str],
        answers: Sequence[streams.QueryResult],
        topics: Sequence[Events],
    ) -> int:
        """Write the summary and the report, and print the result. Returns the exit code."""
        differences = [*(sentence for book in books for sentence in book.differences()), *faults]
        seconds = time.monotonic() - self.began
        contents = Contents(
            books=books, differences=differences, stages=self.stages, seconds=seconds,
            hours=answers[0].rows, delays=answers[1].rows, destinations=answers[2].rows,
            unnamed=inventory.unnamed_destinations(self.decoded), classes=streams.CLASSES, timeline=self.timeline,
            stored=inventory.stored(topics, self.places),
            previews=inventory.previews(self.decoded, flights.TOPICS), places=self.places, versions=_versions(),
        )  # fmt: skip
        summary = json.dumps(summary_tree(contents), indent=1)
        (self.folder / "summary.json").write_text(f"{summary}\n", encoding="utf-8")
        page = self.folder / "report.html"
        page.write_text(render(contents), encoding="utf-8")
        if differences:
            for sentence in differences[:20]:
                self.console.print(f"  [red]✗[/red] {sentence}", highlight=False)
            self.console.print("[red]The books do not balance.[/red]")
        else:
            total = f"{contents.records:,} records"
            self.console.print(f"The books balance: {total} produced, stored, loaded and decoded, in {seconds:.0f} s.")
        self.console.print(f"Report: {page}", soft_wrap=True, highlight=False)
        return 1 if differences else 0


def demo_session(scratch: Path) -> "contextlib.AbstractContextManager[SparkSession]":
    """The demo's Spark, with its files in `scratch`; it ends with the block."""
    return own_session("moldau demo", scratch=scratch, spark__driver__defaultJavaOptions=QUICK_START)


def _answer(ask: "Callable[[], DataFrame]", checkpoint: Path) -> streams.QueryResult:
    return streams.answer(ask(), f"answer_{checkpoint.name}", checkpoint)


def _create_topics(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        for topic in flights.TOPICS:
            admin.create_topic(topic, partitions=PARTITIONS[topic], replication_factor=1, configs=KEEP_FOREVER)
        admin.create_topic(AUDIT_TOPIC, partitions=1, replication_factor=1, configs=KEEP_FOREVER)


def _none(_: object) -> int:
    """The records of a stage that has none."""
    return 0


def _rows(topics: Sequence[Events]) -> int:
    return sum(events.count for events in topics)


def _produced(counts: Counts) -> int:
    return sum(count.records for count in counts.values())


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _versions() -> str:
    spark = importlib.metadata.version("pyspark")
    return f"Moldau {VERSION}, Spark {spark}, Python {platform.python_version()} on {platform.system()}."


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against a second demo."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        release = RealDisk().lock(folder.parent / f".{folder.name}.lock")
    except StorageError:
        raise DemoFailed(f"Another demo is running in {folder}; wait until it has ended.") from None
    try:
        yield
    finally:
        release()


def run(folder: Path = FOLDER, console: Console | None = None, source: Path | None = None) -> int:
    """Run the demo in `folder` (on the CSV files in `source` instead of the package's); the exit code."""

    def stop(*_: object) -> NoReturn:
        raise SystemExit(143)

    console = console or Console()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with _alone(folder):
            return Demo(folder, console, source).run()
    except MoldauError as error:
        console.print(f"[red]{error}[/red]", highlight=False)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
