"""Apache Kafka in our broker's stead: what tests say of it is what they are worth. `MOLDAU_TEST_BROKER=kafka` puts it
in the place of ours in the tests of transactions.

It is not killed. Kafka 4.3.1, alone and killed with open transactions, writes that they are complete when it is there
again and leaves out their markers, so that what was aborted can be read later: the judges notice that.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness import apache_kafka
from harness.apache_kafka import FOR_KAFKA
from harness.brokers import Broker
from harness.replicated_brokers import ReplicatedBrokers

KAFKA = "kafka"
ALWAYS = {
    "node.id": "1",
    "num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    **FOR_KAFKA,
}


class KafkaBroker:
    """A Kafka with what tests need of `harness.brokers.Broker`."""

    def __init__(self, folder: Path, settings: Mapping[str, str]):
        self.folder = folder
        self.address = ""
        self._settings = {**ALWAYS, **settings}
        self._stack = ExitStack()

    def start(self) -> None:
        broker, _ = self._stack.enter_context(apache_kafka.started(self.folder, self._settings))
        self.address = f"{broker.host}:{broker.port}"

    def kill(self) -> None:
        self._stack.close()

    def stop(self) -> None:
        self._stack.close()


BrokerOfATest = Broker | KafkaBroker | ReplicatedBrokers
SIZES = (1,) if os.environ.get("MOLDAU_TEST_BROKER") == KAFKA else (1, 3)
"""A test runs with one broker, and unchanged with three of which one after the other is killed."""


def sizes(in_check: int) -> list[Any]:
    """The sizes as parameters: one of them in `make check`, all of them in `make long`."""
    usual = in_check if in_check in SIZES else SIZES[0]
    return [size if size == usual else pytest.param(size, marks=pytest.mark.long) for size in SIZES]


def of_its_own(folder: Path, settings: Mapping[str, str], brokers: int = 1) -> BrokerOfATest:
    """A broker for one test to kill: ours, or Kafka where that is asked for. Three `brokers` are a
    cluster of ours."""
    if brokers == 3:
        return ReplicatedBrokers(folder, settings)
    if os.environ.get("MOLDAU_TEST_BROKER") == KAFKA:
        return KafkaBroker(folder, settings)
    return Broker(folder, dict(settings))


def kill_and_start(broker: BrokerOfATest) -> None:
    """SIGKILL, and up again on the same port and data; of a cluster, to its next broker."""
    if isinstance(broker, Broker):
        broker.kill()
        broker.start()
    elif isinstance(broker, ReplicatedBrokers):
        broker.kill_and_start()
