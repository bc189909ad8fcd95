"""What all tests here share: one JVM with Kafka's dump tool, the folders that Kafka wrote, those that we wrote."""

from collections.abc import Iterator

import pytest

from tests.agreement import apache, dumping, leaving
from tests.agreement.standing import InProcess, InVirtualTime
from tests.differential.batches import T0

SECONDS_MAX = 450
"""The first test may have to wait until Maven has brought Kafka's jars."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/agreement/"):
            item.add_marker(pytest.mark.timeout(SECONDS_MAX))


@pytest.fixture(scope="session")
def tool() -> Iterator[dumping.DumpTool]:
    with dumping.running() as running:
        yield running


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> apache.Written:
    """What a Kafka left that its own client had filled."""
    return apache.written(tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="session")
def of_process(tmp_path_factory: pytest.TempPathFactory) -> leaving.Both:
    """What a process of our broker left."""
    folder = tmp_path_factory.mktemp("broker")
    return leaving.leave(InProcess(folder, leaving.SETTINGS, T0), folder)


@pytest.fixture(scope="session", params=["in virtual time", pytest.param("as a process", marks=pytest.mark.long)])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> leaving.Both:
    """What our broker left. In virtual time these are the same bytes each time, and so the tool's verdict is known."""
    if request.param == "as a process":
        found: leaving.Both = request.getfixturevalue("of_process")
        return found
    return leaving.leave(InVirtualTime(leaving.SETTINGS), tmp_path_factory.mktemp("broker"))


@pytest.fixture
def killed(both: leaving.Both) -> leaving.Left:
    """When it was killed."""
    return both.killed


@pytest.fixture
def recovered(both: leaving.Both) -> leaving.Left:
    """When it had recovered from that, with torn tails besides, and was stopped."""
    return both.recovered
