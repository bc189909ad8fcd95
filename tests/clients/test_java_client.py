"""Apache Kafka's Java client, the reference of all clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import DRIVERS, Client
from tests.clients.scenarios import Administers, Compresses, Exchanges
from tests.environments import java_class, kafka_jars

pytestmark = pytest.mark.check

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Dfile.encoding=UTF-8")


class TestJavaClient(Exchanges, Compresses, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(broker, tmp_path, "classic")


class TestJavaClientOfTheNewerGroupProtocol(Exchanges, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(broker, tmp_path, "consumer")


def started(broker: Broker, folder: Path, group_protocol: str) -> Iterator[Client]:
    class_path = java_class(DRIVERS / "Driver.java", kafka_jars())
    command = ["java", *QUICK_START, "-cp", class_path, "Driver"]
    client = Client(command, broker.address, folder, group_protocol=group_protocol)
    yield client
    client.close()
