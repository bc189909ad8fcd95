"""`moldau pipeline demo` (also `make demo`): the whole pipeline on real data, from a fresh broker to a report.

The steps: start a broker, replay the events, load them, load again (nothing is new), answer three questions over
streams, audit the books, write the report. All results are in one folder: report.html, summary.json, warehouse/ and
data/ (the broker's log). Leftovers of an earlier run, even a running broker, are removed first. The exit code is 1 if
the books do not balance.
"""

import contextlib
import importlib.metadata
import json
import platform
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.demo import audit, flights, report, streams
from moldau.demo.audit import Book, Count
from moldau.demo.broker_process import running_broker, stop_leftover
from moldau.demo.flights import Events
from moldau.demo.report import Contents, Stage
from moldau.errors import MoldauError, StorageError
from moldau.pipeline.loading.load import load
from moldau.pipeline.loading.settings import Loaded
from moldau.pipeline.session import check_java, errors_in_a_sentence, start_session
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.records.digests import MASK
from moldau.runtime import RealDisk
from moldau.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = Path("build", "demo")
PARTITIONS = {"flights": 4, "weather": 4, "airlines": 1, "planes": 1, "airports": 1}
YEAR_MS = 365 * 24 * 3600 * 1000
KEEP_FOREVER = {"retention.ms": "-1", "segment.ms": str(10 * YEAR_MS)}
REPLAY_CHUNK = 4096
RECORDS_PER_TRIGGER = 200_000
T = TypeVar("T")


class DemoFailed(MoldauError):
    """A step of the demo failed; the text names the step."""


class Demo:
    """One run of the demo; its steps fill `stages` and `books`."""

    def __init__(self, folder: Path, console: Console, source: Path | None = None):
        self.folder = folder.absolute()
        self.console = console
        self.source = source
        self.stages: list[Stage] = []
        self.warehouse = Warehouse(self.folder / "warehouse")
        self.began = time.monotonic()

    def run(self) -> int:
        """Run the whole demo. Returns the exit code."""
        check_java()
        data = self.folder / "data"
        pid_file = self.folder / "broker.pid"
        if stop_leftover(data, pid_file):
            self.console.print("Stopped the broker that an earlier run had left.")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        topics = self._timed(
            "Read the source", lambda: [flights.read_events(t, self.source) for t in flights.TOPICS], _rows
        )
        with running_broker(data, pid_file, self.folder / "broker.log") as bootstrap:
            self.console.print(f"Broker listening on {bootstrap}, data in {_short(data)}")
            _create_topics(bootstrap)
            produced = self._timed("Replay into topics", lambda: self._replay(bootstrap, topics), _produced)
            scratch = self.folder / "scratch"
            spark = self._timed("Start Spark", lambda: start_session("moldau demo", scratch=scratch), lambda _: 0)
            try:
                self._load(spark, bootstrap)
                with errors_in_a_sentence():
                    answers = self._questions(spark, bootstrap, scratch / "checkpoints")
            finally:
                spark.stop()
            books = self._timed("Check the books", lambda: self._books(bootstrap, topics, produced), lambda _: 0)
        shutil.rmtree(scratch, ignore_errors=True)
        return self.finish(books, answers)

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

    def _replay(self, bootstrap: str, topics: Sequence[Events]) -> dict[str, Count]:
        """Produce every event with its key and event time. Returns the acknowledged records by topic and month."""
        columns = (TextColumn("  replay"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        produced: dict[str, Count] = {}
        with (
            Progress(*columns, console=self.console, transient=True) as progress,
            Producer(bootstrap, compression_type="lz4", linger_ms=20) as producer,
        ):
            bar = progress.add_task("replay", total=_rows(topics))
            for events in topics:
                produced[events.topic] = _produce(producer, events, lambda count: progress.advance(bar, count))
        return produced

    def _load(self, spark: "SparkSession", bootstrap: str) -> None:
        def once() -> Loaded:
            return load(lambda: spark, bootstrap, flights.TOPICS, self.warehouse)

        self._timed("Load into the warehouse", once, lambda loaded: loaded.records)
        again = self._timed("Load again (nothing is new)", once, lambda loaded: loaded.records)
        if again.records:
            raise DemoFailed(f"The second load added {again.records:,} records, though nothing was new.")

    def _questions(self, spark: "SparkSession", bootstrap: str, checkpoints: Path) -> list[streams.Answer]:
        def flight_stream() -> "DataFrame":
            return streams.stream_of(spark, bootstrap, "flights", streams.FLIGHT, RECORDS_PER_TRIGGER)

        def table(topic: str, schema: str) -> "DataFrame":
            return streams.table_of(spark, bootstrap, topic, schema)

        questions = {
            "Stream: departures per hour": lambda: streams.windowed_counts(flight_stream()),
            "Stream: delays joined with weather": lambda: streams.delays_in_weather(
                flight_stream(), table("weather", streams.WEATHER), table("airlines", streams.AIRLINE)
            ),
            "Stream: top destinations": lambda: streams.top_destinations(
                flight_stream(), table("airports", streams.AIRPORT)
            ),
        }
        return [
            self._timed(name, partial(_answer, ask, checkpoints / str(at)), lambda answer: answer.records)
            for at, (name, ask) in enumerate(questions.items())
        ]

    def _books(self, bootstrap: str, topics: Sequence[Events], produced: dict[str, Count]) -> list[Book]:
        books = []
        for events in topics:
            topic = events.topic
            loaded = audit.count_table(self.warehouse, topic)
            described = audit.count_described(self.warehouse, topic)
            if described != loaded.records:
                raise DemoFailed(f"{topic}: the table's log counts {described:,} records, not {loaded.records:,}.")
            source = Count(events.count, events.months(), audit.hash_sum(events.columns.to_batches()))
            books.append(Book(topic, source, produced[topic], audit.count_log(bootstrap, topic), loaded))
        return books

    def finish(self, books: Sequence[Book], answers: Sequence[streams.Answer]) -> int:
        """Write the summary and the report, and print the result. Returns the exit code."""
        differences = [sentence for book in books for sentence in book.differences()]
        tables = [self.warehouse.table(topic) for topic in self.warehouse.topics()]
        files = [file for table in tables if table for file in table.files()]
        total = sum(book.source.records for book in books)
        seconds = time.monotonic() - self.began
        self._write_summary(books, differences, seconds)
        contents = Contents(
            books=books, differences=differences, stages=self.stages, seconds=seconds,
            hours=answers[0].rows, delays=answers[1].rows, destinations=answers[2].rows, classes=streams.CLASSES,
            versions=_versions(), warehouse_files=len(files), warehouse_bytes=sum(file.bytes for file in files),
        )  # fmt: skip
        page = self.folder / "report.html"
        page.write_text(report.render(contents), encoding="utf-8")
        if differences:
            for sentence in differences[:20]:
                self.console.print(f"  [red]✗[/red] {sentence}", highlight=False)
            self.console.print("[red]The books do not balance.[/red]")
        else:
            self.console.print(f"The books balance: {total:,} records produced, stored and loaded, in {seconds:.0f} s.")
        self.console.print(f"Report: {page}", soft_wrap=True, highlight=False)
        return 1 if differences else 0

    def _write_summary(self, books: Sequence[Book], differences: Sequence[str], seconds: float) -> None:
        stages = [
            {
                "name": stage.name,
                "records": stage.records,
                "seconds": round(stage.seconds, 3),
                "records_per_second": round(stage.records_per_second),
            }
            for stage in self.stages
        ]
        tree = {
            "balanced": not differences,
            "differences": list(differences),
            "seconds": round(seconds, 3),
            "topics": {book.topic: book.to_tree() for book in books},
            "stages": stages,
        }
        (self.folder / "summary.json").write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")


def _answer(ask: "Callable[[], DataFrame]", checkpoint: Path) -> streams.Answer:
    return streams.answer(ask(), f"answer_{checkpoint.name}", checkpoint)


def _create_topics(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        for topic in flights.TOPICS:
            admin.create_topic(topic, partitions=PARTITIONS[topic], replication_factor=1, configs=KEEP_FOREVER)


def _produce(producer: Producer, events: Events, advance: Callable[[int], None]) -> Count:
    months = Counter[int]()
    records = hashes = 0
    for chunk in events.columns.to_batches(max_chunksize=REPLAY_CHUNK):
        keys, values, times, month = (chunk.column(name).to_pylist() for name in chunk.schema.names)
        sent = [
            producer.send(events.topic, value, key, timestamp_ms=at)
            for key, value, at in zip(keys, values, times, strict=True)
        ]
        producer.flush()
        for delivery, number in zip(sent, month, strict=True):
            delivery.result()
            records += 1
            if number is not None:
                months[number] += 1
        hashes += audit.hash_sum([chunk])
        advance(len(sent))
    return Count(records, dict(sorted(months.items())), hashes & MASK)


def _rows(topics: Sequence[Events]) -> int:
    return sum(events.count for events in topics)


def _produced(counts: dict[str, Count]) -> int:
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
