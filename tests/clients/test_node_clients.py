"""Node's clients: KafkaJS, which speaks old versions only, and @platformatic/kafka, which speaks new ones only."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import DRIVERS, Client
from tests.clients.scenarios import Administers, Exchanges
from tests.environments import node_with
from tests.versions import KAFKAJS, PLATFORMATIC

pytestmark = pytest.mark.check


def started(pin: str, driver: str, broker: Broker, folder: Path) -> Iterator[Client]:
    node, modules = node_with(pin)
    client = Client([node, DRIVERS / driver], broker.address, folder, {"NODE_PATH": str(modules)})
    yield client
    client.close()


class TestKafkaJS(Exchanges, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(KAFKAJS, "kafkajs.mjs", broker, tmp_path)


class TestPlatformaticKafka(Exchanges, Administers):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(PLATFORMATIC, "platformatic.mjs", broker, tmp_path)
