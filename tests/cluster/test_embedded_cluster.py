"""`moldau cluster start --embedded`: three broker processes and a file that they share, without Java."""

import os
import signal
from pathlib import Path

import pytest

from harness.local_cluster import is_gone, processes, started
from harness.patience import wait_until
from moldau import Admin, Consumer, Producer
from moldau.cli import main
from moldau.errors import MoldauError
from moldau.testing import Broker


def test_three_brokers_without_zookeeper_replace_a_killed_controller_which_is_started_again(tmp_path: Path) -> None:
    with started(tmp_path, "--embedded", "--set", "zookeeper.session.timeout.ms=600000") as (_, addresses):
        with Admin(",".join(addresses)) as admin:
            described = admin.describe_cluster()
            assert [str(one) for one in described.brokers.values()] == addresses
            admin.create_topic("t", partitions=6)
        with Producer(addresses[1]) as producer:
            for number in range(60):
                producer.send("t", b"%d" % number)
        killed = described.controller_id
        folder = str(tmp_path / "data" / f"broker-{killed}")
        process = processes(tmp_path / "data")[folder]
        os.kill(process, signal.SIGKILL)
        with Admin(addresses[killed % 3]) as admin:
            assert wait_until(lambda: admin.describe_cluster().controller_id not in (-1, killed))
            admin.create_topic("u", partitions=1)
        assert wait_until(lambda: processes(tmp_path / "data").get(folder, process) != process)
        assert wait_until(lambda: leaders(addresses[killed - 1]) == {1, 2, 3}), "it leads again"
        values: list[bytes | None] = []
        with Consumer(addresses[2], group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            assert wait_until(
                lambda: values.extend(one.value for one in consumer.poll(500)) or len(values) == 60  # type: ignore[func-returns-value]
            )
        children = processes(tmp_path / "data")
        assert len(children) == 3
    assert all(is_gone(process) for process in children.values())
    with started(tmp_path, "--embedded") as (_, addresses), Admin(addresses[0]) as admin:
        assert {"t", "u"} <= admin.list_topics().keys()


def test_a_controller_that_is_stopped_is_replaced_and_a_follower_when_it_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, "--embedded", "--set", "zookeeper.session.timeout.ms=2000") as (_, addresses):
        with Admin(",".join(addresses)) as admin:
            stopped = admin.describe_cluster().controller_id
        process = processes(tmp_path / "data")[str(tmp_path / "data" / f"broker-{stopped}")]
        with Admin(addresses[stopped % 3]) as admin:
            os.kill(process, signal.SIGSTOP)
            try:
                assert wait_until(lambda: admin.describe_cluster().controller_id not in (-1, stopped))
                assert wait_until(lambda: stopped not in admin.describe_cluster().brokers)
            finally:
                os.kill(process, signal.SIGCONT)
            assert wait_until(lambda: stopped in admin.describe_cluster().brokers)
            admin.create_topic("t", partitions=6)
        assert wait_until(lambda: leaders(addresses[stopped - 1]) == {1, 2, 3})
        assert "Traceback" not in (tmp_path / "data" / f"broker-{stopped}.log").read_text()


def test_the_metadata_can_be_shown_while_the_brokers_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def shown(path: str, connect: str) -> int:
        capfd.readouterr()
        return main.run(["zookeeper", "show", path, "--connect", connect])

    file = tmp_path / "data" / "cluster.sqlite"
    with started(tmp_path, "--embedded", "--brokers", "1"):
        assert shown("/brokers/ids", f"file:{file}") == 0
        assert capfd.readouterr().out == "/brokers/ids: version 0\n/brokers/ids/1\n"
        assert shown("/missing", f"file:{file}") == 1
        assert f"file:{file} has no node /missing" in capfd.readouterr().err
        assert shown("/", f"file:{file}-other") == 1
        assert f"{file}-other does not exist" in capfd.readouterr().err


def test_what_keeps_it_from_starting_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"

    def said(*arguments: str, code: int = 1) -> str:
        capfd.readouterr()
        given = ["--data-dir", str(data), "--port", "0", "--brokers", "1", *arguments]
        assert main.run(["cluster", "start", *given]) == code
        out, err = capfd.readouterr()
        assert out == ""
        return err.splitlines()[-1]

    (data / "zookeeper").mkdir(parents=True)
    assert f"{data} has a cluster on ZooKeeper: start it without --embedded" in said("--embedded", code=2)
    (data / "zookeeper").rmdir()
    acl = ("--set", "zookeeper.set.acl=true")
    assert "zookeeper.set.acl and zookeeper.ssl.client.enable need a ZooKeeper" in said("--embedded", *acl)
    (data / "cluster.sqlite").write_bytes(b"this is not SQLite" * 100)
    assert f"cannot use the metadata in {data / 'cluster.sqlite'}: file is not a database" in said("--embedded")
    assert not processes(data)


def test_a_broker_that_was_alone_becomes_the_first_of_three(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    folder, file = tmp_path / "data" / "broker-1", tmp_path / "data" / "cluster.sqlite"
    with Broker(data_dir=folder) as alone:
        alone.create_topic("old", partitions=2)
        with Producer(alone.bootstrap_servers) as producer:
            producer.send("old", b"kept")
    assert main.run(["cluster", "adopt", str(folder), "--zookeeper", f"file:{file}"]) == 0
    with started(tmp_path, "--embedded") as (_, addresses):
        with Admin(addresses[2]) as admin:
            admin.create_topic("t", partitions=6)
        assert leaders(addresses[1]) == {1, 2, 3}
        with Consumer(addresses[1], group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["old"])
            values: list[bytes | None] = []
            assert wait_until(lambda: values.extend(one.value for one in consumer.poll(500)) or values)  # type: ignore[func-returns-value]
        assert values == [b"kept"]
    sentence = f"belongs to a broker of the cluster that has its metadata in file:{file}: start it with"
    for number in (1, 2):
        folder = tmp_path / "data" / f"broker-{number}"
        with pytest.raises(MoldauError, match=f"{folder} {sentence}"):
            Broker(data_dir=folder).start()
        capfd.readouterr()
        assert main.run(["log", "repair", str(folder)]) == 1
        assert f"{folder} {sentence}" in capfd.readouterr().err


def leaders(address: str) -> set[int]:
    try:
        with Admin(address) as admin:
            return {part.leader for part in admin.describe_topics(["t"])["t"].partitions.values()}
    except MoldauError:
        return set()
