"""What operating a cluster costs, beside Apache Kafka with three nodes: partitions that move, with a throttle and
without, leaderships that are handed over, and a rolling restart.

usage: python -m benchmarks.moving [--gigabytes 5] [--throttle-mb 50] [--leaderships 1000] [--alone]
    [--only move,throttle,leaderships,restart] [--folder FOLDER]

Three broker processes of ours with a ZooKeeper, then three Kafka nodes, one cluster at a time. Partitions with one
replica are filled and move from one broker to another one, from the request to the end of the last reassignment. They
move back under a throttle: ours for reassignments, Kafka's as `kafka-reassign-partitions` sets it. Meanwhile
requests with acks=all and three replicas, led by the broker that receives, are produced at a fixed rate, as before the
move. Leaderships are handed over from one broker to another one by an election of preferred replicas, until every
broker knows. A rolling restart stops (SIGTERM) and starts each broker when all replicas are in sync; the gap is the
longest time without an acknowledgement in any of three partitions.
"""

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.table import Table

from benchmarks.broker_load import Case
from benchmarks.replication import ALL, LEADER, Load, Ours, Side, Way, load_now, until_idle
from benchmarks.side_by_side import AS_SHIPPED, SETTINGS, ratio
from harness import apache_kafka
from harness.listening import Broker, free_port, wait_until_ready
from harness.patience import wait_until
from harness.steady import SteadyWrites
from moldau import Admin, TopicPartition
from moldau.errors import MoldauError

BATCH_BYTES = 84 << 10
BATCHES_IN_FLIGHT = 5
TOPICS = 4
"""Of one partition each, which move together."""
PER_SECOND, OWN_S, LOOK_S = 200, 5.0, 2.0
PATIENCE_S = 3600.0
KAFKA_SETTINGS = {**SETTINGS, "log.initial.task.delay.ms": "1000", "offsets.topic.replication.factor": "3"}
MOVE_RATES = ("leader.reassignment.throttled.rate", "follower.reassignment.throttled.rate")
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class ThreeNodes(Protocol):
    """Brokers with the ids 1, 2 and 3."""

    @property
    def side(self) -> Side: ...

    def restart(self, number: int) -> None:
        """Stop it in order, and start it again."""

    def close(self) -> None: ...


class OurNodes(Ours):
    def restart(self, number: int) -> None:
        self.brokers[number - 1].stop()
        self.brokers[number - 1].start()


class KafkaNodes:
    def __init__(self, folder: Path):
        self._folder = folder
        self._raft = {number: free_port() for number in (1, 2, 3)}
        self._ports = {number: free_port() for number in (1, 2, 3)}
        self._pids: dict[int, int] = {}
        self._running: dict[int, contextlib.ExitStack] = {}
        waiting = [self._launch(number) for number in self._ports]
        for wait in waiting:
            wait()

    def _launch(self, number: int) -> Callable[[], object]:
        """Returns what waits until it is ready: a node alone is not, before the others have been started."""
        home = self._folder / f"kafka-{number}"
        home.mkdir(exist_ok=True)
        settings = {
            **KAFKA_SETTINGS,
            "node.id": str(number),
            "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{port}" for one, port in self._raft.items()),
            "listeners": f"PLAINTEXT://127.0.0.1:{self._ports[number]},CONTROLLER://127.0.0.1:{self._raft[number]}",
        }
        stack = self._running[number] = contextlib.ExitStack()
        launched = apache_kafka.launched(home, settings, AS_SHIPPED, self._raft[number], apache_kafka.VERSION)
        _, process = stack.enter_context(launched)
        self._pids[number] = process.pid
        return lambda: wait_until_ready(Broker("Kafka", "127.0.0.1", self._ports[number]), process, home / "kafka.log")

    @property
    def side(self) -> Side:
        return Side("Kafka", [(self._ports[number], self._pids[number]) for number in self._ports])

    def restart(self, number: int) -> None:
        self._running.pop(number).close()
        self._launch(number)()

    def close(self) -> None:
        for stack in self._running.values():
            stack.close()


class PlacedSide(Side):
    """Topics are on broker 1, or on all with broker 1 as their preferred leader."""

    def topic(self, replicas: int) -> str:
        name = f"bench-{time.monotonic_ns():x}"
        with Admin(addresses(self)) as admin:
            admin.create_topic(name, assignment={0: [1, 2, 3][:replicas]})
        return name


def addresses(side: Side) -> str:
    return ",".join(f"127.0.0.1:{port}" for port, _ in side.brokers)


class MovedData:
    """Partitions that are all on one broker, and how large they are."""

    def __init__(self, side: Side, gigabytes: float):
        self.side = PlacedSide(*side)
        self._loads = [Load(Way(self.side, 1, LEADER), BATCH_BYTES, BATCHES_IN_FLIGHT) for _ in range(TOPICS)]
        self.tps = [TopicPartition(load.topic, 0) for load in self._loads]
        self.megabytes = 0.0
        for load in self._loads:
            written = 0
            while written < gigabytes * 1e9 / TOPICS:
                written += load.window(min(0.5, gigabytes / 4)) * load.batch_bytes
            self.megabytes += written / 1e6

    def throttle(self, admin: Admin, source: int, target: int, rate: int) -> None:
        is_kafka = self.side.name == "Kafka"
        for tp in self.tps if is_kafka else ():
            admin.alter_topic_configs(tp.topic, dict(zip(LISTS, (f"0:{source}", f"0:{target}"), strict=True)))
        for broker in (source, target):
            admin.configs.alter("broker", str(broker), dict.fromkeys(RATES if is_kafka else MOVE_RATES, rate))

    def begin(self, admin: Admin, target: int) -> None:
        outcome = admin.alter_reassignments(dict.fromkeys(self.tps, (target,)))
        assert not any(outcome.values()), outcome

    def is_there(self, admin: Admin) -> bool:
        return not admin.list_reassignments(self.tps)


def move(side: Side, data: MovedData) -> Iterator[Case]:
    with Admin(addresses(side)) as admin:
        until_idle([Way(side, 1, LEADER)])
        began_s = time.perf_counter()
        data.begin(admin, 2)
        assert wait_until(lambda: data.is_there(admin), PATIENCE_S)
        yield Case("a move without a throttle", data.megabytes / (time.perf_counter() - began_s), "MB/s")


def throttled(side: Side, data: MovedData, rate_mb: float) -> Iterator[Case]:
    load = Load(Way(data.side, 3, ALL), 16 << 10, 1)
    until_idle([Way(side, 3, ALL)])
    own = load.latencies(OWN_S, PER_SECOND)
    with Admin(addresses(side)) as admin:
        data.throttle(admin, 2, 1, round(rate_mb * 1e6))
        meanwhile: list[float] = []
        began_s = time.perf_counter()
        data.begin(admin, 1)
        while not data.is_there(admin):
            meanwhile += load.latencies(LOOK_S, PER_SECOND)
        took_s = time.perf_counter() - began_s
    load.close()
    yield Case(f"a move under a throttle of {rate_mb:g} MB/s", data.megabytes / took_s, "MB/s")
    yield Case("... p99 of acks=all before it", p99_ms(own), "ms")
    yield Case("... and meanwhile", p99_ms(meanwhile), "ms")


def p99_ms(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)] * 1000


def leaderships(side: Side, count: int) -> Iterator[Case]:
    """Of partitions that broker 1 leads and broker 2 is to lead."""
    name = f"bench-{time.monotonic_ns():x}"
    tps = [TopicPartition(name, number) for number in range(count)]
    with Admin(addresses(side)) as admin:
        admin.create_topic(name, assignment={number: [1, 2, 3] for number in range(count)})
        assert wait_until(lambda: leaders(side, name, count) == {1}, PATIENCE_S)
        outcome = admin.alter_reassignments(dict.fromkeys(tps, (2, 1, 3)))
        assert not any(outcome.values()), outcome
        assert wait_until(lambda: not admin.list_reassignments(), PATIENCE_S)
        until_idle([Way(side, 3, ALL)])
        began_s = time.perf_counter()
        admin.elect_leaders(tps)
        assert wait_until(lambda: leaders(side, name, count) == {2}, PATIENCE_S)
        yield Case(f"{count:,} leaderships handed over", time.perf_counter() - began_s, "s")
        admin.delete_topic(name)


def leaders(side: Side, topic: str, count: int) -> set[int]:
    """All that any broker takes for a leader of the topic; -1 where a broker does not know all partitions."""
    found: set[int] = set()
    for port, _ in side.brokers:
        with contextlib.suppress(MoldauError), Admin(f"127.0.0.1:{port}") as admin:
            parts = admin.describe_topics([topic])[topic].partitions
            found |= {part.leader for part in parts.values()} | ({-1} if len(parts) < count else set())
            continue
        found.add(-1)
    return found


def restart(nodes: ThreeNodes) -> Iterator[Case]:
    topic, partitions, gaps = f"bench-{time.monotonic_ns():x}", 3, list[float]()
    where = addresses(nodes.side)
    with Admin(where) as admin:
        admin.create_topic(topic, partitions=partitions, replication_factor=3, configs={"min.insync.replicas": 2})
        with SteadyWrites(where, topic, partitions) as writes:
            assert wait_until(lambda: writes.first_after(0))
            for number in (1, 2, 3):
                began_s = time.monotonic()
                nodes.restart(number)
                assert wait_until(lambda: is_whole(admin, topic), PATIENCE_S)
                moment_s = time.monotonic()
                assert wait_until(lambda: writes.first_after(moment_s), PATIENCE_S)  # noqa: B023
                gaps.append(writes.longest_gap_s(began_s))
        assert not writes.failed, writes.failed
    yield Case("the longest gap of a rolling restart", max(gaps), "s")


def is_whole(admin: Admin, topic: str) -> bool:
    with contextlib.suppress(MoldauError):
        parts = admin.describe_topics([topic])[topic].partitions.values()
        return len(admin.describe_cluster().brokers) == 3 and all(len(part.isr) == 3 for part in parts)
    return False


def cases(nodes: ThreeNodes, asked: argparse.Namespace) -> Iterator[Case]:
    """The kinds that were asked for; a throttled move needs data on broker 2, where the first one brings it."""
    if "move" in asked.only or "throttle" in asked.only:
        data = MovedData(nodes.side, asked.gigabytes)
        moved = list(move(nodes.side, data))
        yield from moved if "move" in asked.only else ()
        if "throttle" in asked.only:
            yield from throttled(nodes.side, data, asked.throttle_mb)
        for tp in data.tps:
            nodes.side.drop(tp.topic)
    if "leaderships" in asked.only:
        yield from leaderships(nodes.side, asked.leaderships)
    if "restart" in asked.only:
        yield from restart(nodes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving", description="What operating a cluster costs.")
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--throttle-mb", type=float, default=50.0)
    parser.add_argument("--leaderships", type=int, default=1000)
    parser.add_argument("--only", default="move,throttle,leaderships,restart")
    parser.add_argument("--alone", action="store_true", help="do not compare with Apache Kafka")
    parser.add_argument("--folder", help="where the brokers have their files")
    asked = parser.parse_args(arguments)
    console, found = Console(width=120), list[list[Case]]()
    kinds: list[type[ThreeNodes]] = [OurNodes]
    if not asked.alone and shutil.which("mvn") and shutil.which("java"):
        kinds.append(KafkaNodes)
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="moldau-bench-", dir=asked.folder) as name:
            nodes = kind(Path(name))  # type: ignore[call-arg]
            found.append([])
            try:
                for case in cases(nodes, asked):
                    console.print(f"{nodes.side.name}: {case.name}: {case.value:.4g} {case.unit}, {load_now()}")
                    found[-1].append(case)
            finally:
                nodes.close()
    table = Table("case", "Moldau", "Apache Kafka", "times better", title=f"Operating a cluster, {load_now()}")
    for number, ours in enumerate(found[0]):
        theirs = found[1][number] if len(found) > 1 else None
        other = f"{theirs.value:.4g} {theirs.unit}" if theirs else ""
        table.add_row(ours.name, f"{ours.value:.4g} {ours.unit}", other, ratio(ours, theirs))
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
