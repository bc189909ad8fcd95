"""What many partitions cost a cluster: to make them, to keep them idle, and to start, stop and kill brokers with them.

usage: python -m benchmarks.cluster [--partitions 10000] [--brokers 3] [--idle 30] [--session-ms 6000]

Broker processes and a real ZooKeeper of their own. Every partition has one replica and one record. All figures come
from the Metadata of other brokers: partitions are made when every broker knows a leader for each, a broker is gone when
another one knows no leader for any of its partitions, and back when it knows one for all. Beside each time is the
processor time that the brokers and ZooKeeper needed meanwhile, which other work on the machine does not stretch.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.broker_load import Wire
from benchmarks.groups import broker_cpu_s
from benchmarks.partitions import A_TOPIC, PATIENCE_S, make
from harness.brokers import Broker
from harness.zookeeper import ZooKeeper
from moldau import Producer
from moldau.protocol import codec
from moldau.protocol.apis import DESCRIBE_CLUSTER, METADATA
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA_VERSION = 9
LOOK_S = 0.1
SETTLE_S = 5.0
ZOOKEEPER = 0


class Step(NamedTuple):
    """`cpu_s` is by broker id, and of ZooKeeper by 0."""

    name: str
    seconds: float
    cpu_s: Mapping[int, float]

    @property
    def line(self) -> str:
        spent = ", ".join(f"{number or 'ZooKeeper'} {cpu_s:.2f} s" for number, cpu_s in self.cpu_s.items())
        return f"{self.name}: {self.seconds:.2f} s; processor: {spent}"


class Cluster:
    """`brokers` are by id, from 1 on."""

    def __init__(self, folder: Path, brokers: int, partitions: int, session_ms: int):
        self.partitions = partitions
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        self.brokers = {
            number: self._broker(folder / str(number), number, session_ms) for number in range(1, brokers + 1)
        }
        self.steps: list[Step] = []

    def _broker(self, folder: Path, number: int, session_ms: int) -> Broker:
        folder.mkdir()
        settings = {"broker.id": number, "zookeeper.connect": self.zookeeper.connect}
        settings["zookeeper.session.timeout.ms"] = session_ms
        return Broker(folder, {name: str(value) for name, value in settings.items()}, may_be_held=True)

    def close(self) -> None:
        for one in self.brokers.values():
            one.kill()
        self.zookeeper.stop()

    def step(self, name: str, work: Callable[[], object]) -> None:
        """Do it, and note what it took."""
        before, began = self._cpu_s(), time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        after = self._cpu_s()
        self.steps.append(Step(name, seconds, {one[0]: cpu_s - before.get(one, 0.0) for one, cpu_s in after.items()}))
        print(self.steps[-1].line, flush=True)

    def _cpu_s(self) -> dict[tuple[int, int], float]:
        """By number and process: a broker that was started again is another process."""
        pids = {number: one.pid for number, one in self.brokers.items() if one.runs}
        [pids[ZOOKEEPER]] = self.zookeeper.servers().values()
        return {(number, pid): broker_cpu_s(pid) for number, pid in pids.items()}

    def port(self, number: int) -> int:
        return int(self.brokers[number].address.rpartition(":")[2])

    def led(self, asked: int) -> tuple[int, dict[int, int]]:
        """The controller, and how many partitions each broker leads, as the broker `asked` knows it."""
        topics = [MetadataRequestTopic(name=f"many-{at}") for at in range(-(-self.partitions // A_TOPIC))]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        with Wire(self.port(asked)) as wire:
            answer = wire.ask(
                METADATA, METADATA_VERSION, codec.write_request(METADATA, METADATA_VERSION, 1, "bench", request)
            )
            described = codec.write_request(DESCRIBE_CLUSTER, 0, 2, "bench", DESCRIBE_CLUSTER.request())
            controller = wire.ask(DESCRIBE_CLUSTER, 0, described).controller_id
        counts: dict[int, int] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                counts[part.leader_id] = counts.get(part.leader_id, 0) + 1
        return controller, counts

    def until(self, asked: int, holds: Callable[[int, Mapping[int, int]], bool]) -> None:
        """Ask that broker until it holds of the controller and the counts of leaders."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(*self.led(asked)):
            assert time.monotonic() < deadline, f"still {self.led(asked)}"
            time.sleep(LOOK_S)

    def until_all_lead(self) -> None:
        for number in self.brokers:
            self.until(
                number, lambda _, led: led.keys() == self.brokers.keys() and sum(led.values()) == self.partitions
            )

    def until_gone(self, gone: int) -> None:
        for number in self.brokers.keys() - {gone}:
            self.until(number, lambda controller, led: gone not in led and controller not in (gone, -1))

    def make(self) -> None:
        make(self.port(1), self.partitions)
        self.until_all_lead()

    def fill(self) -> None:
        with Producer(self.brokers[1].address) as producer:
            for at in range(self.partitions):
                producer.send(f"many-{at // A_TOPIC}", b"x" * 100, partition=at % A_TOPIC)

    def restart(self, number: int, how: str, end: Callable[[], None]) -> None:
        """End a broker, wait until the others know, and start it again."""
        who = "the controller" if self.led(number)[0] == number else "a broker"
        self.step(f"{who} {how}: its process has ended", end)
        self.step("... and no partition has it for a leader", lambda: self.until_gone(number))
        self.step("... it starts: the process listens", lambda: self.brokers[number].start(PATIENCE_S))
        self.step("... and leads its partitions again", self.until_all_lead)
        time.sleep(SETTLE_S)


def measured(brokers: int, partitions: int, idle_s: float, session_ms: int) -> list[Step]:
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        cluster = Cluster(Path(folder), brokers, partitions, session_ms)
        try:
            for one in cluster.brokers.values():
                one.start()
            cluster.step(f"{partitions:,} partitions made", cluster.make)
            cluster.step("a record written into each", cluster.fill)
            time.sleep(SETTLE_S)
            cluster.step(f"{idle_s:g} s idle", lambda: time.sleep(idle_s))
            controller = cluster.led(1)[0]
            other = next(number for number in cluster.brokers if number != controller)
            for number in (other, controller):
                cluster.restart(number, "is stopped (SIGTERM)", lambda: cluster.brokers[number].stop(PATIENCE_S))  # noqa: B023
            controller = cluster.led(1)[0]
            other = next(number for number in cluster.brokers if number != controller)
            for number in (other, controller):
                cluster.restart(number, "is killed (SIGKILL)", cluster.brokers[number].kill)
        finally:
            cluster.close()
    return cluster.steps


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description="What many partitions cost a cluster."
    )
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--idle", type=float, default=30.0)
    parser.add_argument("--session-ms", type=int, default=6000)
    asked = parser.parse_args(arguments)
    steps = measured(asked.brokers, asked.partitions, asked.idle, asked.session_ms)
    numbers = range(1, asked.brokers + 1)
    table = Table(
        "step", "seconds", *(f"CPU of broker {number}" for number in numbers), "of ZooKeeper", title="A cluster"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for step in steps:
        spent = (f"{step.cpu_s[number]:.2f} s" if number in step.cpu_s else "" for number in (*numbers, ZOOKEEPER))
        table.add_row(step.name, f"{step.seconds:.2f} s", *spent)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
