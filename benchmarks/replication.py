"""What replication costs: three brokers beside one, and beside Apache Kafka's three; and how fast a replica catches up.

usage: python -m benchmarks.replication [--seconds 2] [--rounds 5] [--connections 1,8] [--in-flight 5]
    [--catch-up-gb 5] [--alone] [--only produce,latency,catch-up] [--sizes 200,16384,86016] [--folder FOLDER]

Three broker processes of ours with a ZooKeeper, and three Kafka nodes, run on this machine all the time. One
connection, then several, produce to one partition, each with at most `--in-flight` requests unanswered (a Kafka
client's default is 5): into a topic with one replica and acks=1, and into one with three and acks=all. All of them have
their turn in every round, for `--seconds`, so that other work on the machine meets all alike; the median of the rounds
counts. A turn begins once all brokers are idle: after its load a JVM compiles for a second or two, and all brokers
delete files. Beside each rate stands the processor time of all brokers together for a megabyte. Latency is that of
requests at a fixed rate. A replica catches up while its broker, which was away when the topic was filled, is back; a
raw consumer that reads the same records from the same leader, 1 MB at a time, is its measure.
"""

import argparse
import contextlib
import itertools
import os
import selectors
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import frames
from benchmarks.broker_load import Wire, end_offsets
from benchmarks.groups import broker_cpu_s
from benchmarks.producing import Producing
from benchmarks.side_by_side import AS_SHIPPED, SETTINGS
from harness import apache_kafka
from harness.brokers import Broker
from harness.patience import wait_until
from harness.zookeeper import ZooKeeper
from moldau.protocol import codec
from moldau.protocol.apis import CREATE_TOPICS, FETCH, METADATA
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.records.batch import batches

SIZES = (200, 16 << 10, 84 << 10)
"""Of a batch: one record, the default of Kafka's clients, and what a busy client reaches."""
PER_SECOND = {200: 500, 16 << 10: 500, 84 << 10: 200}
"""Requests a second where latency is measured: fewer than three of our replicas answer one after the other."""
RECORD_BYTES = 200
METADATA_VERSION = 9
ALL, LEADER = -1, 1
LEFT_FREE = 1 << 30
IDLE_PROCESSORS = 0.1
IDLE_LOOK_S = 0.5
IDLE_AFTER_S_MAX = 10.0
DELETES_AT_ONCE = {**SETTINGS, "log.initial.task.delay.ms": "1000"}
"""The files of earlier loads must not fill the memory or the disk."""
KAFKA_SETTINGS = {**DELETES_AT_ONCE, "offsets.topic.replication.factor": "3"}


class Side(NamedTuple):
    """A cluster: the port and process of each broker."""

    name: str
    brokers: Sequence[tuple[int, int]]

    @property
    def cpu_s(self) -> float:
        return sum(broker_cpu_s(pid) for _, pid in self.brokers)

    def leader(self, topic: str) -> int:
        """The port of the leader of the topic's partition, once all replicas are in sync."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        asked = codec.write_request(METADATA, METADATA_VERSION, 1, "bench", request)
        found: list[int] = []

        def look() -> bool:
            with Wire(self.brokers[0][0]) as wire:
                answer = wire.ask(METADATA, METADATA_VERSION, asked)
            ports = {broker.node_id: broker.port for broker in answer.brokers}
            for part in answer.topics[0].partitions:
                if part.leader_id in ports and len(part.isr_nodes) == len(part.replica_nodes):
                    found.append(ports[part.leader_id])
            return bool(found)

        assert wait_until(look), f"{topic} has no leader with all replicas in sync"
        return found[0]

    def topic(self, replicas: int) -> str:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        with Wire(self.brokers[0][0]) as wire:
            made = wire.ask(CREATE_TOPICS, frames.CREATE_VERSION, frames.create(name, 1, replicas))
        assert not made.topics[0].error_code, made
        return name

    def drop(self, topic: str) -> None:
        with Wire(self.brokers[0][0]) as wire:
            wire.send(frames.delete(topic))
            wire.reply()


class Way(NamedTuple):
    """How records are produced."""

    side: Side
    replicas: int
    acks: int

    @property
    def name(self) -> str:
        return f"{self.side.name}, RF {self.replicas}, acks={'all' if self.acks == ALL else self.acks}"


class Load:
    """Connections that produce the same batch again and again, each with at most `in_flight` requests unanswered."""

    def __init__(self, way: Way, size: int, in_flight: int, connections: int = 1):
        self._way = way
        self.topic = way.side.topic(way.replicas)
        self.port = way.side.leader(self.topic)
        records = max(1, size // (RECORD_BYTES + 10))
        batch = frames.batch(records, RECORD_BYTES)
        self.batch_bytes, self._records = len(batch), records
        frame = frames.produce(self.topic, 0, batch, way.acks)
        error_at = 4 + 4 + 4 + 2 + len(self.topic) + 4 + 4
        reply_bytes = error_at + 2 + 8 + 8 + 8 + 4
        self._in_flight = in_flight
        self._connections = [Producing(self.port, frame, reply_bytes, error_at, in_flight) for _ in range(connections)]
        self._acknowledged = 0
        while not self._is_taken():  # Kafka knows a leader before that broker does
            time.sleep(0.05)

    def _is_taken(self) -> bool:
        taken = self._connections[0].is_taken()
        self._acknowledged += taken
        return taken

    def window(self, seconds: float) -> int:
        """Produce for that long; how many requests were acknowledged."""
        answered = 0
        with selectors.DefaultSelector() as selector:
            for one in self._connections:
                selector.register(one.socket, selectors.EVENT_READ, one)
                one.send(self._in_flight)
            ends_at = time.perf_counter() + seconds
            while any(one.unanswered for one in self._connections):
                ready = [key.data for key, _ in selector.select()] if len(self._connections) > 1 else self._connections
                for one in ready:
                    count = one.take()
                    answered += count
                    if count and time.perf_counter() < ends_at:
                        one.send(count)
        self._acknowledged += answered
        return answered

    def latencies(self, seconds: float, per_second: int) -> list[float]:
        """One request at a time, at a fixed rate: from when each was due to when its answer was here."""
        seen = []
        began = due = time.perf_counter()
        while due - began < seconds:
            while (left := due - time.perf_counter()) > 0:
                if left > 0.0002:
                    time.sleep(left - 0.0001)
            assert self._is_taken()
            seen.append(time.perf_counter() - due)
            due += 1 / per_second
        return seen

    def close(self) -> None:
        """All that was acknowledged is in the log."""
        for one in self._connections:
            one.socket.close()
        held = end_offsets(self.port, self.topic, 1)
        assert held >= self._acknowledged * self._records, (
            f"{self._acknowledged * self._records} acknowledged, {held} held"
        )
        self._way.side.drop(self.topic)


class Rate(NamedTuple):
    mb_s: float
    requests_s: float
    cpu_ms_mb: float


def until_idle(ways: Sequence[Way]) -> None:
    """Wait until all brokers together use less than a tenth of a processor, for a limited time."""
    sides = {way.side.name: way.side for way in ways}.values()

    def is_idle() -> bool:
        before = sum(side.cpu_s for side in sides)
        time.sleep(IDLE_LOOK_S)
        return sum(side.cpu_s for side in sides) - before < IDLE_PROCESSORS * IDLE_LOOK_S

    wait_until(is_idle, IDLE_AFTER_S_MAX, pause_s=0)


def rates(
    ways: Sequence[Way], size: int, seconds: float, rounds: int, in_flight: int, connections: int
) -> dict[str, Rate]:
    """The median of the rounds for each way."""
    seen: dict[str, list[Rate]] = {way.name: [] for way in ways}
    for number in range(rounds + 1):
        for way in ways:
            load = Load(way, size, in_flight, connections)
            until_idle(ways)
            before, began = way.side.cpu_s, time.perf_counter()
            count = load.window(seconds)
            took_s = time.perf_counter() - began
            megabytes = count * load.batch_bytes / 1e6
            if number:  # the first round only warms up
                cpu_ms = (way.side.cpu_s - before) * 1000
                seen[way.name].append(Rate(megabytes / took_s, count / took_s, cpu_ms / megabytes))
            load.close()
    return {name: Rate(*map(statistics.median, zip(*found, strict=True))) for name, found in seen.items()}


def latencies(ways: Sequence[Way], size: int, seconds: float, rounds: int) -> dict[str, tuple[float, float]]:
    """p50 and p99 in milliseconds: each the median of the rounds."""
    loads = {way.name: Load(way, size, 1) for way in ways}
    seen: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}
    for number in range(rounds + 1):
        for name, load in loads.items():
            until_idle(ways)
            found = sorted(load.latencies(seconds, PER_SECOND.get(size, 200)))
            if number:
                seen[name].append((found[len(found) // 2] * 1e3, found[int(len(found) * 0.99)] * 1e3))
    for load in loads.values():
        load.close()
    return {
        name: (statistics.median(p50 for p50, _ in found), statistics.median(p99 for _, p99 in found))
        for name, found in seen.items()
    }


class Ours:
    """Three brokers of ours and a ZooKeeper."""

    def __init__(self, folder: Path):
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        self.brokers = [self._broker(folder / str(number), number) for number in (1, 2, 3)]
        for broker in self.brokers:
            broker.start()

    def _broker(self, folder: Path, number: int) -> Broker:
        folder.mkdir()
        settings = {**DELETES_AT_ONCE, "broker.id": str(number), "zookeeper.connect": self.zookeeper.connect}
        return Broker(folder, settings, may_be_held=True)

    @property
    def side(self) -> Side:
        running = [one for one in self.brokers if one.runs]
        return Side("Moldau", [(int(one.address.rpartition(":")[2]), one.pid) for one in running])

    def close(self) -> None:
        for broker in self.brokers:
            broker.kill()
        self.zookeeper.stop()


class CaughtUp(NamedTuple):
    """Rates of a replica and of a consumer, with the processor time of all brokers for each; and of a process that only
    writes as many bytes into a new file, with its own."""

    gigabytes: float
    replica: Rate
    consumer: Rate
    writing: Rate


def catch_up(ours: Ours, gigabytes: float, folder: Path) -> CaughtUp:
    """Fill a topic while one of its three brokers is away; how fast that one has it when it is back."""
    load = Load(Way(ours.side, 3, LEADER), 84 << 10, 5)
    topic, leader = load.topic, load.port
    here, away, other = sorted(ours.brokers, key=lambda one: not one.address.endswith(f":{leader}"))
    away.stop()
    written = 0
    while written < gigabytes * 1e9:
        written += load.window(1.0) * load.batch_bytes
    consumer = read_all(ours.side, leader, topic)
    whole = here.log_bytes(topic)
    assert wait_until(lambda: other.log_bytes(topic) == whole)
    use_free_memory()
    away.start()
    assert wait_until(lambda: away.log_bytes(topic) > whole / 100, pause_s=0.001)
    began_bytes, began, before = away.log_bytes(topic), time.perf_counter(), ours.side.cpu_s
    while (held := away.log_bytes(topic)) < whole:
        time.sleep(0.005)
    took_s, megabytes = time.perf_counter() - began, (held - began_bytes) / 1e6
    replica = Rate(megabytes / took_s, 0, (ours.side.cpu_s - before) * 1000 / megabytes)
    ours.side.leader(topic)  # in sync again
    load.close()
    return CaughtUp(whole / 1e9, replica, consumer, write_all(folder / "written", whole))


def use_free_memory() -> None:
    """Write to all memory that is free, in another process: the host of a virtual machine may provide each page at its
    first use only, and that takes several times as long as to write a file."""
    size = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - LEFT_FREE
    if size > 0:
        subprocess.run([sys.executable, "-c", f"b'x' * {size}"], check=True)


def write_all(path: Path, size: int) -> Rate:
    """Write a new file, 1 MB at a time."""
    piece = os.urandom(1 << 20)
    before, began = time.process_time(), time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(size >> 20):
            file.write(piece)
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - before
    path.unlink()
    return Rate(size / 1e6 / took_s, 0, cpu_s * 1e9 / size)


def read_all(side: Side, port: int, topic: str) -> Rate:
    """Read a topic from its beginning, 1 MB at a time."""
    offset, taken, end = 0, 0, end_offsets(port, topic, 1)
    before, began = side.cpu_s, time.perf_counter()
    with Wire(port) as wire:
        while offset < end:
            wire.send(frames.fetch(topic, offset, 1 << 20))
            part = codec.read_reply(FETCH, frames.FETCH_VERSION, wire.reply()).responses[0].partitions[0]
            assert not part.error_code and part.records
            for _, header in batches(part.records):
                offset = header.next_offset
            taken += len(part.records)
    megabytes = taken / 1e6
    return Rate(megabytes / (time.perf_counter() - began), 0, (side.cpu_s - before) * 1000 / megabytes)


def shown(size: int) -> str:
    return "one record" if size == RECORD_BYTES else f"{size >> 10} KB"


def load_now() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replication", description="What replication costs.")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", default="1,8")
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--catch-up-gb", type=float, default=5.0)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--only", default="produce,latency,catch-up")
    parser.add_argument("--alone", action="store_true", help="do not compare with Apache Kafka")
    parser.add_argument("--folder", help="where the brokers have their files")
    asked = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moldau-bench-", dir=asked.folder)))
        use_free_memory()
        ours = Ours(folder)
        stack.callback(ours.close)
        sides = [ours.side]
        if not asked.alone and shutil.which("mvn") and shutil.which("java") and asked.only != "catch-up":
            nodes = stack.enter_context(apache_kafka.running_cluster(KAFKA_SETTINGS, AS_SHIPPED, folder=asked.folder))
            sides.append(Side("Kafka", nodes))
        ways = [Way(side, *how) for side in sides for how in ((1, LEADER), (3, ALL))]
        console = Console(width=120)
        columns = "connections", "MB/s", "requests/s", "CPU ms/MB", "p50 ms", "p99 ms"
        table = Table("batch", "way", *columns, title=load_now())
        connections = [int(number) for number in asked.connections.split(",")] if "produce" in asked.only else [1]
        sizes = [] if asked.only == "catch-up" else list(map(int, asked.sizes.split(",")))
        for size, number in itertools.product(sizes, connections):
            produced: dict[str, Rate] = {}
            if "produce" in asked.only:
                produced = rates(ways, size, asked.seconds, asked.rounds, asked.in_flight, number)
            waited: dict[str, tuple[float, float]] = {}
            if "latency" in asked.only and number == connections[0]:
                waited = latencies(ways, size, asked.seconds, asked.rounds)
            for way in ways:
                row = [shown(size), way.name, str(number)]
                rate, times = produced.get(way.name), waited.get(way.name)
                row += [f"{rate.mb_s:.1f}", f"{rate.requests_s:,.0f}", f"{rate.cpu_ms_mb:.2f}"] if rate else [""] * 3
                row += [f"{times[0]:.2f}", f"{times[1]:.2f}"] if times else [""] * 2
                table.add_row(*row)
                console.print(*row, load_now(), sep="  ", highlight=False)
        if asked.only != "catch-up":
            console.print(table)
        if "catch-up" in asked.only:
            found = catch_up(ours, asked.catch_up_gb, folder)
            console.print(
                f"{found.gigabytes:.1f} GB: a replica catches up with {found.replica.mb_s:.0f} MB/s "
                f"({found.replica.cpu_ms_mb:.2f} ms of processor time of all brokers a MB), a consumer reads "
                f"{found.consumer.mb_s:.0f} MB/s ({found.consumer.cpu_ms_mb:.2f} ms), ratio "
                f"{found.replica.mb_s / found.consumer.mb_s:.2f}; a process that only writes as much does "
                f"{found.writing.mb_s:.0f} MB/s ({found.writing.cpu_ms_mb:.2f} ms), {load_now()}",
                highlight=False,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
