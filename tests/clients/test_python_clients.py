"""Python's clients, each pinned version in an environment of its own: C (librdkafka), pure Python, asyncio."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import DRIVERS, Client
from tests.clients.scenarios import Administers, Compresses, Exchanges
from tests.environments import python_with

CODECS_OF_KAFKA_PYTHON = "crc32c,lz4,snappy,zstd"


def started(pin: str, driver: str, broker: Broker, folder: Path, group_protocol: str = "") -> Iterator[Client]:
    client = Client([python_with(pin), DRIVERS / driver], broker.address, folder, group_protocol=group_protocol)
    yield client
    client.close()


class TestConfluentKafka(Exchanges, Compresses, Administers):
    @pytest.fixture(params=["2.8.2", "2.16.1"])
    def client(self, request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(f"confluent-kafka=={request.param}", "confluent.py", broker, tmp_path)


class TestConfluentKafkaOfTheNewerGroupProtocol(Exchanges, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started("confluent-kafka==2.16.1", "confluent.py", broker, tmp_path, "consumer")


class TestKafkaPython(Exchanges, Compresses, Administers):
    @pytest.fixture(params=["2.3.3", "3.0.12"])
    def client(self, request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        pin = f"kafka-python[{CODECS_OF_KAFKA_PYTHON}]=={request.param}"
        yield from started(pin, "kafka_python.py", broker, tmp_path)


class TestAiokafka(Exchanges, Compresses, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started("aiokafka[lz4,snappy,zstd]==0.14.0", "aio.py", broker, tmp_path)
