"""Apache Kafka's Java client, the reference of all clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.apache_kafka import TEMPORARY
from harness.brokers import Broker
from harness.quick_jvm import QUICK_JVM
from tests.clients.client import DRIVERS, Client
from tests.clients.scenarios import Administers, Compresses, Exchanges
from tests.environments import java_class, kafka_jars
from tests.versions import KAFKA, KAFKA_BEFORE, releases

pytestmark = pytest.mark.check

QUICK_START = (TEMPORARY, *QUICK_JVM, "-Xshare:auto", "-Dfile.encoding=UTF-8")


@pytest.fixture(scope="class", params=releases(KAFKA, KAFKA_BEFORE))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestJavaClient(Exchanges, Compresses, Administers):
    @pytest.fixture(scope="class")
    @classmethod
    def client(cls, version: str, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
        yield from started(version, broker, tmp_path_factory.mktemp("java"), "classic")


class TestJavaClientOfTheNewerGroupProtocol(Exchanges, Administers):
    @pytest.fixture(scope="class")
    @classmethod
    def client(cls, version: str, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
        yield from started(version, broker, tmp_path_factory.mktemp("java"), "consumer")


def started(version: str, broker: Broker, folder: Path, group_protocol: str) -> Iterator[Client]:
    """One JVM for all scenarios."""
    class_path = java_class(DRIVERS / "Driver.java", kafka_jars(version))
    command = ["java", *QUICK_START, "-cp", class_path, "Driver"]
    client = Client(command, broker.address, folder, group_protocol=group_protocol)
    yield client
    client.close()
