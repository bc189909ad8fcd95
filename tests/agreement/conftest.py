"""What all tests here share: one JVM with Kafka's dump tool, the folders that Kafka wrote, those that we wrote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agreement import apache, dumping, leaving

SECONDS_MAX = 450
"""The first test may have to wait until Maven has brought Kafka's jars."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(SECONDS_MAX))
            item.add_marker(pytest.mark.check)


@pytest.fixture(scope="session")
def tool() -> Iterator[dumping.DumpTool]:
    with dumping.running() as running:
        yield running


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> apache.Written:
    """What a Kafka left that its own client had filled."""
    return apache.write(tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> leaving.Left:
    """What our broker left when it was killed."""
    return leaving.leave_killed(tmp_path_factory.mktemp("broker"))


@pytest.fixture(scope="session")
def recovered(killed: leaving.Left, tmp_path_factory: pytest.TempPathFactory) -> leaving.Left:
    """What it left when it had recovered from that, with torn tails besides, and was stopped."""
    return leaving.leave_recovered(killed, tmp_path_factory.mktemp("broker"))
