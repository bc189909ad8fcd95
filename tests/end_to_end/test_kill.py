"""SIGKILL under load: what was acknowledged is there, and with idempotence everything is there once and in order."""

import os
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from harness.tiers import sized
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.names import TopicPartition
from moldau.records.columns import COMPILED
from tests.end_to_end.loading import VALUE_BYTES
from tests.environments import python_with
from tests.versions import CONFLUENT

MESSAGES = sized(100_000, 100_000, 1_000_000 if COMPILED else 200_000)
KILLS_AFTER = (MESSAGES // 5, MESSAGES // 2, MESSAGES * 7 // 10)
TOPIC = TopicPartition("load", 0)
LOADING = Path(__file__).with_name("loading.py")
LOAD_SECONDS_MAX = 80

CLIENTS = ["ours", pytest.param("confluent", marks=pytest.mark.check)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path, {"num.partitions": "1"})
    ours.start()
    yield ours
    ours.kill()


def load_and_kill(broker: Broker, client: str, acks: str, result: Path) -> "array[int]":
    """Let a client send all messages while the broker is killed and started again; the offset each was acknowledged
    at."""
    python = python_with(CONFLUENT) if client == "confluent" else sys.executable
    command = [python, LOADING, client, broker.address, TOPIC.topic, str(MESSAGES), acks, result]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        kills = list(KILLS_AFTER)
        try:
            for line in process.stdout:
                if kills and int(line) >= kills[0]:
                    kills.pop(0)
                    broker.kill()
                    broker.start()
            assert process.wait(stretched(LOAD_SECONDS_MAX)) == 0
        finally:
            process.kill()
    assert not kills
    offsets = array("q")
    offsets.frombytes(result.read_bytes())
    return offsets


def numbers_in_the_log(broker: Broker) -> list[int]:
    end = list_offsets(broker.address, {TOPIC: LATEST})[TOPIC]
    numbers: list[int] = []
    for columns in read_columns(broker.address, *TOPIC, 0, end):
        values = columns.column("value").to_pylist()
        assert all(len(value) == VALUE_BYTES for value in values)
        numbers += [int(value[:9]) for value in values]
    return numbers


@pytest.mark.parametrize("client", CLIENTS)
def test_an_idempotent_load_survives_three_kills_with_each_message_there_once_and_in_order(
    client: str, broker: Broker, tmp_path: Path
) -> None:
    offsets = load_and_kill(broker, client, "all", tmp_path / "offsets")
    assert numbers_in_the_log(broker) == list(range(MESSAGES))
    assert -1 not in offsets


@pytest.mark.parametrize("client", CLIENTS)
def test_without_idempotence_nothing_that_was_acknowledged_is_missing_after_three_kills(
    client: str, broker: Broker, tmp_path: Path
) -> None:
    offsets = load_and_kill(broker, client, "1", tmp_path / "offsets")
    numbers = numbers_in_the_log(broker)
    acknowledged = [(number, offset) for number, offset in enumerate(offsets) if offset >= 0]
    assert len(acknowledged) == MESSAGES
    assert [number for number, offset in acknowledged if offset >= len(numbers) or numbers[offset] != number] == []
