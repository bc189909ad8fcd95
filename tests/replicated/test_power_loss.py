"""Machines of a cluster lose power while a producer sends: each broker is a process whose files are cut as a power loss
cuts them, and which finds another boot id. Nothing acknowledged is lost if it was any one machine, or the last one in
the ISR; if all lose power, nothing of a topic that flushes every record.

`MOLDAU_SEED` repeats the order of the faults; `-s` shows how much was lost on disks.
"""

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import SECONDS, wait_until
from harness.tiers import LONG, seed_or, sized
from harness.zookeeper import ZooKeeper
from moldau.client.administration.admin import Admin
from tests.replicated.judging import assert_kept
from tests.replicated.machine import Machine
from tests.replicated.senders import Probe, Sender
from tests.zookeeper.faults import known_to, started, wait_until_whole
from tests.zookeeper.three_brokers import three_brokers

TIMES = sized(1, 1, 60)
SEED = seed_or(23)
SESSION_S = 3.0
TOPIC, PARTITIONS, RATE = "kept", 3, 500
SETTINGS = {"default.replication.factor": "3", "min.insync.replicas": "2", "log.segment.bytes": str(1 << 20)}
RECORDING = ("tests.replicated.recording_broker",)


class Run:
    """Three brokers on machines of their own, and a producer."""

    def __init__(self, brokers: dict[int, Broker], machines: dict[int, Machine], probe: Probe):
        self.chance = random.Random(SEED)
        self.machines = machines
        self._brokers = brokers
        self._probe = probe

    def any(self) -> int:
        return self.chance.choice(sorted(self.machines))

    def wait(self) -> None:
        """For anything that goes on meanwhile."""
        time.sleep(2 * self.chance.random())

    def start(self, *numbers: int) -> None:
        for number in numbers:
            self.wait()
            started(self._brokers[number])

    def wait_until_it_goes_on(self) -> None:
        wait_until_whole(self._brokers)
        self._probe.wait()

    def wait_until_out_of_sync(self, number: int) -> None:
        """The ISR of every partition is without this broker."""
        others = [broker for other, broker in self._brokers.items() if other != number and broker.runs]

        def is_out() -> bool:
            views = [view for broker in others if (view := known_to(broker)) is not None]
            return any(all(number not in isr for _, _, _, isr in view.topics[TOPIC][1]) for view in views)

        assert wait_until(is_out, 4 * SECONDS)


@contextlib.contextmanager
def running(folder: Path, flush_messages: int | None = None) -> Iterator[Run]:
    """At the end, everything that was acknowledged must be there, though disks have lost some of it, unless each record
    is flushed."""
    with (
        ZooKeeper(folder / "zookeeper") as zookeeper,
        machines_of(folder, zookeeper) as (brokers, machines),
    ):
        addresses = ",".join(broker.address for broker in brokers.values())
        configs = None if flush_messages is None else {"flush.messages": flush_messages}
        with Admin(addresses) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS, configs=configs)
        probe = Probe(addresses, TOPIC, PARTITIONS)
        with contextlib.closing(probe), Sender("ours", addresses, TOPIC, "ours", RATE, folder) as sender:
            run = Run(brokers, machines, probe)
            run.wait_until_it_goes_on()
            yield run
            assert sender.progress(), sender.said()
            places = {sender.name: sender.finish(0), probe.name: probe.places}
        wait_until_whole(brokers)
        lost = sum(machine.lost_bytes for machine in machines.values())
        assert_kept(brokers, TOPIC, places)
        print(f"\nseed {SEED}: {sum(map(len, places.values())):,} records, {lost:,} bytes of logs were lost on disks")
        assert lost > 0 or flush_messages == 1, "the power losses took nothing"


@contextlib.contextmanager
def machines_of(folder: Path, zookeeper: ZooKeeper) -> Iterator[tuple[dict[int, Broker], dict[int, Machine]]]:
    chance, machines = random.Random(SEED), dict[int, Machine]()

    def put(number: int, broker: Broker) -> None:
        machines[number] = Machine(broker, chance)

    connect = f"{zookeeper.connect}/power"
    with three_brokers(folder, connect, SESSION_S, SETTINGS, RECORDING, put) as brokers:
        yield brokers, machines


@pytest.mark.timeout(6000 if LONG else 600)
def test_a_power_loss_of_any_one_machine_loses_nothing_acknowledged(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        for _ in range(2 * TIMES):
            victim = run.any()
            run.wait()
            run.machines[victim].lose_power()
            run.start(victim)
            run.wait_until_it_goes_on()


@pytest.mark.check  # `make test` has this in virtual time: tests/worlds
@pytest.mark.timeout(6000 if LONG else 600)
def test_a_power_loss_of_the_last_one_in_sync_loses_nothing_acknowledged(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        for _ in range(TIMES):
            first, second, last = run.chance.sample(sorted(run.machines), 3)
            run.machines[first].kill()
            run.wait_until_out_of_sync(first)
            run.machines[second].kill()
            run.wait_until_out_of_sync(second)
            run.machines[last].lose_power()
            run.start(last, *run.chance.sample([first, second], 2))
            run.wait_until_it_goes_on()


@pytest.mark.check  # as above
@pytest.mark.timeout(6000 if LONG else 600)
def test_a_power_loss_of_all_machines_loses_nothing_of_a_topic_that_flushes_every_record(tmp_path: Path) -> None:
    with running(tmp_path, flush_messages=1) as run:
        for _ in range(TIMES):
            run.wait()
            for machine in run.machines.values():
                machine.lose_power()
            run.start(*run.chance.sample(sorted(run.machines), 3))
            run.wait_until_it_goes_on()
