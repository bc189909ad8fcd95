"""The worked example end to end: the site's process, HTTP requests, a broker, Spark and the audit."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.pages import examples
from harness.patience import stretched
from moldau import read_table
from moldau.cli import main
from moldau.demo.broker_process import running_broker
from moldau.demo.search.searches import CLASSES, WrongSearch, by_class, class_of, search_of
from moldau.runtime import RealClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_PERIOD = "5000 weeks"
"""The searches of a test are in one period, also those made while an hour ends."""
USERS = ("guest", "somebody", "member-1", "member-2", "premium-7")


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[str]:
    """A broker of this test: the example's topic has a fixed name."""
    with running_broker(tmp_path / "data", tmp_path / "broker.pid", tmp_path / "broker.log") as address:
        yield address


@pytest.fixture
def site(own_broker: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of the running site, and its process."""
    command = [sys.executable, "-m", "moldau.demo.search", "site", "-b", own_broker, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("listening on "), process.communicate(timeout=stretched(20))
        yield said.removeprefix("listening on ").strip(), process
    finally:
        process.kill()
        process.communicate()


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=stretched(20)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def search(address: str, keyword: str, user: str) -> tuple[int, str]:
    return get(f"{address}search?{urllib.parse.urlencode({'q': keyword, 'user': user})}")


@pytest.mark.check
@pytest.mark.timeout(300)
def test_searches_are_analysed_by_period_and_class(
    site: tuple[str, "subprocess.Popen[str]"],
    own_broker: str,
    spark: "SparkSession",
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, process = site
    made: Counter[tuple[str, str]] = Counter()
    for number in range(60):
        user, keyword = USERS[number % 5], ("river", "Kafka", "  The   LOG ", "<b>")[number % 7 % 4]
        status, page = search(address, keyword, user)
        assert status == 200 and "<b>" not in page
        made[class_of(user), " ".join(keyword.lower().split())] += 1
    assert "longest river" in search(address, "river", "premium-7")[1]
    made["premium", "river"] += 1
    assert search(address, "", "guest")[0] == search(address, "x" * 101, "guest")[0] == 400
    assert search(address, "x", "no such name!")[0] == 400 and get(address + "nowhere")[0] == 404
    process.send_signal(signal.SIGTERM)
    _, complaints = process.communicate(timeout=stretched(30))
    assert (process.returncode, complaints) == (0, "")

    log = read_table("searches", bootstrap_servers=own_broker)
    assert log.num_rows == 61
    for partition, value in zip(log["partition"].to_pylist(), log["value"].to_pylist(), strict=True):
        assert CLASSES[partition] == class_of(json.loads(value)["user"])

    space: dict[str, Any] = {"spark": spark}
    for example in examples("search-log.md"):
        exec(example.code.replace("localhost:9092", own_broker), space)
    capsys.readouterr()
    activity, top_keywords, searches = (space[name] for name in ("activity", "top_keywords", "searches"))
    by_class_found = Counter[str]()
    for row in activity(searches, ONE_PERIOD).collect():
        by_class_found[row["class"]] += row.searches
        assert row.users == (1 if row["class"] == "premium" else 2)
    assert by_class_found == Counter(name for (name, _), count in made.items() for _ in range(count))
    ranked: Counter[tuple[str, str]] = Counter()
    for row in top_keywords(searches, ONE_PERIOD, k=10).collect():
        ranked[row["class"], row.keyword] += row.measure
    assert ranked == made

    later_ms = RealClock().now_ms() + 120_000
    monkeypatch.setattr(RealClock, "now_ms", lambda _: later_ms)
    assert main.run(["pipeline", "audit", "--topics", "searches", "--window", "1m", "-b", own_broker]) == 0
    assert re.search(r"searches +origin +61 +61 ", capsys.readouterr().out)


def test_classes_and_partitions() -> None:
    assert [class_of(user) for user in ("premium-1", "member-9", "guest", "premium", "x-premium", "")] == [
        "premium", "member", "guest", "premium", "guest", "guest",
    ]  # fmt: skip
    assert [by_class("searches", key, 3) for key in (b"premium-1", b"member-2", b"", None)] == [2, 1, 0, 0]
    assert by_class("searches", b"premium-1", 2) == 0


@pytest.mark.parametrize(
    ("user", "keyword"), [("guest", ""), ("guest", " \n "), ("guest", "x" * 101), ("", "x"), ("a b", "x"), ("é", "x")]
)
def test_a_search_that_cannot_be_logged_is_refused(user: str, keyword: str) -> None:
    with pytest.raises(WrongSearch):
        search_of("1", user, keyword, "2026-01-01T12:00:00+00:00")


def test_a_port_in_use_is_said(own_broker: str) -> None:
    port = own_broker.rpartition(":")[2]
    command = [sys.executable, "-m", "moldau.demo.search", "site", "-b", own_broker, "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60))
    said = f"error: port {port} of 127.0.0.1 is in use by another process: --port chooses another\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
