"""Our broker beside Apache Kafka: how each is started for a comparison, and what a comparison says."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.broker_load import Case
from harness.brokers import Broker

SETTINGS = {"log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "3600000"}
KAFKA_SETTINGS = {**SETTINGS, "node.id": "1", "offsets.topic.replication.factor": "1"}
AS_SHIPPED = ("-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


@contextlib.contextmanager
def ours(
    settings: Mapping[str, str] = {},
    source: Path | None = None,
    descriptors: int | None = None,
    program: Sequence[str] = ("moldau",),
    environment: Mapping[str, str] = {},
) -> Iterator[Broker]:
    """A broker of ours, from another folder of sources if one is given, that may have so many files and sockets;
    `program` runs in moldau's stead."""
    if source:
        environment = {**environment, "PYTHONPATH": str(source)}
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(
            Path(folder),
            {**SETTINGS, **settings},
            program,
            environment,
            may_be_held=True,
            descriptors=descriptors,
        )
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


@contextlib.contextmanager
def moldau() -> Iterator[int]:
    """The port of a broker of ours."""
    with ours() as broker:
        yield int(broker.address.rpartition(":")[2])


def ratio(ours: Case, theirs: Case | None) -> str:
    """How many times better ours is: faster for rates, shorter for times."""
    if theirs is None or not theirs.value or not ours.value:
        return ""
    better = theirs.value / ours.value if ours.unit in ("ms", "s", "MB") else ours.value / theirs.value
    return f"{better:.2f}"
