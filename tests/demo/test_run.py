"""The demo on a part of its data: from any state to balanced books; books that do not balance end it badly."""

import contextlib
import csv
import html
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow
import pytest
from deltalake import DeltaTable
from rich.console import Console

import moldau.demo.run
from harness.patience import stretched, wait_until
from moldau.cli import main
from moldau.demo import flights
from moldau.demo.audit import COLUMNS, Book, Count, hash_sum
from moldau.demo.inventory import REGISTRY
from moldau.demo.run import Demo
from moldau.demo.streams import QueryResult
from moldau.pipeline.session import python_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = """
import sys
from pathlib import Path
from moldau.demo.run import run
sys.exit(run(Path(sys.argv[1]), source=Path(sys.argv[2])))
"""
FORGIVING = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
"""As a session of ours forgives it (`start_session`), for a session that another test has started."""
A_TENTH = {"flights": 10, "weather": 10, "airlines": 1, "planes": 10, "airports": 10}
A_FEW = {"flights": 200, "weather": 20, "airlines": 1, "planes": 50, "airports": 10}


def every_nth(steps: Mapping[str, int], folder: Path) -> Path:
    """Every n-th row of the real files, as CSV files in a folder."""
    full = flights.data_folder()
    for topic, step in steps.items():
        if topic == "flights":
            text = zipfile.ZipFile(full / "flights.csv.zip").read("flights.csv").decode()
        else:
            text = (full / f"{topic}.csv").read_text()
        head, *rows = csv.reader(io.StringIO(text))
        with (folder / f"{topic}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([head, *rows[::step]])
    return folder


@FORGIVING
def test_a_tenth_of_the_data_ends_in_balanced_books_and_all_that_the_report_shows_works(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source").mkdir()
    folder, source, said = tmp_path / "demo", every_nth(A_TENTH, tmp_path / "source"), io.StringIO()
    demo = Demo(folder, Console(file=said, width=100), source, lambda _: contextlib.nullcontext(spark))
    assert demo.run() == 0, said.getvalue()
    assert "The books balance" in said.getvalue()
    numbers = check_what_is_left(folder, source)
    page = (folder / "report.html").read_text()
    check_queries(folder, page, numbers["flights"], numbers["planes"])
    check_commands(page, monkeypatch, capfd)


def start(folder: Path, source: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path(), "COLUMNS": "100"},
    )


def children(pid: int) -> list[int]:
    """The living children of a process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(after_name[1]) == pid:
                found.append(int(folder.name))
    return found


def alive(pid: int) -> bool:
    try:
        return "moldau" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


@FORGIVING
@pytest.mark.check
@pytest.mark.own_jvm("the demo is killed")
@pytest.mark.timeout(300)
def test_after_a_kill_it_starts_over_and_ends_with_balanced_books(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run uses the session of all tests: the stage `demo` starts one for a whole run."""
    (tmp_path / "source").mkdir()
    folder, source = tmp_path / "build" / "demo", every_nth(A_FEW, tmp_path / "source")
    first = start(folder, source)
    assert wait_until(lambda: list(folder.glob("warehouse/*/*.parquet")) or first.poll() is not None, 100, 0.01)
    assert first.poll() is None, first.communicate()[0]
    second = start(folder, source)
    said, _ = second.communicate(timeout=stretched(60))
    assert second.returncode == 1 and "Another demo is running" in said
    broker = int((folder / "broker.pid").read_text())
    orphans = [pid for pid in children(first.pid) if pid != broker]
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert alive(broker)
    (folder / "data" / "litter").write_text("from another time")
    for pid in orphans:  # Spark's JVM ends by itself some time after its driver
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    monkeypatch.setattr(moldau.demo.run, "demo_session", lambda _: contextlib.nullcontext(spark))
    output = io.StringIO()
    code = moldau.demo.run.run(folder, Console(file=output, width=100), source)
    said = output.getvalue()
    assert code == 0, said
    assert "Stopped the broker that an earlier run had left." in said and "The books balance" in said
    assert str(folder / "report.html") in said
    assert not alive(broker) and not (folder / "broker.pid").exists()
    assert sorted(path.name for path in folder.iterdir()) == [
        "audit.html", "broker.log", "data", "decoded", "mirror", "mirror.log", "report.html", "summary.json",
        "warehouse",
    ]  # fmt: skip
    check_what_is_left(folder, source)


def check_what_is_left(folder: Path, source: Path) -> dict[str, int]:
    """Tables, books and pages agree with the source; returns the number of records of each topic."""
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["balanced"] is True and summary["differences"] == []
    assert sum(stage["records"] > 0 for stage in summary["stages"]) >= 6
    for topic in flights.TOPICS:
        with (source / f"{topic}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        book = summary["topics"][topic]
        assert [book[column] for column in COLUMNS] == [len(rows)] * len(COLUMNS)
        for warehouse in ("warehouse", "decoded"):
            assert DeltaTable(folder / warehouse / topic).to_pyarrow_dataset().count_rows() == len(rows)
        if topic in flights.EVENTS:
            for month in range(1, 13):
                expected = sum(row["month"] == str(month) for row in rows)
                assert dict.fromkeys(book["months"][str(month)].values()) == {expected: None}
    assert 0 < summary["delay_seconds"]["p50"] <= summary["delay_seconds"]["max"] < summary["seconds"]
    assert 0 < summary["lag_records_max"] <= sum(book["source"] for book in summary["topics"].values())
    raw, log, *tables = summary["bytes"].values()
    assert raw > log > 0 and 0 < max(tables) < raw
    assert "The books balance" in (folder / "report.html").read_text()
    audited = (folder / "audit.html").read_text()
    assert "Complete: each of the" in audited and "were replayed" in audited and "<h3>Delays</h3>" not in audited
    return {topic: book["source"] for topic, book in summary["topics"].items()}


def shown(page: str, after: str, before: str) -> list[str]:
    """The texts to copy between two places of the page."""
    part = page[page.index(after) : page.index(before)]
    return [html.unescape(text) for text in re.findall(r"<pre><code>(.*?)</code></pre>", part, re.DOTALL)]


def check_queries(folder: Path, page: str, flights_count: int, planes_count: int) -> None:
    """DuckDB answers each query of the page, pasted as it is."""
    statements = shown(page, "<h3>DuckDB</h3>", "<h3>Polars</h3>")
    assert len(statements) == 5 and str(folder / "decoded") in statements[0]
    with duckdb.connect() as connection:
        _, months, airlines, fog, places = [connection.execute(text).fetchall() for text in statements]
        assert connection.execute("SELECT count(*) FROM planes").fetchall() == [(planes_count,)]
    assert [month for month, *_ in months] == [*range(1, 13)] and sum(row[1] for row in months) == flights_count
    assert len(airlines) == 5 and sum(row[1] for row in fog) == flights_count and len(places) == 5


def check_commands(page: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The commands of the page start the broker and call it, except that the ports are free ones. Two of them start
    processes, as a user does; the others have the same arguments in this process."""
    start, consume, schema, load, decode, audit, history = shown(page, 'id="places"', "</main>")
    start_command = shlex.split(start)

    def printed(command: str) -> str:
        command, *arguments = shlex.split(command.replace(REGISTRY, registry))
        assert command == start_command[0]
        capfd.readouterr()
        assert main.run(arguments) == 0
        return capfd.readouterr().out

    server = subprocess.Popen(
        [*start_command, "--port", "0", "--registry-port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("listening on ").strip()
        registry = server.stdout.readline().partition(" listening on ")[2].strip()
        monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", address)
        told = subprocess.run(shlex.split(schema.replace(REGISTRY, registry)), capture_output=True, check=True)
        assert json.loads(told.stdout)["name"] == "Flights"
        assert printed(consume).count('"carrier"') == 5
        assert printed(load) == printed(decode) == "nothing new to load\n"
        assert "complete: every tier holds" in printed(audit) and "flights" in printed(history)
    finally:
        server.terminate()
        server.communicate()


def test_books_that_do_not_balance_end_the_demo_with_an_error(tmp_path: Path) -> None:
    said = io.StringIO()
    demo = Demo(tmp_path, Console(file=said, width=100))
    whole, less = Count(10, {1: 10}), Count(9, {1: 9})
    book = Book("flights", whole, whole, whole, less, whole)
    code = demo.finish([book], [], [QueryResult([], 0, 0, 1.0)] * 3, [])
    assert code == 1 and "flights, month 1: 10 in the source, 9 loaded." in said.getvalue()
    assert json.loads((tmp_path / "summary.json").read_text())["balanced"] is False
    assert "do not balance" in (tmp_path / "report.html").read_text()


def test_a_fault_of_the_audit_ends_the_demo_with_an_error(tmp_path: Path) -> None:
    said = io.StringIO()
    whole = Count(10, {1: 10})
    book = Book("flights", whole, whole, whole, whole, whole)
    code = Demo(tmp_path, Console(file=said, width=100)).finish(
        [book], ["Audit: flights: warehouse has stopped."], [QueryResult([], 0, 0, 1.0)] * 3, []
    )
    assert code == 1 and "Audit: flights: warehouse has stopped." in said.getvalue()


def test_a_lost_and_a_doubled_record_do_not_balance() -> None:
    keys, times = pyarrow.array([b"a", b"b", b"c"]), pyarrow.array([0, 1, 2])
    whole = pyarrow.table({"key": keys, "value": pyarrow.array([b"1", b"2", None]), "timestamp_ms": times})
    [*halves] = [*whole.slice(0, 1).to_batches(), *whole.slice(1).to_batches()]
    other = whole.take([0, 0, 2])
    right = Count(3, {}, hash_sum(whole.to_batches()))
    assert right.hash_sum == hash_sum(halves) == hash_sum(reversed(halves)) != 0
    wrong = Count(3, {}, hash_sum(other.to_batches()))
    assert Book("planes", right, right, right, right, wrong).differences() == [], "decoded columns have no hashes"
    said = "planes: as many records loaded as in the source, but not the same ones."
    assert Book("planes", right, right, right, wrong, right).differences() == [said]


def test_nobody_waits_for_a_broker_that_has_closed_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.demo import broker_process

    monkeypatch.setattr(broker_process, "READY_SECONDS_MAX", 10_000.0)
    closes = [sys.executable, "-c", "import os, time; os.close(1); time.sleep(600)"]
    (tmp_path / "log").touch()
    with subprocess.Popen(closes, stdout=subprocess.PIPE) as process:
        with pytest.raises(broker_process.BrokerNotRunning, match="it said nothing"):
            broker_process._address(process, tmp_path / "log")
        process.kill()


def test_a_broker_that_cannot_start_is_said_in_one_sentence(tmp_path: Path) -> None:
    from moldau.demo.broker_process import BrokerNotRunning, running_broker

    (tmp_path / "data").write_text("a file")
    with contextlib.ExitStack() as stack, pytest.raises(BrokerNotRunning, match=r"did not start: .*broker\.log"):
        stack.enter_context(running_broker(tmp_path / "data", tmp_path / "pid", tmp_path / "broker.log"))
    assert not (tmp_path / "pid").exists()
