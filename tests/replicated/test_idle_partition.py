"""A broker whose session in ZooKeeper ended while its process stood still comes back into the ISR of a partition that
nothing is written to. `MOLDAU_TIER=long` is thirty rounds."""

import os
import signal
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import wait_until
from harness.tiers import sized
from harness.zookeeper import ZooKeeper
from moldau import Admin, Producer
from tests.replicated.on_disk import assert_replicas_are_equal
from tests.zookeeper.three_brokers import three_brokers

ROUNDS = sized(1, 1, 30)
SESSION_S = 6.0
IDLE = "idle"
SETTINGS = {"default.replication.factor": "3", "min.insync.replicas": "2"}


def isr(broker: Broker) -> set[int]:
    with Admin(broker.address) as admin:
        return {*admin.describe_topics([IDLE])[IDLE].partitions[0].isr}


def is_gone(number: int, broker: Broker) -> bool:
    """Whether the session of that broker has ended, for this one, and it is out of sync."""
    with Admin(broker.address) as admin:
        return number not in admin.describe_cluster().brokers and number not in isr(broker)


@pytest.mark.timeout(60 * ROUNDS + 120)
def test_a_broker_whose_session_ended_while_it_stood_still_is_in_sync_again(tmp_path: Path) -> None:
    with (
        ZooKeeper(tmp_path / "zookeeper") as zookeeper,
        three_brokers(tmp_path, f"{zookeeper.connect}/idle", SESSION_S, SETTINGS) as brokers,
    ):
        addresses = ",".join(broker.address for broker in brokers.values())
        with Admin(addresses) as admin:
            admin.create_topic(IDLE, partitions=1)
        with Producer(addresses, acks="all") as producer:
            producer.send(IDLE, "one").result(60)
        for number in range(ROUNDS):
            victim, other = 1 + number % 3, 1 + (number + 1) % 3
            assert wait_until(lambda: isr(brokers[other]) == {1, 2, 3})  # noqa: B023
            os.kill(brokers[victim].pid, signal.SIGSTOP)
            try:
                assert wait_until(lambda: is_gone(victim, brokers[other])), "its session has not ended"  # noqa: B023
            finally:
                os.kill(brokers[victim].pid, signal.SIGCONT)
            assert wait_until(lambda: isr(brokers[other]) == {1, 2, 3}), isr(brokers[other])  # noqa: B023
        with Producer(addresses, acks="all") as producer:
            producer.send(IDLE, "two").result(60)
        for broker in brokers.values():
            broker.stop()
        assert_replicas_are_equal(brokers.values(), IDLE, {0: 2})
