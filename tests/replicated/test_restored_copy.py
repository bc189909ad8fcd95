"""All brokers are killed, and the one that is started first has its folder back from a copy that was made while it ran:
what was acknowledged after the copy is not taken from the others."""

import shutil
from pathlib import Path

import pytest

from harness.patience import stretched, wait_until
from moldau import Admin, Producer
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from tests.replicated.broker_processes import broker_processes

REPLICATED = {"default.replication.factor": "3", "min.insync.replicas": "2", "zookeeper.session.timeout.ms": "6000"}
EACH = 50
TP = TopicPartition("kept", 0)


@pytest.mark.long
@pytest.mark.timeout(stretched(300))
def test_a_copy_of_a_running_broker_takes_nothing_from_the_others(tmp_path: Path) -> None:
    with broker_processes(tmp_path, 3) as brokers:
        for broker in brokers:
            broker.settings.update(REPLICATED)
            broker.start()
        addresses = ",".join(broker.address for broker in brokers)
        with Admin(addresses) as admin:
            admin.create_topic(TP.topic, partitions=1)

        def fill() -> None:
            with Producer(addresses) as producer:
                for number in range(EACH):
                    producer.send(TP.topic, b"%d" % number).result()

        fill()
        first, copy = brokers[0], tmp_path / "copy"
        shutil.copytree(first.data, copy)
        fill()
        for broker in brokers:
            broker.kill()
        shutil.rmtree(first.data)
        copy.rename(first.data)
        for broker in brokers:
            broker.start()

        def end() -> int:
            try:
                with Admin(addresses) as admin:
                    return int(admin.watermarks(TP.topic)[TP][1])
            except KafkaError:
                return -1

        assert wait_until(lambda: end() == 2 * EACH), end()
        fill()
        assert end() == 3 * EACH
