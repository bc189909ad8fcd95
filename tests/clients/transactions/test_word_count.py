"""Kafka Streams counts words exactly once, though the application and the broker are killed while it counts.

Its topics are made by itself: a compacted one for the state, one by which words come together; what was read of that
one is deleted by it.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import wait_until
from harness.replicated_brokers import ReplicatedBrokers
from harness.tiers import LONG
from moldau.client.administration.admin import Admin
from tests.clients.client import DRIVERS
from tests.clients.referee import BrokerOfATest, kill_and_start, of_its_own, sizes
from tests.clients.test_java_client import QUICK_START
from tests.clients.transactions.judging import faults_of_counts
from tests.clients.transactions.reading import Feeder, contents, size
from tests.clients.transactions.workers import Worker
from tests.environments import jars, java_class
from tests.versions import KAFKA_STREAMS

pytestmark = pytest.mark.check

LINES, COUNTS, PARTITIONS = "lines", "counts", 2
WORDS = ["the", "river", "rises", "in", "two", "springs", "the", "warm", "one", "and", "the", "cold", "one", "city"]
BROKER = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
}
ROUNDS = 10 if LONG else 1
SECONDS_MAX = 120


@pytest.fixture(params=sizes(1))
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerOfATest]:
    ours = of_its_own(tmp_path, BROKER, request.param)
    ours.start()
    try:
        yield ours
    finally:
        ours.kill()


def lines(seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 6))) for _ in range(200)]


@pytest.mark.timeout(0 if LONG else 500)
def test_every_word_is_counted_once_whoever_is_killed(broker: BrokerOfATest, tmp_path: Path, seed: int) -> None:
    class_path = java_class(DRIVERS / "WordCount.java", jars(KAFKA_STREAMS))
    command = ["java", *QUICK_START, "-Xmx256m", "-cp", class_path, "WordCount"]
    chance = random.Random(seed)

    def application() -> Worker:
        places = [broker.address, LINES, COUNTS, str(tmp_path / "state")]
        return Worker([*command, *places], tmp_path / "application.log")

    def counted() -> int:
        return size(contents(broker.address, COUNTS, PARTITIONS))

    def goes_on() -> None:
        """Some more counts are there, and a moment passes."""
        before = counted()
        assert wait_until(lambda: counted() > before + 20, SECONDS_MAX, 0.1), f"it counts no more\n{counting.errors()}"
        time.sleep(chance.uniform(0, 0.2))

    with Admin(broker.address) as admin:
        for topic in (LINES, COUNTS):
            admin.create_topic(topic, partitions=PARTITIONS)
    feeder = Feeder(broker.address, LINES, PARTITIONS, per_s=50, values=lines(seed))
    counting = application()
    try:
        for _ in range(ROUNDS):
            goes_on()
            counting.kill()
            counting = application()
            goes_on()
            for _ in range(3 if isinstance(broker, ReplicatedBrokers) else 1):
                kill_and_start(broker)
                goes_on()
        fed = feeder.stop()
        said = [value for rows in contents(broker.address, LINES, PARTITIONS).values() for _, value in rows]
        assert len(said) == fed
        wanted = sum(len(line.split()) for line in said)
        wait_until(lambda: counted() >= wanted, SECONDS_MAX, 0.1)
        counting.end()
        updates = [row for rows in contents(broker.address, COUNTS, PARTITIONS).values() for row in rows]
        faults = faults_of_counts(said, updates)
        assert not faults, "\n".join([f"MOLDAU_SEED={seed}", *faults[:10], counting.errors()])
    finally:
        feeder.stop()
        counting.kill()
    broker.stop()
