"""One ZooKeeper, and an ensemble of three, for the tests of this folder."""

from collections.abc import Iterator

import pytest

from harness.zookeeper import ZooKeeper


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with ZooKeeper(tmp_path_factory.mktemp("single") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with ZooKeeper(tmp_path_factory.mktemp("three") / "data", 3) as started:
        yield started
