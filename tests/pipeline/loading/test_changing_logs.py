"""What a load does when its broker goes away, its log is truncated, or its topic is deleted meanwhile. The brokers are
in the process of the test, and so are Spark's tasks (`local_spark.py`): what happens comes at an exact moment."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from harness.patience import wait_until
from moldau import Producer
from moldau.client.administration.admin import Admin
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.loading import continuous, tasks
from moldau.pipeline.loading.continuous import load_continuously
from moldau.pipeline.loading.load import Loader, LoadFailed
from moldau.pipeline.loading.planning import gone_on, truncated
from moldau.pipeline.loading.settings import Loaded, Settings
from moldau.pipeline.loading.stopping import Stopping
from moldau.pipeline.options import TopicSelection
from moldau.pipeline.positions import DataLost, latest
from moldau.pipeline.tables.committing import epochs_of
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.testing import Broker
from tests.pipeline.local_spark import LocalSpark

Row = tuple[int, int, bytes]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, numbers: Iterator[int]) -> str:
    return broker.create_topic(f"changing-{next(numbers)}", partitions=1, retention_ms=-1)


class Loads:
    """Loads of one warehouse."""

    def __init__(self, broker: Broker, folder: Path, topics: str):
        self._broker, self.folder, self.topics = broker, folder, topics

    def loader(self, before_task: Callable[[int], None] = lambda number: None, **settings: Any) -> Loader:
        selection = TopicSelection(pattern=self.topics) if "*" in self.topics else TopicSelection((self.topics,))
        spark: Any = LocalSpark(before_task)
        return Loader(lambda: spark, self._broker.address, selection, Warehouse(self.folder), Settings(**settings))

    def once(self, before_task: Callable[[int], None] = lambda number: None, **settings: Any) -> Loaded:
        with self.loader(before_task, **settings) as loader:
            return loader.load()

    def rows(self, topic: str = "") -> list[Row]:
        """The rows of a table, by partition and offset."""
        table = Warehouse(self.folder).table(topic or self.topics)
        found = table.dataset().to_table(columns=["_partition", "_offset", "value"]).to_pydict() if table else {}
        return sorted(zip(*found.values(), strict=True))


@pytest.fixture
def loads(broker: Broker, topic: str, tmp_path: Path) -> Loads:
    return Loads(broker, tmp_path, topic)


def produce(broker: Broker, topic: str, what: str, count: int, size: int = 0) -> None:
    """Records of partition 0, in one batch."""
    with Producer(broker.address, linger_ms=5_000) as producer:
        for number in range(count):
            producer.send(topic, f"{what}{number}".encode().ljust(size, b"."), partition=0)
        producer.flush()


def expected(*what: tuple[str, range], first: int = 0, size: int = 0) -> list[Row]:
    values = [f"{name}{number}".encode().ljust(size, b".") for name, numbers in what for number in numbers]
    return [(0, at, value) for at, value in enumerate(values, first)]


# -- a broker that goes away


def test_a_broker_that_is_killed_and_started_again_in_the_middle_of_a_fetch_delays_the_load(
    broker: Broker, topic: str, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    for what in "abc":
        produce(broker, topic, what, 5, size=2_000)
    fetch, killed = tasks.read_columns, []

    def interrupted(*arguments: Any, **named: Any) -> Iterator[Any]:
        for batch in fetch(*arguments, **named, max_bytes=1):
            yield batch
            if not killed:
                killed.append(batch.num_rows)
                broker.kill()
                broker.start()

    monkeypatch.setattr(tasks, "read_columns", interrupted)
    done = loads.once()
    assert killed == [5] and [(one.version, one.records) for one in done.commits] == [(1, 15)]
    assert loads.rows() == expected(*((what, range(5)) for what in "abc"), size=2_000)


class Ended(Exception):
    """The test has seen what it waits for."""


class Restarting:
    """The report of a load: it starts the broker when the load has failed for the first time."""

    def __init__(self, broker: Broker):
        self._broker = broker
        self.failures: list[str] = []
        self.commits: list[Loaded] = []

    def failed(self, failure: MoldauError, pause_s: float) -> None:
        self.failures.append(str(failure))
        self._broker.start()

    def committed(self, loaded: Loaded, lag: dict[str, int]) -> None:
        self.commits.append(loaded)
        raise Ended


def test_a_broker_that_is_away_for_longer_fails_a_load_that_has_added_nothing_and_is_tried_again(
    broker: Broker, topic: str, loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "read_columns", partial(tasks.read_columns, timeout_ms=200))
    monkeypatch.setattr(continuous, "PAUSE_S_MIN", 0.01)
    produce(broker, topic, "a", 3)

    def once_away(number: int) -> None:
        if number == 0:
            broker.kill()

    report = Restarting(broker)
    with loads.loader(once_away) as loader, Stopping() as stopping, pytest.raises(Ended):
        load_continuously(loader, 600, stopping, report)
    assert len(report.failures) == 1 and "-0 from offset 0 to 3 could not be loaded: " in report.failures[0]
    assert [(one.version, one.records) for one in report.commits[0].commits] == [(1, 3)], "the table was empty before"
    assert loads.rows() == expected(("a", range(3)))


# -- a log that lost its end


class Truncated:
    """A broker that lost the end of a log, which it had not flushed: 5 records are left of 15."""

    KEPT, LOST = 5, 10

    def __init__(self, broker: Broker, topic: str):
        self._broker, self._topic = broker, topic
        [self._segment] = (broker.data_dir / f"{topic}-0").glob("*.log")

    def fill(self) -> None:
        produce(self._broker, self._topic, "old", self.KEPT)
        self._size = os.stat(self._segment).st_size
        produce(self._broker, self._topic, "lost", self.LOST)

    def lose(self, written_since: int) -> None:
        self._broker.kill()
        os.truncate(self._segment, self._size)
        self._broker.start()
        produce(self._broker, self._topic, "new", written_since)


@pytest.fixture
def log(broker: Broker, topic: str) -> Truncated:
    log = Truncated(broker, topic)
    log.fill()
    return log


OLD = expected(("old", range(5)), ("lost", range(10)))


@pytest.mark.parametrize("written_since", [12, 3])
def test_records_that_took_the_place_of_loaded_ones_are_noticed(
    topic: str, loads: Loads, log: Truncated, written_since: int
) -> None:
    assert loads.once().records == 15
    with loads.loader() as held:
        assert not held.plan().ranges
        log.lose(written_since)
        for loader in (held, loads.loader()):
            with pytest.raises(DataLost) as said:
                loader.plan()
            assert str(said.value) == (
                f"The log of {topic} partition 0 was truncated at offset 5 after it had been loaded up to offset 15: "
                "delete its rows from offset 5 on, also rejected ones, and load anew with --offsets-from-table, or "
                "continue at offset 15 with --allow-data-loss."
            )
    with loads.loader(fail_on_data_loss=False) as lenient:
        loaded = lenient.load()
    if written_since == 3:
        assert loaded.commits == () and loaded.notes == () and loads.rows() == OLD
        return
    [note] = loaded.notes
    assert note == (
        f"{topic} partition 0: the log was truncated at offset 5 after it had been loaded up to offset 15; the rows "
        "stay, and what was written in their place is left out."
    )
    assert loads.rows() == OLD + expected(("new", range(10, 12)), first=15)
    assert loads.once().commits == (), "it is not said again"


def test_rows_of_lost_records_that_are_deleted_by_hand_are_loaded_again_as_the_log_has_them_now(
    topic: str, loads: Loads, log: Truncated
) -> None:
    loads.once()
    log.lose(12)
    DeltaTable(loads.folder / topic).delete("_partition = 0 AND _offset >= 5")
    with pytest.raises(MoldauError, match="has lost rows of earlier loads"):
        loads.once()
    loaded = loads.once(removed_rows="reload")
    assert loaded.records == 12 and "is loaded again from offset 5" in loaded.notes[0]
    assert loads.rows() == expected(("old", range(5)), ("new", range(12)))
    assert loads.once().commits == ()


@pytest.mark.parametrize("expired", [False, True])
def test_a_log_that_lost_nothing_is_loaded_on_in_its_new_epoch(
    broker: Broker, topic: str, loads: Loads, log: Truncated, expired: bool
) -> None:
    tp = TopicPartition(topic, 0)
    loads.once()
    if expired:
        with Admin(broker.address) as admin:
            admin.delete_records({tp: 15})
    broker.kill()
    broker.start()
    assert loads.once().commits == ()
    produce(broker, topic, "new", 2)
    assert loads.once().records == 2
    table = Warehouse(loads.folder).table(topic)
    assert table is not None
    assert epochs_of(table, [tp]) == {tp: 1} and table.number(f"moldau/{topic}/0/epoch") == 2


def test_what_can_be_done_depends_on_what_is_known_and_on_the_table() -> None:
    of_keys = truncated(TopicPartition("t", 0), 15, 5, can_delete=False)
    assert "offset 15: load it into another warehouse, or continue" in of_keys
    unknown = truncated(TopicPartition("t", 0), 15, None, can_delete=True)
    assert "at an unknown offset" in unknown and "load it into another warehouse" in unknown
    assert "truncated at an unknown offset" in gone_on(TopicPartition("t", 0), 15, None)


# -- topics and their records that go


def test_a_deleted_topic_of_a_pattern_fails_the_load_once_and_the_others_go_on(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    loads = Loads(broker, tmp_path, f"{topic}.*")
    other = broker.create_topic(f"{topic}-other", partitions=1, retention_ms=-1)
    for name in (topic, other):
        produce(broker, name, "a", 2)

    def once_deleted(number: int) -> None:
        if number == 0:
            with Admin(broker.address) as admin:
                admin.delete_topic(other)
                assert wait_until(lambda: other not in admin.list_topics())

    with loads.loader(once_deleted) as loader:
        with pytest.raises(LoadFailed, match=f"{other}-0 from offset 0 to 2 could not .* was deleted") as said:
            loader.run(loader.plan())
        assert said.value.again
        assert loader.run(loader.plan()).records == 2 and loader.lag() == {topic: 0}
    assert loads.rows(topic) == expected(("a", range(2))) and loads.rows(other) == []


def test_records_that_expire_while_a_load_runs_are_lost_only_if_that_is_allowed(
    broker: Broker, topic: str, loads: Loads
) -> None:
    def expire(_: int) -> None:
        with Admin(broker.address) as admin:
            admin.delete_records({TopicPartition(topic, 0): 6})

    produce(broker, topic, "a", 4)
    loads.once()
    produce(broker, topic, "b", 4)
    with loads.loader(expire) as loader:
        with pytest.raises(LoadFailed, match="could not be loaded") as said:
            loader.run(loader.plan())
        assert said.value.again
        with pytest.raises(DataLost, match=f"Offsets 4 to 5 of {topic} partition 0 are gone from the log"):
            loader.plan()
    went_on = f"Offsets 4 to 5 of {topic} partition 0 are gone from the log and were never loaded; the load goes on "
    done = loads.once(fail_on_data_loss=False)
    assert (done.records, done.notes) == (2, (f"{went_on}without them.",))
    assert loads.rows() == expected(("a", range(4))) + expected(("b", range(2, 4)), first=6)
    assert loads.once(fail_on_data_loss=False).notes == ()


@pytest.mark.parametrize("first", [6, 8])
def test_a_load_that_may_lose_records_goes_on_behind_those_that_expire_while_it_runs(
    broker: Broker, topic: str, loads: Loads, first: int
) -> None:
    def expire(_: int) -> None:
        with Admin(broker.address) as admin:
            admin.delete_records({TopicPartition(topic, 0): first})

    produce(broker, topic, "a", 8)
    done = loads.once(expire, fail_on_data_loss=False)
    said = f"Offsets 0 to {first - 1} of {topic} partition 0 are gone from the log"
    assert done.records == 8 - first and done.notes[0].startswith(said)
    assert loads.rows() == expected(("a", range(first, 8)), first=first)
    assert loads.once().commits == ()


# -- transactions


def test_tables_of_keys_follow_only_what_was_committed(broker: Broker, topic: str, tmp_path: Path) -> None:
    """Aborted records change no row, though their tombstones come after; offsets go on over markers."""
    loads, tp = Loads(broker, tmp_path, topic), TopicPartition(topic, 0)
    keys = {"upsert": True, "partition_by": "none"}
    with Producer(broker.address, transactional_id=topic) as producer:
        for commits, values in ((True, {"a": "1", "b": "1"}), (False, {"a": None, "b": "2"}), (True, {"b": None})):
            producer.begin_transaction()
            for key, value in values.items():
                producer.send(topic, value, key, partition=0)
            producer.flush()
            (producer.commit_transaction if commits else producer.abort_transaction)()
        assert wait_until(lambda: latest(broker.address, [tp]) == {tp: 8}), "the markers are written"
        done = loads.once(**keys)
        assert (done.records, done.deleted) == (1, 0) and loads.rows() == [(0, 0, b"1")]
        producer.begin_transaction()
        producer.send(topic, None, "a", partition=0)
        producer.flush()
        assert loads.once(**keys).commits == () and loads.rows() == [(0, 0, b"1")], "the transaction is open"
        producer.abort_transaction()
    assert wait_until(lambda: bool(loads.once(**keys).commits)), "the offsets move on without a row"
    table = Warehouse(tmp_path).table(topic)
    assert table is not None
    assert loads.rows() == [(0, 0, b"1")] and table.offsets([tp]) == {tp: 10}
