"""Load after load of one loader: what may happen to topics meanwhile, signals, times, and what the command says."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.patience import SECONDS, wait_until
from moldau import read_table
from moldau.cli.main import run
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading.continuous import load_continuously
from moldau.pipeline.loading.load import Loader
from moldau.pipeline.loading.settings import Loaded, Settings
from moldau.pipeline.loading.stopping import LoadStopped, Stopping
from moldau.pipeline.options import OptionError, TopicSelection
from moldau.pipeline.positions import DataLost
from moldau.pipeline.tables.maintenance import history
from moldau.pipeline.tables.warehouse import Warehouse
from tests.pipeline.loading.test_load import NewTopic, Produce, expected, in_table, numbered, offsets
from tests.pipeline.source.test_gaps import create_again

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeLoader = Callable[..., Loader]


@pytest.fixture
def loader(spark: "SparkSession", bootstrap: str, tmp_path: Path) -> MakeLoader:
    def make(*topics: str, pattern: str = "", **settings: object) -> Loader:
        subscription = TopicSelection(topics=topics, pattern=pattern)
        return Loader(lambda: spark, bootstrap, subscription, Warehouse(tmp_path), Settings(**settings))

    return make


def once(one: Loader) -> int:
    """The number of records of one more load."""
    return one.run(one.plan()).records


def test_new_partitions_and_topics_are_loaded_by_the_same_loader(
    loader: MakeLoader, bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    warehouse, first = Warehouse(tmp_path), new_topic(name="growing")
    produce(first, numbered(0, 10))
    with loader(pattern="growing-.*") as one:
        assert once(one) == 10 and once(one) == 0
        with Admin(bootstrap) as admin:
            admin.create_partitions(first, 2)
        produce(first, numbered(10, 5))
        produce(first, numbered(100, 7), 1)
        second = new_topic(name="growing")
        produce(second, numbered(0, 3))
        assert once(one) == 15 and one.lag() == {first: 0, second: 0}
        produce(second, numbered(3, 2))
        assert one.plan().topics == [second] and one.lag() == {first: 0, second: 2}
    assert in_table(warehouse, first) == expected(first, 0, 0, 15) + expected(first, 1, 100, 7)
    assert in_table(warehouse, second) == expected(second, 0, 0, 3)


@pytest.mark.parametrize("records", [5, *(pytest.param(count, marks=pytest.mark.check) for count in (10, 50))])
def test_a_topic_that_was_created_again_is_noticed_however_many_records_it_has(
    loader: MakeLoader, bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, records: int
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    with loader(topic) as one:
        assert once(one) == 10
        create_again(bootstrap, topic)
        produce(topic, numbered(1000, records))
        sentence = f"records of an earlier topic {topic}: the topic was deleted and created again"
        with pytest.raises(DataLost, match=sentence):
            one.plan()
    with loader(topic, fail_on_data_loss=False) as later, pytest.raises(DataLost, match=sentence):
        later.plan()
    assert in_table(Warehouse(tmp_path), topic) == expected(topic, 0, 0, 10)


def test_a_topic_created_again_between_plan_and_fetch_adds_nothing(
    loader: MakeLoader, bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    with loader(topic) as one:
        assert once(one) == 10
        produce(topic, numbered(10, 10))
        planned = one.plan()
        create_again(bootstrap, topic)
        produce(topic, numbered(1000, 30))
        with pytest.raises(MoldauError, match="was deleted and created again") as said:
            one.run(planned)
        assert said.value.again, "the next plan says what it means"  # type: ignore[attr-defined]
    assert in_table(Warehouse(tmp_path), topic) == expected(topic, 0, 0, 10)


@pytest.mark.check  # a variant: `make test` has the usual case
def test_records_that_expire_between_loads_are_an_error_unless_loss_is_allowed(
    loader: MakeLoader, bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    with loader(topic) as one, loader(topic, fail_on_data_loss=False) as lenient:
        assert once(one) == 10
        produce(topic, numbered(10, 10))
        with Admin(bootstrap) as admin:
            planned = one.plan()
            admin.delete_records({TopicPartition(topic, 0): 15})
        with pytest.raises(MoldauError, match="could not be loaded") as said:
            one.run(planned)
        assert said.value.again  # type: ignore[attr-defined]
        with pytest.raises(DataLost, match="Offsets 10 to 14 of"):
            one.plan()
        assert once(lenient) == 5
    rows = in_table(Warehouse(tmp_path), topic)
    assert [row[2] for row in rows] == [*range(10), *range(15, 20)]


@pytest.mark.check  # a variant: `make test` has the usual case
def test_gaps_of_a_compacted_topic_are_no_loss(loader: MakeLoader, bootstrap: str, tmp_path: Path) -> None:
    topic, warehouse = "compacted-for-a-load", Warehouse(tmp_path)
    settings = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer, loader(topic) as one:
        admin.create_topic(topic, partitions=1, replication_factor=1, configs=settings)
        for n in range(3):
            producer.send(topic, f"v{n}", "same").result()
        assert once(one) == 3
        for n in range(3, 6):
            producer.send(topic, f"v{n}", "same")
        for key in ("large", "larger"):
            producer.send(topic, bytes(600_000), key).result()  # the second one begins another segment
        producer.send(topic, "last", "last").result()
        assert wait_until(lambda: len(read_table(topic, bootstrap)) == 4, 60)
        assert once(one) == 4, "the table's offset is in a gap"
    assert [row[2] for row in in_table(warehouse, topic)] == [0, 1, 2, 5, 6, 7, 8]
    assert offsets(warehouse, topic) == {0: 9}


@pytest.mark.check  # a variant: `make test` has the usual case
def test_since_is_where_a_partition_begins_and_until_where_a_load_ends(
    loader: MakeLoader, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, [(None, b"v%d" % n, 1_000 + n) for n in range(100)])
    with loader(topic, since_ms=1_020, until_ms=1_050) as one:
        assert once(one) == 30 and once(one) == 0
    with loader(topic, since_ms=1_000, until_ms=1_040) as one:
        assert once(one) == 0, "it was loaded beyond"
    with loader(topic, since_ms=99_999) as one:
        assert once(one) == 50, "the table's offsets count"
    assert [row[2] for row in in_table(warehouse, topic)] == list(range(20, 100))


def test_a_commit_takes_no_more_than_the_limit_and_says_that_more_is_waiting(
    loader: MakeLoader, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic(2)
    for partition in (0, 1):
        produce(topic, numbered(0, 50), partition)
    with loader(topic, records_max=40) as one:
        planned = [one.plan()]
        assert one.run(planned[0]).records == 40 and planned[0].more
        assert once(one) == 40 and once(one) == 20 and not one.plan().more
    assert in_table(Warehouse(tmp_path), topic) == expected(topic, 0, 0, 50) + expected(topic, 1, 0, 50)


class StopAfter:
    """A report that sends a signal in the middle of a commit's report."""

    def __init__(self, commits: int, sign: signal.Signals):
        self.commits, self._sign = commits, sign
        self.records = 0

    def committed(self, loaded: Loaded, lag: dict[str, int]) -> None:
        self.records += loaded.records
        self.commits -= len(loaded.commits)
        if self.commits <= 0:
            os.kill(os.getpid(), self._sign)

    def failed(self, failure: MoldauError, pause_s: float) -> None:
        raise AssertionError(failure)


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.check)])
def test_a_signal_stops_a_continuous_load_after_the_commit_and_compaction_goes_on_beside(
    loader: MakeLoader, new_topic: NewTopic, produce: Produce, tmp_path: Path, sign: signal.Signals
) -> None:
    topic, warehouse = new_topic(), Warehouse(tmp_path)
    produce(topic, numbered(0, 60))
    before = signal.getsignal(sign)
    with loader(topic, records_max=10, small_files_max=2) as one, Stopping() as stopping:
        report = StopAfter(5, sign)
        with pytest.raises(LoadStopped):
            load_continuously(one, 600, stopping, report)
    assert signal.getsignal(sign) is before
    assert report.records == 50 and offsets(warehouse, topic) == {0: 50}
    assert in_table(warehouse, topic) == sorted(expected(topic, 0, 0, 50))
    assert "OPTIMIZE" in {version.operation for version in history(warehouse.place(topic))}


def send_during_commit(stopping: Stopping, reached: list[int]) -> None:
    with stopping.after():
        for number in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append(number)


def send_and_wait(stopping: Stopping) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    stopping.wait(SECONDS)


def test_the_second_signal_does_not_wait_for_the_commit_and_one_during_a_pause_ends_it() -> None:
    reached: list[int] = []
    with Stopping() as stopping, pytest.raises(LoadStopped):
        send_during_commit(stopping, reached)
    assert reached == [0]
    with Stopping() as stopping, pytest.raises(LoadStopped):
        send_and_wait(stopping)


def test_a_signal_that_python_could_not_raise_ends_the_load_at_its_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with Stopping() as stopping:
        Finalized()
        assert ignored
        with pytest.raises(LoadStopped):
            stopping.wait(SECONDS)
        with pytest.raises(LoadStopped), stopping.after():
            raise AssertionError("nothing more begins")


def test_a_topic_that_is_not_there_ends_a_load(loader: MakeLoader) -> None:
    with loader("no-such-topic") as one, pytest.raises(OptionError, match="No topic has this name"):
        one.plan()


def test_a_dry_run_shows_ranges_and_makes_nothing(
    bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new_topic(2)
    produce(topic, numbered(0, 12), 1)
    command = ["pipeline", "load", "-b", bootstrap, "--warehouse", str(tmp_path / "w"), "--dry-run"]
    assert run([*command, "--topics", topic]) == 0
    assert re.search(rf"^{topic} +1 +0 +12 +12$", capsys.readouterr().out, re.MULTILINE)
    assert run([*command, "--pattern", re.escape(topic), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "offsets": 12,
        "ranges": [{"topic": topic, "partition": 1, "start": 0, "end": 12}],
    }
    assert run([*command, "--topics", topic, "--since", "P1D"]) == 0
    assert capsys.readouterr().out == "nothing new to load\n"
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([], "give one of --topics and --pattern"),
        (["--topics", "t", "--pattern", "t"], "give one of --topics and --pattern"),
        (["--topics", ","], "--topics names no topic"),
        (["--pattern", "("], "--pattern '(' is not a regular expression"),
        (["--topics", "t", "--every", "often"], "--every 'often' is not a duration such as 30s"),
        (["--topics", "t", "--every", "1ms"], "of at least 100 ms"),
        (["--topics", "t", "--every", "1s", "--until", "1h"], "it excludes --until"),
        (["--topics", "t", "--every", "1s", "--dry-run"], "it excludes --dry-run"),
        (["--topics", "t", "--max-records", "5"], "--max-records needs --every"),
        (["--topics", "t", "--since", "yesterday"], "--since 'yesterday' is neither a duration"),
        (["--topics", "t", "--until", "2026-13-01"], "--until '2026-13-01' is neither a duration"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(
    bootstrap: str, wrong: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pipeline", "load", "--warehouse", str(tmp_path), "-b", bootstrap, *wrong]) != 0
    assert sentence in capsys.readouterr().err
