"""Brokers of one cluster, in processes that share a file."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from harness.brokers import Broker

SETTINGS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}


@contextlib.contextmanager
def broker_processes(folder: Path, count: int) -> Iterator[list[Broker]]:
    """None of them is started yet."""
    found: list[Broker] = []
    for number in range(1, count + 1):
        (folder / str(number)).mkdir()
        shared = {"broker.id": str(number), "zookeeper.connect": f"file:{folder / 'cluster.sqlite'}"}
        found.append(Broker(folder / str(number), {**SETTINGS, **shared}))
    try:
        yield found
    finally:
        for one in found:
            if one.runs:
                one.kill()
