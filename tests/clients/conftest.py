"""The broker under test: ours, one process a class of tests, or the one that `MOLDAU_TEST_BROKER` names."""

import os
from collections.abc import Iterator

import pytest

from harness.brokers import Broker, ForeignBroker
from tests.clients.faces import Face
from tests.clients.scenarios import group, topic

__all__ = ["group", "topic"]


@pytest.fixture(scope="class")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | ForeignBroker]:
    if address := os.environ.get("MOLDAU_TEST_BROKER"):
        yield ForeignBroker(address)
        return
    ours = Broker(tmp_path_factory.mktemp("broker"))
    ours.start()
    yield ours
    ours.stop()


@pytest.fixture(params=["sync", "asyncio"])
def face(request: pytest.FixtureRequest, broker: Broker | ForeignBroker) -> Face:
    """One of the two faces of our own client."""
    return Face(request.param, broker.address)


INSTALLING_SECONDS_MAX = 450
"""The first test of a client may have to wait until package managers have brought it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Time for installing; and somebody else's broker is not ours to restart."""
    for item in items:
        if item.nodeid.startswith("tests/clients/"):
            item.add_marker(pytest.mark.timeout(INSTALLING_SECONDS_MAX))
    if os.environ.get("MOLDAU_TEST_BROKER"):
        left_out = [item for item in items if item.get_closest_marker("restarts")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
