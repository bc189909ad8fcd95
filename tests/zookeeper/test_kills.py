"""The controller, other brokers and ZooKeeper's leader are killed, and stopped for longer than a session lasts, while
two clients create, change and delete topics: every answer holds afterwards, and nothing is half done. The same where
the brokers share a file instead of ZooKeeper.

`MOLDAU_SEED` repeats the order of the faults.
"""

import asyncio
import random
import re
import statistics
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import SECONDS, Deadline, stretched, wait_until
from harness.tiers import LONG, seed_or, sized
from harness.zookeeper import ZooKeeper
from moldau.errors import KafkaError
from tests.zookeeper.asking import Topics, settings_of, view_of
from tests.zookeeper.changing_topics import SETTING, Client, TopicState
from tests.zookeeper.faults import BROKER, CONTROLLER, KILL, STOP, ZOOKEEPER, Faults, Kind
from tests.zookeeper.three_brokers import three_brokers
from tests.zookeeper.whole_tree import read_tree, topics_in, wrong_in

FAULTS = sized(6, 6, 100)
"""At least one of each kind."""
SEED = seed_or(5)
pytestmark = pytest.mark.check  # `make test` has this in virtual time: tests/worlds
SESSION_S = 3.0
IN_STEPS, STEPS_S = 0.5, 0.2
"""The share of the controller's faults that come in the middle of a change of several steps, and how far in it."""
FOLDER = re.compile(r"[a-zA-Z0-9._-]+-[0-9]+")


class Changing:
    """Two clients in a thread of their own, from now on to `end`."""

    def __init__(self, addresses: Mapping[int, str]):
        self.clients = [Client(name, addresses, random.Random(f"{name}{SEED}")) for name in ("a", "b")]
        self.failure: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def begin_wide(self) -> None:
        """Returns when a change that takes several steps has begun."""
        client = self.clients[0]
        client.wanted.set()
        assert wait_until(lambda: client.is_wide or self.failure, SECONDS, 0.002)

    def before(self, chance: random.Random, what: str) -> None:
        """Some faults of the controller come in the middle of a change that takes several steps."""
        if what == CONTROLLER and chance.random() < IN_STEPS:
            self.begin_wide()
            time.sleep(STEPS_S * chance.random())

    def end(self) -> None:
        """Raises what a client has raised."""
        self._over.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        async def together() -> None:
            await asyncio.gather(*(client.run(self._over) for client in self.clients))

        try:
            asyncio.run(together())
        except BaseException as failure:
            self.failure = failure


@pytest.mark.timeout(6000 if LONG else 1200)
def test_every_answer_holds_and_nothing_is_half_done_whatever_is_killed_or_stopped(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path / "zookeeper", 3) as zookeeper:
        play(tmp_path, f"{zookeeper.connect}/kills", zookeeper)


@pytest.mark.timeout(6000 if LONG else 1200)
def test_the_same_holds_of_brokers_that_share_a_file(tmp_path: Path) -> None:
    play(tmp_path, f"file:{tmp_path / 'cluster.sqlite'}", None)


def play(folder: Path, connect: str, zookeeper: ZooKeeper | None) -> None:
    with three_brokers(folder, connect, SESSION_S) as brokers:
        addresses = {number: broker.address for number, broker in brokers.items()}
        changing, chance = Changing(addresses), random.Random(SEED)
        probe = Client("probe", addresses, chance)
        before = partial(changing.before, chance)
        faults = Faults(brokers, zookeeper, SESSION_S, chance, partial(decide_and_create, probe), before)
        try:
            for kind in kinds(chance, zookeeper is not None):
                faults.next(kind)
                assert changing.failure is None, changing.failure
        finally:
            changing.end()
        faults.wait_until_whole()
        clients = [*changing.clients, probe]
        assert wait_until(lambda: not problems(addresses, connect), 2 * SECONDS), problems(addresses, connect)
        topics = view_of(addresses[1]).topics
        check_answers(clients, topics, addresses)
        for number, broker in brokers.items():
            own = assigned(topics, number)
            assert wait_until(lambda: on_disk(broker) == own), (number, sorted(on_disk(broker) ^ own))  # noqa: B023
            broker.stop()
    report(faults, clients)
    if LONG:  # a time of this machine; in virtual time: tests/worlds/test_clusters.py
        for kind, took in faults.seconds.items():
            assert CONTROLLER not in kind or max(took) <= stretched(SESSION_S + 1), kind


def kinds(chance: random.Random, with_zookeeper: bool) -> list[Kind]:
    """One fault of each kind, then any."""
    every = [(how, what) for what in (CONTROLLER, BROKER, ZOOKEEPER) for how in (KILL, STOP)]
    every = [kind for kind in every if with_zookeeper or kind[1] != ZOOKEEPER]
    return [*every, *chance.choices(every, k=FAULTS)][:FAULTS]


def decide_and_create(client: Client, broker: int) -> float:
    """Ask this broker until a controller decides, and until a topic is created, which may take longer: it waits until
    brokers that are making 1,000 partitions know it. Returns when a controller decided."""

    async def decided() -> float:
        deadline = Deadline(4 * SECONDS)
        try:
            while not await client.is_decided(broker):
                assert not deadline.passed, f"broker {broker} finds no controller"
            decided_s = time.monotonic()
            while not await client.create(broker):
                assert not deadline.passed, f"broker {broker} gets no answer: {client.calls[-5:]}"
            return decided_s
        finally:
            client.close()

    return asyncio.run(decided())


def problems(addresses: Mapping[int, str], connect: str) -> list[str]:
    """What is wrong while nothing changes any more: in ZooKeeper's tree, and in what the brokers know of it."""
    tree = read_tree(connect)
    found = wrong_in(tree)
    if found:
        return found
    topics = topics_in(tree)
    try:
        views = {number: view_of(address) for number, address in addresses.items()}
    except KafkaError as error:
        return [str(error)]
    found += [f"broker {number} knows {view.brokers}" for number, view in views.items() if len(view.brokers) < 3]
    for number, view in views.items():
        for name in sorted(topics.keys() | view.topics.keys()):
            if topics.get(name) != view.topics.get(name):
                found.append(f"{name} is {topics.get(name)}, for broker {number} {view.topics.get(name)}")
    led = {part[0] for _, parts in topics.values() for part in parts}
    return [*found, *([] if led <= {1, 2, 3} else [f"leaders are {led}"])]


def check_answers(clients: list[Client], topics: Topics, addresses: Mapping[int, str]) -> None:
    """Each topic is as a client was answered, or as it may be; each broker knows the same settings."""
    known = {name: states for client in clients for name, states in client.topics.items()}
    assert topics.keys() <= known.keys()
    settings = {number: settings_of(address, topics, SETTING) for number, address in addresses.items()}
    assert settings[1] == settings[2] == settings[3]
    found = {name: TopicState(len(parts), int(settings[1][name] or 0)) for name, (_, parts) in topics.items()}
    wrong = {name: (found.get(name), states) for name, states in known.items() if found.get(name) not in states}
    assert not wrong, {name: (*how, calls_of(clients, name)) for name, how in wrong.items()}


def calls_of(clients: list[Client], topic: str) -> list[object]:
    return [call for client in clients for call in client.calls if call.topic == topic]


def on_disk(broker: Broker) -> set[str]:
    """The partitions in its log folder."""
    return {path.name for path in broker.data.iterdir() if path.is_dir() and FOLDER.fullmatch(path.name)}


def assigned(topics: Topics, number: int) -> set[str]:
    """The partitions that a broker has a replica of."""
    return {
        f"{name}-{partition}"
        for name, (_, parts) in topics.items()
        for partition, (_, _, replicas, _) in enumerate(parts)
        if number in replicas
    }


def report(faults: Faults, clients: list[Client]) -> None:
    calls = [call for client in clients for call in client.calls]
    unknown = sum(call.answer is None for call in calls)
    print(f"\nseed {SEED}: {FAULTS} faults, {len(calls):,} calls, {unknown} without an answer; no controller for (s)")
    for kind, seconds in faults.seconds.items():
        took = sorted(seconds)
        p99 = took[round(0.99 * (len(took) - 1))]
        print(f"{' '.join(kind):<24}{len(took):>4}  p50 {statistics.median(took):.2f}  p99 {p99:.2f}")
