"""`moldau cluster adopt` into a file that brokers of one machine share; into ZooKeeper: `tests/zookeeper`."""

from pathlib import Path

import pytest

from harness.brokers import Broker, NotReady
from moldau import Admin
from moldau.cli.main import run


def test_a_broker_alone_goes_on_as_one_of_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connect = f"file:{tmp_path / 'metadata'}"
    (tmp_path / "broker").mkdir()
    alone = Broker(tmp_path / "broker")
    member = Broker(tmp_path / "broker", {"broker.id": "1", "zookeeper.connect": connect})
    alone.start()
    with Admin(alone.address) as admin:
        admin.create_topic("t", partitions=2)
    alone.stop()
    adopt = ["cluster", "adopt", str(alone.data), "--zookeeper", connect]
    with pytest.raises(NotReady, match=f"`moldau cluster adopt {alone.data} --zookeeper {connect}`"):
        member.start()
    assert run([*adopt[:3], "--zookeeper", "file:"]) == 1
    assert "is not of the form file:PATH" in capsys.readouterr().err
    assert run(adopt) == 0
    output = capsys.readouterr()
    assert "broker 1 with 1 topic, 2 partitions\n" in output.out
    assert f"--set broker.id=1 --set zookeeper.connect={connect}\n" in output.err
    assert run(adopt) == 0
    member.start()
    with Admin(member.address) as admin:
        assert list(admin.list_topics()) == ["t"]
    member.stop()


def test_a_folder_without_metadata_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, sentence in ((tmp_path, "is in none of these folders"), (tmp_path / "none", "No such file")):
        assert run(["cluster", "adopt", str(folder), "--zookeeper", f"file:{tmp_path / 'metadata'}"]) == 1
        assert sentence in capsys.readouterr().err
