"""librdkafka reads from the replica in its rack (KIP-392), of three broker processes; without one, from the leader."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.patience import stretched, wait_until
from harness.replicated_brokers import ReplicatedBrokers
from moldau import Admin, Producer
from tests.clients.client import DRIVERS
from tests.environments import python_with
from tests.versions import CONFLUENT

pytestmark = pytest.mark.check

TOPIC, COUNT = "near", 100
BY_RACK = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def test_librdkafka_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    python = python_with(CONFLUENT)
    cluster = ReplicatedBrokers(tmp_path, BY_RACK)
    for number, broker in cluster.brokers.items():
        broker.settings["broker.rack"] = f"rack-{number}"

    def read(rack: str) -> tuple[list[str], int]:
        command = [python, DRIVERS / "near.py", cluster.address, TOPIC, rack, str(COUNT)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=stretched(90))
        found = json.loads(done.stdout)
        return found["values"], found["broker"]

    try:
        cluster.start()
        with Admin(cluster.address) as admin:
            admin.create_topic(TOPIC, assignment={0: [1, 2, 3]})
            assert wait_until(lambda: admin.describe_topics([TOPIC])[TOPIC].partitions[0].leader == 1)
        cluster.wait_until_whole()
        with Producer(cluster.address, acks="all") as producer:
            for number in range(COUNT):
                producer.send(TOPIC, b"%d" % number, partition=0)
        sent = [str(number) for number in range(COUNT)]
        assert read("rack-3") == (sent, 3)
        assert read("rack-1") == (sent, 1)
        assert read("elsewhere") == (sent, 1)
        cluster.stop()
    finally:
        cluster.kill()
