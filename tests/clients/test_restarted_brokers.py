"""Real clients produce and consume on three brokers, each topic on all of them, while each is restarted in turn.

Three broker processes and a real ZooKeeper; every client has a topic of six partitions and a group of its own, and all
clients work at once through all restarts. While a broker is away the other two lead what it led, so every client goes
on in every partition. Each client has its own test, of what it went through.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched, wait_until
from harness.replicated_brokers import ReplicatedBrokers
from harness.tiers import LONG
from harness.zookeeper import ZooKeeper
from moldau import Admin, Consumer, OffsetAndMetadata, TopicPartition
from moldau.errors import KafkaError
from tests import versions
from tests.clients.client import without_ours
from tests.clients.test_java_client import QUICK_START
from tests.environments import go_program, java_class, kafka_jars, python_with

pytestmark = [pytest.mark.check, pytest.mark.restarts]

PROGRAMS = Path(__file__).parent / "restarts"
PARTITIONS = 6
SETTINGS = {"zookeeper.session.timeout.ms": "6000", "offsets.topic.num.partitions": str(PARTITIONS)}
SECONDS = 90.0
"""How long clients may take to go on: some wait 30 s for an answer of a broker that is gone."""


class Command(NamedTuple):
    words: list[str | Path]
    group_protocol: str = "classic"
    environment: Mapping[str, str] = {}


def python(pin: str, program: str, group_protocol: str = "classic") -> Command:
    return Command([python_with(pin), PROGRAMS / program], group_protocol)


def java(group_protocol: str) -> Command:
    class_path = java_class(PROGRAMS / "Lasting.java", kafka_jars(versions.KAFKA))
    return Command(["java", "-Xmx96m", *QUICK_START, "-cp", class_path, "Lasting"], group_protocol)


OLDER: Mapping[str, Callable[[], Command]] = {
    "confluent-classic": lambda: python(versions.CONFLUENT_BEFORE, "confluent.py"),
}
CLIENTS: Mapping[str, Callable[[], Command]] = {
    "java-classic": lambda: java("classic"),
    "java-consumer": lambda: java("consumer"),
    "confluent-consumer": lambda: python(versions.CONFLUENT, "confluent.py", "consumer"),
    "kafka-python": lambda: python(versions.KAFKA_PYTHON, "kafka_python.py"),
    "aiokafka": lambda: python(versions.AIOKAFKA, "aio.py"),
    "franz-go": lambda: Command([go_program(PROGRAMS / "franz")]),
    "moldau": lambda: Command([sys.executable, PROGRAMS / "ours.py"], "consumer", {"PYTHONPATH": str(SOURCE)}),
    **(OLDER if LONG else {}),
}


def group_of(name: str) -> str:
    return f"{name}-group"


class Lasting:
    """A program of the folder `restarts`: the numbers acknowledged and read so far, and what it has given up."""

    def __init__(self, name: str, command: Command, bootstrap: str, folder: Path):
        self.name = name
        self.acked: set[int] = set()
        self.took: set[int] = set()
        self.failed: list[str] = []
        self.stuck = ""
        """After which restart it did not go on; empty if it always did."""
        self._output, self._errors = folder / f"{name}.out", folder / f"{name}.err"
        self._read = 0
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [*command.words, bootstrap, name, group_of(name), command.group_protocol],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                env={**without_ours(os.environ), **command.environment},
            )

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def last(self) -> int:
        """The highest number acknowledged so far."""
        self.look()
        return max(self.acked, default=-1)

    def look(self) -> None:
        """Read what it has printed since; a line that is cut off waits for its end."""
        with self._output.open("rb") as output:
            output.seek(self._read)
            lines, _, _ = output.read().rpartition(b"\n")
        self._read += len(lines) + bool(lines)
        for line in lines.decode().splitlines():
            what, number, *_ = line.split()
            if what == "failed":
                self.failed.append(line)
            else:
                (self.acked if what == "acked" else self.took).add(int(number))

    def read(self, after: int) -> set[int]:
        """The partitions in which numbers above `after` have been acknowledged and read."""
        self.look()
        return {number % PARTITIONS for number in self.acked & self.took if number > after}

    def said(self) -> str:
        return f"{self.name}: {len(self.acked)} acknowledged, {len(self.took)} read, {self._errors.read_text()[-2000:]}"

    def finish(self) -> None:
        """Close its input, so that it ends when everything acknowledged is read."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> int:
        """Wait until it ends. Returns the exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(stretched(SECONDS))
        self.kill()
        self.look()
        return self._process.returncode

    def kill(self) -> None:
        with self._process:
            self._process.kill()


class Outcome(NamedTuple):
    """What is left of one client when all restarts are over."""

    client: Lasting
    code: int
    log: Mapping[int, list[int]]
    """By partition, the numbers in its log."""
    fell: Sequence[str]
    """The group's committed offsets that were lower than before."""


class Committed:
    """Reads the committed offsets of all groups again and again, and notes every one that falls."""

    def __init__(self, bootstrap: str, groups: Sequence[str]):
        self.readings = 0
        self.fell: dict[str, list[str]] = {group: [] for group in groups}
        self._highest: dict[tuple[str, TopicPartition], int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(bootstrap,))
        self._thread.start()

    def _run(self, bootstrap: str) -> None:
        with Admin(bootstrap) as admin:
            while not self._over.wait(0.2):
                for group in self.fell:
                    with contextlib.suppress(KafkaError):
                        self._look(group, admin.group_offsets(group))

    def _look(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.readings += 1
        known = {tp: highest for (whose, tp), highest in self._highest.items() if whose == group}
        for tp, highest in known.items():
            now = offsets[tp].offset if tp in offsets else -1
            if now < highest:
                self.fell[group].append(f"{tp} from {highest} to {now}")
        self._highest |= {(group, tp): max(one.offset, known.get(tp, -1)) for tp, one in offsets.items()}

    def end(self) -> None:
        self._over.set()
        self._thread.join()


class Restarts:
    """Restarts each broker, and waits after each step until all clients go on."""

    def __init__(self, cluster: ReplicatedBrokers, clients: list[Lasting]):
        self.cluster = cluster
        self.clients = clients

    def all_of_them(self) -> None:
        """In `make check` each once, in `make long` each in both ways."""
        for number in self.cluster.brokers:
            if LONG or number == 1:
                self.restart(number, Broker.stop, "SIGTERM", until_missed=True)
            if LONG or number > 1:
                self.restart(number, Broker.kill, "SIGKILL", until_missed=number == 3)

    def restart(self, number: int, end: Callable[[Broker], None], how: str, until_missed: bool) -> None:
        """`until_missed`: not before other brokers lead what it led and clients go on with them."""
        self.cluster.wait_until_whole()
        end(self.cluster.brokers[number])
        if until_missed:
            self.cluster.wait_until_replaced(number)
            self.wait_for_all(f"while broker {number} was away ({how})")
        self.cluster.brokers[number].start()
        self.wait_for_all(f"after broker {number} was back ({how})")

    def wait_for_all(self, when: str) -> None:
        """Wait until each client has produced and read in every partition from now on."""
        marks = {client.name: client.last for client in self.clients}
        self.wait(when, lambda client: len(client.read(marks[client.name])) == PARTITIONS)

    def wait(self, when: str, goes_on: Callable[[Lasting], bool]) -> None:
        """Note who has not gone on at the deadline, and no longer wait for them from then on."""
        waiting = [client for client in self.clients if not client.stuck]

        def all_go_on() -> bool:
            waiting[:] = [client for client in waiting if not goes_on(client)]
            return not any(client.runs for client in waiting)

        wait_until(all_go_on, SECONDS, pause_s=0.1)
        for client in waiting:
            client.stuck = f"{when}, {client.said()}"


def logged(address: str, topic: str) -> dict[int, list[int]]:
    """By partition, all numbers in the topic's log."""
    found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < end for place, end in ends.items()):
            for record in consumer.poll(200):
                found[record.partition].append(int(record.value or b""))
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    """All clients, through all restarts."""
    folder = tmp_path_factory.mktemp("restarts")
    commands = {name: command() for name, command in CLIENTS.items()}
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeper(folder / "zookeeper"))
        cluster = ReplicatedBrokers(folder, SETTINGS, zookeeper.connect)
        stack.callback(cluster.kill)
        cluster.start()
        bootstrap = cluster.address
        with Admin(bootstrap) as admin:
            for name in commands:
                admin.create_topic(name, partitions=PARTITIONS)
        clients = [Lasting(name, command, bootstrap, folder) for name, command in commands.items()]
        for client in clients:
            stack.callback(client.kill)
        committed = Committed(bootstrap, [group_of(name) for name in commands])
        stack.callback(committed.end)
        restarts = Restarts(cluster, clients)
        restarts.wait_for_all("at the start")
        restarts.all_of_them()
        for client in clients:
            client.finish()
        codes = {client.name: client.end() for client in clients}
        committed.end()
        assert committed.readings
        fell = committed.fell
        yield {
            one.name: Outcome(one, codes[one.name], logged(bootstrap, one.name), fell[group_of(one.name)])
            for one in clients
        }
        cluster.stop()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_goes_on_through_restarts_of_every_broker_and_loses_and_doubles_nothing(
    outcomes: dict[str, Outcome], name: str
) -> None:
    client, code, log, fell = outcomes[name]
    assert not client.stuck, f"it did not go on {client.stuck}"
    assert not client.failed, client.said()
    assert code == 0, client.said()
    assert client.acked <= client.took, f"not read: {sorted(client.acked - client.took)}"
    assert not fell, f"committed offsets fell: {fell[:5]}"
    for partition, numbers in log.items():
        assert set(numbers) == {number for number in client.acked if number % PARTITIONS == partition}
        assert numbers == sorted(set(numbers)), "each once, in the order it was sent"
