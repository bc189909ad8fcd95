"""What a mirror costs: ours between two brokers of ours, and MirrorMaker 2 of Apache Kafka between two Kafka nodes.

usage: python -m benchmarks.mirrors [--records 3000000] [--record-bytes 100] [--partitions 4] [--seconds 20]
    [--rate 200] [--alone] [--folder FOLDER]

One side after the other: two brokers, and a mirror as a process of its own. The mirror first copies a fifth of the
records, so that a JVM has compiled. Then a producer writes the others as fast as it can (batches of up to 16 KB, no
compression), and the processor time of the mirror is counted until the last one is in the target, and that of all three
processes. Then single records are written at a fixed rate; the delay of each is from before it was sent until a
consumer of the target has it. Producer and consumer are the same program for both sides.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.groups import broker_cpu_s
from benchmarks.replication import load_now
from benchmarks.side_by_side import AS_SHIPPED, KAFKA_SETTINGS, ours
from harness import apache_kafka
from harness.brokers import SOURCE
from harness.listening import stop
from harness.patience import wait_until
from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.errors import MoldauError

TOPIC = "bench"
PATIENCE_S = 900.0
WARM_UP_SHARE = 5
MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
ARTIFACTS = ("connect-mirror",)
CONNECT = ("-Xms256M", "-Xmx2G", *AS_SHIPPED[2:])
"""As `connect-mirror-maker.sh` starts it."""
PROPERTIES = """clusters=a,b
a.bootstrap.servers={}
b.bootstrap.servers={}
a->b.enabled=true
b->a.enabled=false
a->b.topics=bench
tasks.max={}
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
"""


class MirrorSide(NamedTuple):
    """`topic` is the mirror's name in the target. `mirror` and `brokers` are process ids."""

    name: str
    source: str
    target: str
    topic: str
    mirror: int
    brokers: tuple[int, int]


class MirrorFigures(NamedTuple):
    per_cpu_s: float
    per_cpu_s_of_all: float
    per_s: float
    p50_ms: float
    p99_ms: float


@contextlib.contextmanager
def our_side(folder: Path, partitions: int) -> Iterator[MirrorSide]:
    with ours() as source, ours() as target:
        with Admin(source.address) as admin:
            admin.create_topic(TOPIC, partitions=partitions)
        arguments = ["mirror", "start", "--from", source.address, "--to", target.address, "--topics", TOPIC]
        with process([sys.executable, "-m", "moldau", *arguments], folder / "mirror.log") as mirror:
            yield MirrorSide("Moldau", source.address, target.address, TOPIC, mirror.pid, (source.pid, target.pid))


@contextlib.contextmanager
def mirror_maker(folder: Path, partitions: int) -> Iterator[MirrorSide]:
    with contextlib.ExitStack() as stack:
        addresses, pids = [], []
        for name in ("a", "b"):
            home = folder / name
            home.mkdir()
            broker, running = stack.enter_context(apache_kafka.started(home, KAFKA_SETTINGS, AS_SHIPPED))
            addresses.append(f"{broker.host}:{broker.port}")
            pids.append(running.pid)
        with Admin(addresses[0]) as admin:
            admin.create_topic(TOPIC, partitions=partitions)
        properties = folder / "mm2.properties"
        properties.write_text(PROPERTIES.format(*addresses, partitions))
        java = ["java", *CONNECT, "-cp", apache_kafka.class_path(more=ARTIFACTS), MIRROR_MAKER, str(properties)]
        mirror = stack.enter_context(process(java, folder / "mirror-maker.log")).pid
        yield MirrorSide("MirrorMaker 2", addresses[0], addresses[1], f"a.{TOPIC}", mirror, (pids[0], pids[1]))


@contextlib.contextmanager
def process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        running = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, "PYTHONPATH": str(SOURCE)})
        try:
            yield running
        finally:
            stop(running)


def measured(side: MirrorSide, asked: argparse.Namespace) -> MirrorFigures:
    value = bytes(asked.record_bytes)
    with Admin(side.target) as admin:
        warm = asked.records // WARM_UP_SHARE
        fill(side, value, warm, asked.partitions)
        until_mirrored(admin, side, warm)
        before, all_before, began_s = broker_cpu_s(side.mirror), cpu_of_all(side), time.perf_counter()
        fill(side, value, asked.records - warm, asked.partitions)
        until_mirrored(admin, side, asked.records)
        took_s, moved = time.perf_counter() - began_s, asked.records - warm
        cpu_s, all_s = broker_cpu_s(side.mirror) - before, cpu_of_all(side) - all_before
    delays_ms = sorted(1000 * one for one in delays(side, asked.seconds, asked.rate))
    return MirrorFigures(
        moved / cpu_s,
        moved / all_s,
        moved / took_s,
        statistics.median(delays_ms),
        delays_ms[min(int(len(delays_ms) * 0.99), len(delays_ms) - 1)],
    )


def cpu_of_all(side: MirrorSide) -> float:
    return sum(broker_cpu_s(pid) for pid in (side.mirror, *side.brokers))


def fill(side: MirrorSide, value: bytes, count: int, partitions: int) -> None:
    with Producer(side.source, acks="all", linger_ms=5) as producer:
        for number in range(count):
            producer.send(TOPIC, value, partition=number % partitions)


def until_mirrored(admin: Admin, side: MirrorSide, count: int) -> None:
    def held() -> bool:
        with contextlib.suppress(MoldauError):
            return sum(end for _, end in admin.watermarks(side.topic).values()) >= count
        return False

    assert wait_until(held, PATIENCE_S, 0.05), f"{side.name} has not copied {count:,} records"


def delays(side: MirrorSide, seconds: float, rate: int) -> list[float]:
    """Of each record, in seconds; those of the first second only warm up."""
    count, found = int(seconds * rate), list[float]()
    is_reading = threading.Event()

    def read() -> None:
        with Consumer(side.target, auto_offset_reset="latest") as consumer:
            partitions = [TopicPartition(side.topic, 0)]
            consumer.assign(partitions)
            consumer.seek_to_end(*partitions)
            consumer.position(partitions[0])
            is_reading.set()
            while len(found) < count:
                records = consumer.poll(1_000)
                now_ns = time.monotonic_ns()
                found.extend((now_ns - int(one.value or b"0")) / 1e9 for one in records)

    reader = threading.Thread(target=read)
    reader.start()
    assert is_reading.wait(60)
    with Producer(side.source, acks=1, linger_ms=0) as producer:
        due_s = time.monotonic()
        for _ in range(count):
            due_s += 1 / rate
            time.sleep(max(0.0, due_s - time.monotonic()))
            producer.send(TOPIC, b"%d" % time.monotonic_ns(), partition=0)
    reader.join(PATIENCE_S)
    assert len(found) >= count, f"{side.name}: {len(found)} of {count} records arrived"
    return found[rate:] or found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mirrors", description="What a mirror costs.")
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--alone", action="store_true", help="do not compare with MirrorMaker 2")
    parser.add_argument("--folder", help="where Kafka has its files")
    asked = parser.parse_args(arguments)
    sides = [our_side]
    if not asked.alone and shutil.which("mvn") and shutil.which("java"):
        sides.append(mirror_maker)
    figures: dict[str, MirrorFigures] = {}
    console = Console(width=120)
    for begin in sides:
        with tempfile.TemporaryDirectory(prefix="moldau-bench-", dir=asked.folder) as name:
            with begin(Path(name), asked.partitions) as side:
                figures[side.name] = measured(side, asked)
                console.print(side.name, figures[side.name], load_now(), highlight=False)
    console.print(shown(figures))
    return 0


def shown(figures: dict[str, MirrorFigures]) -> Table:
    table = Table("", *figures, "times better", title=f"Mirrors, {load_now()}")
    names = {
        "per_cpu_s": "records per second of the mirror's processor time",
        "per_cpu_s_of_all": "records per second of the processor time of mirror and brokers",
        "per_s": "records per second while a producer wrote as fast as it could",
        "p50_ms": "delay p50, ms",
        "p99_ms": "delay p99, ms",
    }
    for field, name in names.items():
        values = [getattr(one, field) for one in figures.values()]
        ratio = ""
        if len(values) > 1:
            ratio = f"{values[1] / values[0] if field.endswith('_ms') else values[0] / values[1]:.2f}"
        table.add_row(name, *(f"{value:,.2f}" if field.endswith("_ms") else f"{value:,.0f}" for value in values), ratio)
    return table


if __name__ == "__main__":
    sys.exit(main())
