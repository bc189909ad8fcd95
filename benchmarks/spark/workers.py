"""What Spark's Python processes cost before the first row and for each task: processor time, in sessions of
`moldau.pipeline.session` and in those that a user starts.

usage: python -m benchmarks.spark.workers [--turns 3] [--partitions 100] [--rows 5000000] [--before REVISION]

Each session is a process of its own on `local[2]`, in turns; the table has medians, with the least in brackets. It
first counts a topic of two records in two partitions. The first column is what Spark's daemon and two workers use for
that, from their start to their first batches; then come the Python processes that plan, then all of Spark. After that
it counts `--rows` records of 20 bytes in `--partitions` partitions, of which the third time counts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.earlier import source_of
from benchmarks.pipeline_load import TOPIC, fill
from benchmarks.side_by_side import moldau as broker
from benchmarks.spark.run_one import TICKS, family, session
from moldau import Producer
from moldau.client.administration.admin import Admin

SMALL = "small"
COUNTS = 3
RUN_SECONDS_MAX = 600
DAEMON = "spark.python.daemon.module=moldau.pipeline.worker_daemon"
OURS = "moldau's session"
SESSIONS: Mapping[str, tuple[bool, tuple[str, ...]]] = {
    OURS: (True, ()), "own session": (False, ()), f"own session, {DAEMON.partition('=')[0]}": (False, (DAEMON,)),
}  # fmt: skip
"""For each session whether `start_session` makes it, and settings of Spark."""
TASKS, PLANS, JVM = "run tasks", "plan", "JVM"


def spent() -> dict[int, tuple[str, float]]:
    """The kind of each of Spark's processes below this one, and the seconds of processor time that it has used."""
    found = {}
    for pid in family()[1:]:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        kind = JVM if "org.apache.spark" in command else TASKS if "pyspark.worker" in command else PLANS
        found[pid] = kind, (int(fields[11]) + int(fields[12])) / TICKS
    return found


def run(name: str, address: str, folder: Path) -> dict[str, Any]:
    """Count both topics in a session of this kind."""
    by_moldau, settings = SESSIONS[name]
    spark = session(by_moldau, folder, *settings)

    def count(topic: str) -> dict[str, float]:
        before, began = spent(), time.perf_counter()
        spark.read.format("moldau").options(bootstrapServers=address, subscribe=topic).load().count()
        used = {"seconds": time.perf_counter() - began, TASKS: 0.0, PLANS: 0.0, JVM: 0.0}
        for pid, (kind, seconds) in spent().items():
            used[kind] += seconds - before.get(pid, (kind, 0.0))[1]
        return used

    try:
        return {"first": count(SMALL), "tasks": [count(TOPIC) for _ in range(COUNTS)][-1]}
    finally:
        spark.stop()


def measured(name: str, address: str, source: Path | None) -> dict[str, Any]:
    """`run` in a process of its own, with an earlier source if one is given."""
    environment = {**os.environ, **({"PYTHONPATH": str(source)} if source else {})}
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        command = [sys.executable, "-m", "benchmarks.spark.workers", "--run", name, address, folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table_of(found: Mapping[str, list[dict[str, Any]]], partitions: int, rows: int) -> Table:
    many = f"{rows:,} rows, {partitions} tasks"
    columns = {
        "first: run tasks": ("first", (TASKS,)), "plan": ("first", (PLANS,)), "all": ("first", (TASKS, PLANS, JVM)),
        f"{many}: Python": ("tasks", (TASKS, PLANS)), f"{many}: all": ("tasks", (TASKS, PLANS, JVM)),
        f"{many}: seconds": ("tasks", ("seconds",)),
    }  # fmt: skip
    table = Table("session", *columns)
    for name, runs in found.items():
        cells = []
        for query, summed in columns.values():
            figures = [sum(one[query][kind] for kind in summed) for one in runs]
            cells.append(f"{statistics.median(figures):.2f} ({min(figures):.2f})")
        table.add_row(name, *cells)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.workers", description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--before", help="an earlier revision, or a folder with its sources, for a session of its own")
    parser.add_argument("--run", nargs=3, metavar=("SESSION", "ADDRESS", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        name, address, folder = asked.run
        print(json.dumps(run(name, address, Path(folder))))
        return 0
    with broker() as port, source_of(asked.before) if asked.before else nullcontext() as earlier:
        address = f"127.0.0.1:{port}"
        with Admin(address) as admin, Producer(address) as producer:
            for topic, partitions in ((SMALL, 2), (TOPIC, asked.partitions)):
                admin.create_topic(topic, partitions=partitions, replication_factor=1, configs={"retention.ms": "-1"})
            for partition in range(2):
                producer.send(SMALL, b"value", partition=partition).result()
        fill(address, asked.rows, 20, asked.partitions)
        ways = {**{name: (name, None) for name in SESSIONS}, **({asked.before: (OURS, earlier)} if earlier else {})}
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for _ in range(asked.turns):
            for way, (name, source) in ways.items():
                found[way].append(measured(name, address, source))
                print(way, found[way][-1], flush=True)
    Console(width=160).print(table_of(found, asked.partitions, asked.rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
