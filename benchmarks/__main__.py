"""`make bench`: figures, and ratios to Apache Kafka where a JDK and Maven can bring it.

usage: python -m benchmarks [--alone] [--only startup,produce,fetch,latency,storage,partitions,groups,pipeline]

Both brokers run on this machine and are measured in turns, case by case, both warm; nothing else should run meanwhile.
"""

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import broker_load, groups, partitions, pipeline_load, startup, storage
from benchmarks.broker_load import Case
from tests.differential import apache_kafka

SETTINGS = {"log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "3600000"}
KAFKA_SETTINGS = {**SETTINGS, "node.id": "1", "offsets.topic.replication.factor": "1"}
AS_SHIPPED = ("-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


@contextlib.contextmanager
def moldau() -> Iterator[int]:
    """A broker of ours; its port."""
    from tests.brokers import Broker

    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder), SETTINGS)
        broker.start()
        try:
            yield int(broker.address.rpartition(":")[2])
        finally:
            broker.stop()


def ratio(ours: Case, theirs: Case | None) -> str:
    """How many times better ours is: faster for rates, shorter for times."""
    if theirs is None or not theirs.value or not ours.value:
        return ""
    better = theirs.value / ours.value if ours.unit in ("ms", "s", "MB") else ours.value / theirs.value
    return f"{better:.2f}"


def both_brokers(only: str, *, alone: bool) -> Iterator[tuple[Case, Case | None]]:
    """Each case of ours, beside Kafka's where it can be had and is asked for."""
    compare = not alone and shutil.which("mvn") and shutil.which("java")
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(moldau())
        if not compare:
            yield from ((case, None) for case in broker_load.cases(port, only))
            return
        kafka = stack.enter_context(apache_kafka.running(KAFKA_SETTINGS, AS_SHIPPED))
        yield from zip_longest(broker_load.cases(port, only), broker_load.cases(kafka.port, only))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="The benchmark suite.")
    parser.add_argument("--alone", action="store_true", help="do not compare with Apache Kafka")
    parser.add_argument("--only", default="startup,produce,fetch,latency,storage,partitions,groups,pipeline")
    asked = parser.parse_args()
    table = Table("case", "Moldau", "Apache Kafka", "times better", title="Benchmarks")
    for number in range(1, 4):
        table.columns[number].justify = "right"
    console = Console()

    def show(ours: Case, theirs: Case | None = None) -> None:
        other = f"{theirs.value:,.3g} {theirs.unit}" if theirs else ""
        table.add_row(ours.name, f"{ours.value:,.3g} {ours.unit}", other, ratio(ours, theirs))
        console.print(f"{ours.name}: {ours.value:,.4g} {ours.unit} {other}", highlight=False)

    if "startup" in asked.only:
        for case in startup.cases():
            show(case)
    if any(name in asked.only for name in ("produce", "fetch", "latency")):
        for ours, theirs in both_brokers(asked.only, alone=asked.alone):
            show(ours, theirs)
    console.print(table)
    for name, part in (("storage", storage), ("partitions", partitions), ("groups", groups)):
        if name in asked.only:
            part.main([])
    return pipeline_load.main([]) if "pipeline" in asked.only else 0


if __name__ == "__main__":
    sys.exit(main())
