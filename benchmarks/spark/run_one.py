"""Runs one way of reading a topic with Spark in a process of its own, with whatever PySpark this Python has, and prints
seconds, processor time and memory as JSON.

usage: python run_one.py WAY ADDRESS TOPIC ROWS FOLDER

Spark is warm when the clock starts: the session runs, and the way has been gone once over a small topic. Processor time
is that of the JVM and all its Python workers, also for the way over the small topic, which is the session's first query
(`first_cpu_seconds`). Memory is the largest sum of their proportional set sizes.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

CONNECTOR = "spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:"
WARM = "-warm"
SAMPLE_SECONDS = 0.25
TICKS = os.sysconf("SC_CLK_TCK")


def family() -> list[int]:
    """The process ids of this process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [os.getpid()]
    for pid in found:
        found += parents.get(pid, [])
    return found


def cpu_seconds() -> float:
    """User and system time of the family, with that of its children which have ended."""
    total = 0
    for pid in family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def memory_bytes() -> int:
    """The sum of the family's proportional set sizes now."""
    total = 0
    for pid in family():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024


class Watch:
    """Samples the memory of the family until it is told to stop."""

    def __init__(self) -> None:
        self.most = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            self.most = max(self.most, memory_bytes())


def session(ours: bool, folder: Path, *given: str) -> Any:
    """Spark on two cores: started as the pipeline starts it, or as its users start it, with the settings `given`
    (NAME=VALUE)."""
    settings = dict(setting.split("=", 1) for setting in given)
    if ours:
        from moldau.pipeline.session import start_session

        return start_session("benchmark", "local[2]", scratch=folder / "scratch", **settings)
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for name, value in {**quiet, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def steps(way: str, spark: Any, address: str, folder: Path) -> Callable[[str], int]:
    """What a way does with a topic; it answers the rows that it counted, or -1."""
    from pyspark.sql import functions

    def frame(topic: str) -> Any:
        reader = spark.read.format("moldau" if ours else "kafka")
        if ours and way.endswith("pruned"):
            reader = reader.option("filterPushdown", "true")
        if way.endswith("-narrow"):
            reader = reader.option("columns", "timestamp" if "windows" in way else "offset")
        return reader.option("kafka.bootstrap.servers", address).option("subscribe", topic).load()

    def count(topic: str) -> int:
        return int(frame(topic).count())

    def noop(topic: str) -> int:
        frame(topic).write.format("noop").mode("overwrite").save()
        return -1

    def windows(topic: str) -> int:
        counted = frame(topic).groupBy(functions.window("timestamp", "1 second")).count()
        return sum(row["count"] for row in counted.collect())

    def pruned(topic: str) -> int:
        return int(frame(topic).where("partition = 0 and offset < 1000").count())

    def parquet(topic: str) -> int:
        frame(topic).write.mode("overwrite").parquet(str(folder / "parquet"))
        return -1

    def delta(topic: str) -> int:
        from moldau.pipeline.loading.load import load
        from moldau.pipeline.tables.warehouse import Warehouse

        return load(lambda: spark, address, [topic], Warehouse(folder / "warehouse")).records

    ours = way.startswith("moldau")
    ways = {"count": count, "noop": noop, "windows": windows, "pruned": pruned, "parquet": parquet, "load": delta}
    return ways[way.split()[1].removesuffix("-narrow")]


def main() -> None:
    way, address, topic, rows, into = sys.argv[1:6]
    folder = Path(into)
    ours = way.startswith("moldau")
    spark = session(ours, folder) if ours else session(ours, folder, CONNECTOR + metadata.version("pyspark"))
    try:
        step = steps(way, spark, address, folder)
        fresh = cpu_seconds()
        step(topic + WARM)
        cpu, began = cpu_seconds(), time.perf_counter()
        with Watch() as watch:
            counted = step(topic)
            seconds, spent = time.perf_counter() - began, cpu_seconds() - cpu
    finally:
        spark.stop()
    if counted not in (-1, 1000 if way.endswith("pruned") else int(rows)):
        raise RuntimeError(f"{way} counted {counted:,} of {rows} rows")
    figures = {"seconds": seconds, "cpu_seconds": spent, "memory_mb": watch.most / 1e6}
    print(json.dumps({**figures, "first_cpu_seconds": cpu - fresh}))


if __name__ == "__main__":
    main()
