"""`moldau zookeeper start`: one server, three of which the leader is killed, and what keeps it from starting."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from harness.listening import free_port
from harness.local_cluster import is_gone
from harness.patience import wait_until
from harness.zookeeper import ZooKeeper, mode
from moldau.cli import main
from moldau.errors import ConfigError
from moldau.zookeeper.ensemble import Ensemble
from moldau.zookeeper.java import find_java
from moldau.zookeeper.server import ServerAddress


def test_one_server_says_where_it_listens_and_stops_when_told(tmp_path: Path) -> None:
    port = free_port()
    with ZooKeeper(tmp_path / "data", port=port) as zookeeper:
        assert zookeeper.connect == f"localhost:{port}"
        assert mode(zookeeper.connect) == "standalone"
        [java] = zookeeper.servers().values()
        assert main.run(["zookeeper", "start", "--data-dir", str(tmp_path / "data"), "--port", "0"]) == 1
        assert main.run(["zookeeper", "start", "--data-dir", str(tmp_path / "other"), "--port", str(port)]) == 1
        assert zookeeper.stop() == 0
        assert is_gone(java)


def test_what_keeps_it_from_starting_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str, code: int = 1) -> str:
        capfd.readouterr()
        assert main.run(["zookeeper", "start", "--data-dir", str(tmp_path / "data"), *arguments]) == code
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: "), err
        assert err.count("\n") == 1, err
        return err

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "cannot listen on localhost" in said("--port", str(taken.getsockname()[1]))
    (tmp_path / "data" / "server-1").mkdir(parents=True)
    assert "has an ensemble of 1: start it with --ensemble 1" in said("--port", "0", "--ensemble", "3", code=2)
    assert "has ended: Error: Could not find or load main class" in said("--port", "0", "--classpath", str(tmp_path))
    with ZooKeeper(tmp_path / "data"):
        assert "another ZooKeeper uses" in said("--port", "0")


@pytest.mark.check  # three JVMs
@pytest.mark.parametrize("size", [1, 3])
def test_a_free_port_that_another_process_takes_meanwhile_is_replaced_by_another(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, tried = Ensemble._addresses, []

    def addresses(ensemble: Ensemble) -> list[ServerAddress]:
        tried.append(found(ensemble))
        first = tried[-1][0]
        return [first._replace(port=port), *tried[-1][1:]] if len(tried) == 1 else tried[-1]

    async def scenario() -> None:
        ensemble = Ensemble(find_java(), tmp_path / "data", "localhost", 0, size)
        await ensemble.start()
        try:
            assert port not in {int(address.rpartition(":")[2]) for address in ensemble.addresses}
            assert all(mode(address) for address in ensemble.addresses)
        finally:
            await ensemble.stop()

    monkeypatch.setattr(Ensemble, "_addresses", addresses)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        asyncio.run(scenario())
    assert len(tried) == 2


@pytest.mark.check  # three JVMs
def test_an_ensemble_goes_on_without_its_leader_which_is_started_again(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path / "data", 3) as zookeeper:
        assert sorted(mode(address) for address in zookeeper.addresses) == ["follower", "follower", "leader"]
        leader = zookeeper.leader()
        old = zookeeper.servers()[leader]
        os.kill(old, signal.SIGKILL)
        assert wait_until(lambda: zookeeper.leader() != leader or zookeeper.servers()[leader] not in (0, old))
        assert wait_until(lambda: all(mode(address) for address in zookeeper.addresses))
        assert "It is started again" in zookeeper.log.read_text()
        processes = zookeeper.servers().values()
        assert old not in processes
        assert zookeeper.stop(signal.SIGINT) == 0
        assert all(is_gone(java) for java in processes)


def test_no_server_outlives_a_parent_that_was_killed(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path / "data") as zookeeper:
        [java] = zookeeper.servers().values()
        assert zookeeper.stop(signal.SIGKILL) == -signal.SIGKILL
        assert wait_until(lambda: is_gone(java))


def test_without_java_or_jars_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as here:
        here.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(ConfigError, match="pip install pyspark"):
            find_java()
        assert find_java("/a.jar").classpath == "/a.jar"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="install a JRE, or set JAVA_HOME"):
        find_java()
