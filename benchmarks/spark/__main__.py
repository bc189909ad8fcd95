"""The pipeline beside Spark's own Kafka connector: one broker of ours, the same topics, each way in a process of its
own, in turns.

usage: python -m benchmarks.spark [--rows N] [--bytes 200,1000] [--codecs none,zstd] [--only load,count,noop,...]
    [--json FILE] [--python connector=PATH]

PATH is a Python interpreter that has the PySpark of the connector; the connector's jars come from Maven Central. `load`
writes a Delta table and is compared with the connector's Parquet files. All rows of a topic are spread over ten minutes
of event time. A ratio above 1 says how many times better ours is. Fresh sessions are in the last columns: the processor
time of a session's first query, over a small topic, with the start of Spark's Python processes and what Java compiles.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow
from rich.console import Console
from rich.table import Table

from benchmarks.clients.run_one import Job
from benchmarks.side_by_side import moldau as broker
from benchmarks.spark.run_one import WARM
from moldau import Producer
from moldau.client.administration.admin import Admin

PARTITIONS = 4
WARM_ROWS = 20_000
SAMPLE_ROWS = 100_000
FIRST_MS = 1_700_000_000_000
SPREAD_MS = 600_000
RUN_SECONDS_MAX = 1_800
COMPARED = {
    "load": "parquet", "count": "count", "count-narrow": "count", "noop": "noop", "windows": "windows",
    "windows-narrow": "windows", "pruned": "pruned",
}  # fmt: skip
"""For each way of ours the connector's way that it is compared with. A narrow way names the columns that it needs."""


class Measured(NamedTuple):
    """One way on one topic."""

    topic: str
    way: str
    rate: float
    cpu_us: float
    memory_mb: float
    seconds: float
    first_cpu_s: float


FIGURES = (
    ("rate", ",.0f", True), ("cpu_us", ".2f", False), ("memory_mb", ",.0f", False), ("first_cpu_s", ".1f", False),
)  # fmt: skip
"""For each figure of the table its field, its format, and whether more of it is better."""


def fill(address: str, topic: str, rows: int, value_bytes: int, codec: str) -> None:
    """A topic of `rows` values that compress to about a half, in turns to its partitions."""
    with Admin(address) as admin:
        admin.create_topic(topic, partitions=PARTITIONS, replication_factor=1, configs={"retention.ms": "-1"})
    sample, _ = Job(["", "", "", "0", str(min(rows, SAMPLE_ROWS)), str(value_bytes), codec, "plain"]).contents()
    values = pyarrow.array(sample)
    with Producer(address, compression_type=codec) as producer:
        for first in range(0, rows, SAMPLE_ROWS):
            count = min(SAMPLE_ROWS, rows - first)
            numbers = range(first, first + count)
            times = pyarrow.array([FIRST_MS + number * SPREAD_MS // rows for number in numbers], pyarrow.int64())
            partitions = pyarrow.array([number // 1000 % PARTITIONS for number in numbers], pyarrow.int32())
            table = pyarrow.table({"value": values.slice(0, count), "timestamp": times, "partition": partitions})
            producer.send_table(topic, table).result()


def measure(way: str, python: str, address: str, topic: str, rows: int) -> Measured:
    """Run a way in a process and a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="moldau-bench-"))
    try:
        program = [python, str(Path(__file__).with_name("run_one.py")), way, address, topic, str(rows), str(folder)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, cwd=folder)
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        raise RuntimeError(f"{way} failed: {done.stderr[-4000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    seconds = found["seconds"]
    cpu_us = found["cpu_seconds"] / rows * 1e6
    return Measured(topic, way, rows / seconds, cpu_us, found["memory_mb"], seconds, found["first_cpu_seconds"])


def table_of(found: list[Measured]) -> Table:
    """Ours beside the connector's, topic by topic."""
    columns = ("rows/s", "CPU us/row", "MB", f"first query, {WARM_ROWS:,} rows: CPU s")
    table = Table("topic", "way", *(heading for column in columns for heading in (column, "connector", "times")))
    by_case = {(one.topic, one.way): one for one in found}
    for one in found:
        way = one.way.removeprefix("moldau ")
        other = by_case.get((one.topic, f"connector {COMPARED.get(way, '')}"))
        if not one.way.startswith("moldau"):
            continue
        cells: list[str] = []
        for field, form, is_rate in FIGURES:
            figure, theirs = getattr(one, field), getattr(other, field, None)
            cells.append(f"{figure:{form}}")
            if theirs is None:
                cells += ("", "")
            else:
                cells += (f"{theirs:{form}}", f"{figure / theirs if is_rate else theirs / figure:.2f}")
        table.add_row(one.topic, way, *cells)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--bytes", default="200")
    parser.add_argument("--codecs", default="none,zstd")
    parser.add_argument("--only", default=",".join(COMPARED))
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--python", action="append", default=[], metavar="connector=PATH")
    asked = parser.parse_args()
    pythons = {"moldau": sys.executable, **dict(given.split("=", 1) for given in asked.python)}
    found: list[Measured] = []
    for value_bytes in asked.bytes.split(","):
        for codec in asked.codecs.split(","):
            with broker() as port:
                address, topic = f"127.0.0.1:{port}", f"{codec}-{value_bytes}"
                fill(address, topic + WARM, WARM_ROWS, int(value_bytes), codec)
                fill(address, topic, asked.rows, int(value_bytes), codec)
                ways = asked.only.split(",")
                theirs = list(dict.fromkeys(COMPARED[way] for way in ways))
                for client, names in (("moldau", ways), ("connector", theirs)):
                    for name in names:
                        if client in pythons:
                            found.append(measure(f"{client} {name}", pythons[client], address, topic, asked.rows))
                            print(*found[-1], flush=True)
                        if asked.json:
                            asked.json.write_text(json.dumps([one._asdict() for one in found], indent=1))
    Console(width=160).print(table_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
