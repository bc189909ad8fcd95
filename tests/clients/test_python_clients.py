"""Python's clients, each pinned version in an environment of its own: C (librdkafka), pure Python, asyncio."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import DRIVERS, Client
from tests.clients.scenarios import Administers, Compresses, Exchanges
from tests.environments import python_with
from tests.versions import AIOKAFKA, CONFLUENT, CONFLUENT_BEFORE, KAFKA_PYTHON, KAFKA_PYTHON_BEFORE, releases

pytestmark = pytest.mark.check


def started(pin: str, driver: str, broker: Broker, folder: Path, group_protocol: str = "") -> Iterator[Client]:
    client = Client([python_with(pin), DRIVERS / driver], broker.address, folder, group_protocol=group_protocol)
    yield client
    client.close()


class TestConfluentKafka(Exchanges, Compresses, Administers):
    @pytest.fixture(params=releases(CONFLUENT, CONFLUENT_BEFORE))
    def client(self, request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(request.param, "confluent.py", broker, tmp_path)


class TestConfluentKafkaOfTheNewerGroupProtocol(Exchanges, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(CONFLUENT, "confluent.py", broker, tmp_path, "consumer")


class TestKafkaPython(Exchanges, Compresses, Administers):
    @pytest.fixture(params=releases(KAFKA_PYTHON, KAFKA_PYTHON_BEFORE))
    def client(self, request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(request.param, "kafka_python.py", broker, tmp_path)


class TestAiokafka(Exchanges, Compresses, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(AIOKAFKA, "aio.py", broker, tmp_path)
