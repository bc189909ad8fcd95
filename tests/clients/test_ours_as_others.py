"""Our own client, both faces, in the scenarios that all other clients pass."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import DRIVERS, Client
from tests.clients.scenarios import Administers, Compresses, Exchanges


def started(face: str, broker: Broker, folder: Path, group_protocol: str = "") -> Iterator[Client]:
    client = Client([sys.executable, DRIVERS / "ours.py", face], broker.address, folder, group_protocol=group_protocol)
    yield client
    client.close()


CHECK = pytest.mark.check
"""`make test` has each face once, with one of the protocols."""


class TestOurClient(Exchanges, Compresses, Administers):
    @pytest.fixture(params=["sync", pytest.param("aio", marks=CHECK)])
    def client(self, request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(request.param, broker, tmp_path)


class TestOurClientOfTheNewerGroupProtocol(Exchanges, Administers):
    @pytest.fixture(params=[pytest.param("sync", marks=CHECK), "aio"])
    def client(self, request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[Client]:
        yield from started(request.param, broker, tmp_path, "consumer")
