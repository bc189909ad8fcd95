"""`moldau produce` and `moldau consume` with `--zookeeper`, against a broker that is registered in a file."""

from collections.abc import Iterator

import pytest

from harness.brokers import Broker
from tests.cli.conftest import Moldau


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("broker")
    connect = f"file:{folder / 'metadata'}"
    broker = Broker(folder, {"broker.id": "1", "zookeeper.connect": connect, "num.partitions": "2"})
    broker.start()
    yield connect
    broker.stop()


def test_records_are_written_and_read_by_a_group_in_the_registry(offline: Moldau, connect: str) -> None:
    sent = offline("produce", "lines", "--zookeeper", connect, "--json", stdin=b"one\ntwo\nthree\n")
    assert sent.json == {"topic": "lines", "delivered": 3, "failed": 0}
    alone = offline("consume", "lines", "--zookeeper", connect, "--from-beginning", "--max-messages", "3")
    assert sorted(alone.lines) == ["one", "three", "two"]
    grouped = ("consume", "lines", "--zookeeper", connect, "--group", "g", "--from-beginning", "--max-messages")
    assert len(offline(*grouped, "2").lines) == 2
    assert len(offline(*grouped, "1").lines) == 1
    shown = [offline("zookeeper", "show", f"/consumers/g/offsets/lines/{n}", "--connect", connect) for n in (0, 1)]
    assert sum(int(one.lines[1]) for one in shown if one.code == 0) == 3


def test_a_zookeeper_that_cannot_be_is_a_sentence(offline: Moldau, tmp_path: str) -> None:
    assert "is not of the form HOST:PORT" in offline("consume", "a", "--zookeeper", "zk:x").error
    assert "does not exist" in offline("produce", "a", "--zookeeper", f"file:{tmp_path}/none", stdin=b"x\n").error
