"""Whether memory stays bounded and time grows in line with the records: many partitions of small records, counted by
`spark.read` and loaded by `pipeline load` into a Delta table.

usage: python -m benchmarks.pipeline_scale [--rows 5000000,10000000,25000000,50000000] [--partitions 100]

The rows are those in the topic at that time: it grows from one number to the next. Processor time is that of the
driver, the JVM and Spark's Python processes, without the broker's; memory is the greatest resident size that was seen,
of the driver's Python, of the JVM, and of the largest other Python process.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.pipeline_load import TOPIC, fill
from moldau.client.administration.admin import Admin
from moldau.demo.broker_process import running_broker
from moldau.pipeline.loading.load import load
from moldau.pipeline.session import start_session
from moldau.pipeline.tables.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
SAMPLED_S = 0.1


class Usage:
    """What the processes below this one use from `start` to `stop`, except the broker."""

    def __init__(self, broker: int):
        self._broker = broker
        self._before: dict[int, float] = {}
        self._cpu_s: dict[int, float] = {}
        self.mb: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @property
    def cpu_s(self) -> float:
        return sum(spent - self._before.get(pid, 0.0) for pid, spent in self._cpu_s.items())

    def start(self) -> None:
        self._sample()
        self._before = dict(self._cpu_s)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLED_S):
            self._sample()

    def _sample(self) -> None:
        for pid, program, cpu_s, mb in _family(os.getpid(), self._broker):
            self._cpu_s[pid] = cpu_s
            what = "driver" if pid == os.getpid() else "JVM" if program == "java" else "worker"
            self.mb[what] = max(mb, self.mb.get(what, 0.0))


def _family(root: int, without: int) -> Iterator[tuple[int, str, float, float]]:
    """This process and those below it: pid, program, processor time, resident MB."""
    children: dict[int, list[int]] = {}
    found: dict[int, tuple[str, float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                pid = int(entry.name)
                program = (entry / "exe").readlink().name  # a name in stat may be that of a thread of the JVM
                found[pid] = program, (int(fields[11]) + int(fields[12])) * TICK_S, int(fields[21]) * PAGE_MB
                children.setdefault(int(fields[1]), []).append(pid)
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid != without and pid in found:
            yield pid, *found[pid]
            waiting += children.get(pid, [])


def measured(what: str, rows: int, broker: int, work: Callable[[], int]) -> None:
    """Run `work`, which returns the number of rows it has seen, and print a line of figures."""
    usage, began = Usage(broker), time.monotonic()
    usage.start()
    try:
        assert work() == rows
    finally:
        usage.stop()
    sizes = ", ".join(f"{name} {usage.mb.get(name, 0):,.0f} MB" for name in ("driver", "JVM", "worker"))
    print(
        f"{what:5} {rows:>12,} rows: {time.monotonic() - began:7.1f} s, {usage.cpu_s:7.1f} s of processor time "
        f"({usage.cpu_s / rows * 1e6:.2f} us a row), {sizes}",
        flush=True,
    )


def count(spark: "SparkSession", bootstrap: str) -> int:
    return spark.read.format("moldau").options(bootstrapServers=bootstrap, subscribe=TOPIC).load().count()


def load_all(spark: "SparkSession", bootstrap: str, warehouse: Warehouse) -> int:
    return load(lambda: spark, bootstrap, [TOPIC], warehouse).records


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="memory and time of many partitions of small records")
    parser.add_argument("--rows", default="5000000,10000000,25000000,50000000")
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--value-bytes", type=int, default=20)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as name:
        folder = Path(name)
        with running_broker(folder / "data", folder / "broker.pid", folder / "broker.log") as bootstrap:
            broker = int((folder / "broker.pid").read_text())
            with Admin(bootstrap) as admin:
                configs = {"retention.ms": "-1"}
                admin.create_topic(TOPIC, partitions=chosen.partitions, replication_factor=1, configs=configs)
            spark = start_session("benchmark", scratch=folder / "scratch")
            there = 0
            try:
                for rows in map(int, chosen.rows.split(",")):
                    fill(bootstrap, rows - there, chosen.value_bytes, chosen.partitions)
                    there = rows
                    measured("count", rows, broker, partial(count, spark, bootstrap))
                    warehouse = Warehouse(folder / f"warehouse-{rows}")
                    measured("load", rows, broker, partial(load_all, spark, bootstrap, warehouse))
            finally:
                spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
