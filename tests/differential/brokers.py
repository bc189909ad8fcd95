"""Our broker of a run, and the settings that go to both brokers. Ours is started as a user starts it: the command, a
free port, a temporary folder.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.brokers import Broker as Process
from harness.listening import Broker

SETTINGS = {
    "node.id": "1",
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "2000",
    "group.max.size": "3",
    "log.retention.check.interval.ms": "3600000",
    "log.initial.task.delay.ms": "3600000",
}
ONE_AT_A_TIME = {"num.network.threads": "1", "num.io.threads": "1"}
"""Kafka takes requests in the order in which they come, as ours does: two members' words are never turned round."""


@contextlib.contextmanager
def running_moldau(settings: Mapping[str, str]) -> Iterator[Broker]:
    """Our broker with these settings."""
    with tempfile.TemporaryDirectory(prefix="moldau-", ignore_cleanup_errors=True) as name:
        process = Process(Path(name), dict(settings))
        try:
            process.start()
            host, _, port = process.address.rpartition(":")
            yield Broker("Moldau", host.strip("[]"), int(port))
            process.stop()
        finally:
            process.kill()
            if text := process.log():
                print(f"--- what moldau wrote to standard error ---\n{text}")
