"""What many partitions cost one broker: to make them, to keep them idle, to start with them after either kind of stop.

usage: python -m benchmarks.partitions [--partitions 1000,10000] [--runs 3]

A broker of its own is started for each number. Every partition holds a record, as those of a broker in use do. A start
is counted from the command to the line that says it listens; a clean stop is SIGTERM, of a broker where each partition
has a record that was not flushed, an unclean one SIGKILL.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import frames
from benchmarks.broker_load import Wire
from benchmarks.startup import resident_mb
from harness.brokers import Broker
from moldau.protocol import codec
from moldau.protocol.apis import CREATE_TOPICS, PRODUCE

A_TOPIC = 1000
"""Partitions of one topic."""
IN_FLIGHT = 100
PATIENCE_S = 600
SETTINGS = {"log.initial.task.delay.ms": "3600000"}


class Costs(NamedTuple):
    """Of one number of partitions; seconds of a start are the median of all runs."""

    made_s: float
    stop_s: float
    clean_s: float
    unclean_s: float
    idle_kb: float
    """Resident memory of one partition after a start, before any request."""


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def fill(port: int, partitions: int) -> None:
    """A record into each partition, many requests at a time."""
    one = frames.batch(1, 100)
    requests = [frames.produce(f"many-{at // A_TOPIC}", at % A_TOPIC, one) for at in range(partitions)]
    with Wire(port) as wire:
        for first in range(0, partitions, IN_FLIGHT):
            some = requests[first : first + IN_FLIGHT]
            wire.send(b"".join(some))
            for _ in some:
                answer = codec.read_reply(PRODUCE, frames.PRODUCE_VERSION, bytes(wire.reply()))
                assert not answer.responses[0].partition_responses[0].error_code, answer


def make(port: int, partitions: int) -> None:
    with Wire(port) as wire:
        for first in range(0, partitions, A_TOPIC):
            frame = frames.create(f"many-{first // A_TOPIC}", min(A_TOPIC, partitions - first))
            answer = wire.ask(CREATE_TOPICS, frames.CREATE_VERSION, frame)
            assert not answer.topics[0].error_code, answer


def measured(partitions: int, runs: int) -> Costs:
    """`partitions` of 0 says what an empty broker takes."""
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        broker = Broker(Path(folder), SETTINGS)
        broker.start()
        try:
            port = int(broker.address.rpartition(":")[2])
            made_s = timed(lambda: make(port, partitions))
            stop, clean, unclean, memory = [], [], [], []
            for _ in range(runs):
                fill(port, partitions)
                stop.append(timed(lambda: broker.stop(PATIENCE_S)))
                clean.append(timed(lambda: broker.start(PATIENCE_S)))
                memory.append(resident_mb(broker.pid) * 1000)
                broker.kill()
                unclean.append(timed(lambda: broker.start(PATIENCE_S)))
        finally:
            broker.kill()
    return Costs(made_s, *map(statistics.median, (stop, clean, unclean, memory)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitions", description="What many partitions cost.")
    parser.add_argument("--partitions", default="1000,10000")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args(arguments)
    names = ("partitions", "made in", "stopped in", "start, clean", "start, unclean", "idle memory each")
    table = Table(*names, title="Many partitions")
    for column in table.columns:
        column.justify = "right"
    empty = measured(0, asked.runs)
    times = (f"{seconds:.2f} s" for seconds in (empty.stop_s, empty.clean_s, empty.unclean_s))
    table.add_row("0", "", *times, f"{empty.idle_kb / 1000:.0f} MB in all")
    for number in map(int, asked.partitions.split(",")):
        costs = measured(number, asked.runs)
        each_kb = (costs.idle_kb - empty.idle_kb) / number
        cells = (costs.made_s, costs.stop_s, costs.clean_s, costs.unclean_s)
        table.add_row(f"{number:,}", *(f"{seconds:.2f} s" for seconds in cells), f"{each_kb:.1f} KB")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
