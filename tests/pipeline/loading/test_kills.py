"""A continuous load with compaction, while its driver, its JVM, its workers and the broker are killed at random: each
record is once in the table, whoever reads it.

In local mode the JVM is driver and executor in one; a worker is a Python process of Spark's that runs tasks.
`MOLDAU_SEED` repeats the order of the kills.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from harness.brokers import Broker
from harness.patience import SECONDS, wait_until
from harness.tiers import LONG, seed_or, sized
from moldau.client.administration.admin import Admin
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.tables.maintenance import history
from moldau.pipeline.tables.storage import location
from tests.pipeline.loading.continuous_command import DRIVER, JVM, WORKER, ContinuousLoad

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = sized(4, 4, 50)
"""Of each kind one, at least."""
SEED = seed_or(3)
BROKER = "broker"
TOPIC = "events"
VICTIMS = (DRIVER, BROKER, JVM, WORKER)
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(3)]
Row = tuple[int, int, bytes]


class Producing:
    """A thread that produces numbered records until it is told to end; sends that fail while the broker is gone may be
    in the log or not."""

    def __init__(self, bootstrap: str):
        self._bootstrap = bootstrap
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._over.is_set():
            try:
                with Producer(self._bootstrap, delivery_timeout_ms=10_000, request_timeout_ms=5_000) as producer:
                    while not self._over.wait(0.02):
                        for _ in range(20):
                            producer.send(TOPIC, b"v%d" % number, partition=number % 3)
                            number += 1
                        producer.flush()
            except MoldauError:
                continue


def in_log(bootstrap: str) -> list[Row]:
    ends = list_offsets(bootstrap, dict.fromkeys(PARTITIONS, LATEST))
    rows: list[Row] = []
    for tp, end in ends.items():
        for batch in read_columns(bootstrap, *tp, 0, end):
            offsets, values = batch["offset"].to_pylist(), batch["value"].to_pylist()
            rows += [(tp.partition, *row) for row in zip(offsets, values, strict=True)]
    return sorted(rows)


def loaded(folder: Path) -> int:
    """The sum of the table's next offsets."""
    if not DeltaTable.is_deltatable(str(folder)):
        return 0
    table = DeltaTable(folder)
    return sum(table.transaction_version(f"moldau/{TOPIC}/{number}") or 0 for number in range(3))


def published(bootstrap: str) -> int:
    """The sum of the offsets that the load's group has committed."""
    with Admin(bootstrap) as admin:
        return sum(committed.offset for committed in admin.group_offsets("loads").values())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    found = Broker(tmp_path, may_be_held=True)
    found.start()
    yield found
    found.kill()


@pytest.mark.check
@pytest.mark.own_jvm("the driver and its JVM are killed")
@pytest.mark.timeout(3000 if LONG else 900)
def test_each_record_is_once_in_the_table_whatever_is_killed(
    broker: Broker, tmp_path: Path, moldau_command: list[str], request: pytest.FixtureRequest
) -> None:
    chance, killed = random.Random(SEED), Counter[str]()
    with Admin(broker.address) as admin:
        admin.create_topic(TOPIC, partitions=3, replication_factor=1)
    table = tmp_path / "warehouse" / TOPIC
    options = ("--topics", TOPIC, "--every", "500ms", "--compact-after", "5", "--group", "loads")
    producing, load = Producing(broker.address), ContinuousLoad(moldau_command, broker.address, tmp_path, *options)

    def goes_on(beyond: int) -> bool:
        if not load.runs:
            load.start()
        try:
            return loaded(table) > beyond
        except DeltaError:  # the log was listed while a commit and its clean-up went on: look again
            return False

    try:
        for number in range(KILLS):
            before = loaded(table)
            assert wait_until(lambda before=before: goes_on(before), 6 * SECONDS), load.complained()
            time.sleep(chance.random())
            what = VICTIMS[number] if number < len(VICTIMS) else chance.choice(VICTIMS)
            if what == BROKER:
                broker.kill()
                time.sleep(chance.random() * 2)
                broker.start()
            else:
                assert wait_until(lambda what=what: goes_on(-1) and load.kill(what), 6 * SECONDS), f"no {what} to kill"
            killed[what] += 1
        producing.end()
        records = in_log(broker.address)
        ends = sum(list_offsets(broker.address, dict.fromkeys(PARTITIONS, LATEST)).values())
        # The second SIGTERM of `stop` may come between a commit and its offsets in the group: wait for both.
        assert wait_until(lambda: goes_on(ends - 1) and published(broker.address) == ends, 6 * SECONDS), (
            load.complained()
        )
        assert load.stop() == 0, load.complained()
        assert load.said("stopped") and "Traceback" not in load.complained()
        assert load.left_behind() == [], "a killed start's JVM removes its folder, or the next start does"
        deaths = killed[DRIVER] + killed[JVM]  # one death if the second kill finds what the first one is ending
        assert load.starts <= 1 + deaths, "it survives the broker and a worker"
    finally:
        producing.end()
        load.close()
    print(f"seed {SEED}: killed {dict(killed)}, {len(records):,} records")
    assert read_by_polars(table) == records
    assert read_by_duckdb(table) == records
    assert read_by_spark(request.getfixturevalue("spark"), table) == records
    assert "OPTIMIZE" in {version.operation for version in history(location(table))}


def read_by_polars(table: Path) -> list[Row]:
    return sorted(polars.scan_delta(str(table)).select("_partition", "_offset", "value").collect().rows())


def read_by_duckdb(table: Path) -> list[Row]:
    events = DeltaTable(table).to_pyarrow_dataset()
    assert events is not None
    return duckdb.sql("SELECT _partition, _offset, value FROM events ORDER BY ALL").fetchall()


def read_by_spark(spark: "SparkSession", table: Path) -> list[Row]:
    events = spark.read.format("moldau").option("table", str(table)).load()
    rows = events.select("_partition", "_offset", "value").toArrow().to_pydict()
    return sorted(zip(*rows.values(), strict=True))
