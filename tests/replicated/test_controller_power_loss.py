"""The machine of the controller loses power under transactions, and its broker is started again at once: it must not
lead in the leader epochs that it had before. Each transaction is there as a whole or not at all, and the replicas are
equal; those of a partition that nothing is written to are in sync again too.

`MOLDAU_SEED` repeats what is lost; `MOLDAU_TIER=long` is a hundred rounds.
"""

import collections
import contextlib
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import SECONDS, wait_until
from harness.tiers import LONG, seed_or, sized
from harness.zookeeper import ZooKeeper
from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.errors import MoldauError
from tests.replicated.machine import Machine
from tests.replicated.on_disk import assert_replicas_are_equal
from tests.zookeeper.faults import known_to, started, wait_until_whole
from tests.zookeeper.three_brokers import three_brokers

ROUNDS = sized(2, 2, 100)
SEED = seed_or(33)
SESSION_S = 3.0
TOPIC, IDLE, PARTITIONS, PRODUCERS = "orders", "idle", 3, 4
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
RECORDING = ("tests.replicated.recording_broker",)


class Transactions:
    """A producer that writes one record into each partition in a transaction, again and again, until `stop`."""

    def __init__(self, addresses: str, name: str):
        self.name, self.committed = name, 0
        self._addresses = addresses
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            with contextlib.suppress(MoldauError), Producer(self._addresses, transactional_id=self.name) as producer:
                while not self._is_over.is_set():
                    number += 1
                    with producer.transaction():
                        for partition in range(PARTITIONS):
                            producer.send(TOPIC, f"{self.name}:{number}", partition=partition)
                    self.committed += 1


def wait_until_all_go_on(producers: Sequence[Transactions]) -> None:
    before = [one.committed for one in producers]

    def do_they() -> bool:
        return all(one.committed > was + 5 for one, was in zip(producers, before, strict=True))

    assert wait_until(do_they, 6 * SECONDS), "a producer stands still"


def controller_of(brokers: dict[int, Broker]) -> int:
    found: list[int] = []

    def look() -> bool:
        found[:] = [
            view.controller for broker in brokers.values() if (view := known_to(broker)) and view.controller > 0
        ]
        return bool(found)

    assert wait_until(look), "no controller"
    return found[0]


@pytest.mark.check  # `make test` has this in virtual time: tests/worlds
@pytest.mark.timeout(10_000 if LONG else 600)
def test_a_controller_that_lost_power_writes_nothing_in_its_old_leader_epochs(tmp_path: Path) -> None:
    chance, machines = random.Random(SEED), dict[int, Machine]()

    def put(number: int, broker: Broker) -> None:
        machines[number] = Machine(broker, chance)

    with (
        ZooKeeper(tmp_path / "zookeeper") as zookeeper,
        three_brokers(tmp_path, f"{zookeeper.connect}/power", SESSION_S, SETTINGS, RECORDING, put) as brokers,
    ):
        addresses = ",".join(broker.address for broker in brokers.values())
        with Admin(addresses) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
            admin.create_topic(IDLE, partitions=1)
        with Producer(addresses) as producer:
            producer.send(IDLE, "one")
        producers = [Transactions(addresses, f"teller-{number}") for number in range(PRODUCERS)]
        try:
            for _ in range(ROUNDS):
                wait_until_all_go_on(producers)
                victim = controller_of(brokers)
                machines[victim].lose_power()
                started(brokers[victim])
                wait_until_whole(brokers)
        finally:
            for one in producers:
                one.stop()
        wait_until_whole(brokers)
        seen = collections.Counter[str]()
        parts = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        with Consumer(addresses, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
            consumer.assign(parts)
            ends = consumer.end_offsets(parts)
            while any(consumer.position(tp) < ends[tp] for tp in parts):
                seen.update((record.value or b"").decode() for record in consumer.poll(1000))
        assert {value: count for value, count in seen.items() if count != PARTITIONS} == {}
        assert len(seen) >= sum(one.committed for one in producers) > 0
        with Admin(addresses) as admin:
            whole = {
                topic: {tp.partition: end for tp, (_, end) in admin.watermarks(topic).items()}
                for topic in (TOPIC, IDLE)
            }
        for broker in brokers.values():
            broker.stop()
        for topic, ends_of in whole.items():
            assert_replicas_are_equal(brokers.values(), topic, ends_of)
        for number, broker in brokers.items():
            assert not (traceback := broker.traceback()), f"broker {number}: {traceback}"
        lost = sum(machine.lost_bytes for machine in machines.values())
        print(f"\nseed {SEED}: {len(seen):,} transactions, {lost:,} bytes of logs were lost on disks")
