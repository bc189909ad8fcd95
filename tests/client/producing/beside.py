"""What tests of producers do to their broker, and what it has stored."""

import contextlib
import os
import signal
from collections.abc import Iterator

from harness.brokers import Broker
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.names import TopicPartition


def stored(bootstrap: str, topic: str, partition: int = 0) -> list[dict[str, object]]:
    """Every record of a partition."""
    tp = TopicPartition(topic, partition)
    end = list_offsets(bootstrap, {tp: LATEST})[tp]
    return [row for columns in read_columns(bootstrap, topic, partition, 0, end) for row in columns.to_pylist()]


@contextlib.contextmanager
def paused(broker: Broker) -> Iterator[None]:
    """The broker's process stands still."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def values(bootstrap: str, topic: str, partition: int = 0) -> list[object]:
    return [row["value"] for row in stored(bootstrap, topic, partition)]
