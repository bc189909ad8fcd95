"""kcat as Debian packages it: librdkafka 2.0 of 2023, an old client in daily use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import Client
from tests.clients.kcat import Kcat
from tests.clients.scenarios import Compresses, Exchanges, numbered, soon
from tests.environments import program

pytestmark = pytest.mark.check


class TestKcat(Exchanges, Compresses):
    @pytest.fixture
    def client(self, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        kcat = Kcat(program("kcat", "kcat"), broker.address, tmp_path)
        yield kcat
        kcat.close()

    def test_a_topic_is_created_by_asking_for_it_and_listed_with_its_offsets(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 3)
        assert soon(lambda: topic in client.topics())
        client.produce(topic, numbered(0, 30))
        assert client.end_offsets(topic) == 30
