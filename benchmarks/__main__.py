"""`make bench`: figures, and ratios to Apache Kafka where a JDK and Maven can bring it.

usage: python -m benchmarks [--alone] [--only startup,produce,fetch,latency,storage,partitions,groups,transactions,
    hostile,pipeline] [--before REVISION]

Both brokers run on this machine and are measured in turns, case by case, both warm; nothing else should run meanwhile.
With `--before` the hostile cases compare with our own broker of that revision.
"""

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from itertools import zip_longest

from rich.console import Console
from rich.table import Table

from benchmarks import broker_load, groups, partitions, pipeline_load, startup, storage, transactions
from benchmarks.broker_load import Case
from benchmarks.hostile import __main__ as hostile
from benchmarks.side_by_side import AS_SHIPPED, KAFKA_SETTINGS, moldau, ratio
from harness import apache_kafka


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
    parser.add_argument(
        "--only", default="startup,produce,fetch,latency,storage,partitions,groups,transactions,hostile,pipeline"
    )
    parser.add_argument("--before", metavar="REVISION", help="the broker that the hostile cases compare with")
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
    parts = {"storage": storage, "partitions": partitions, "groups": groups, "transactions": transactions}
    for name, part in parts.items():
        if name in asked.only:
            part.main(["--alone"] if asked.alone and part is transactions else [])
    if "hostile" in asked.only:
        hostile.main(["--before", asked.before] if asked.before else [])
    return pipeline_load.main([]) if "pipeline" in asked.only else 0


if __name__ == "__main__":
    sys.exit(main())
