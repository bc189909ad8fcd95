"""`moldau doctor` at brokers that run, at folders of stopped ones, and at a cluster with a broker away."""

import asyncio
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import wait_until
from moldau import Admin
from moldau.cli.doctor.brokers import cluster_facts
from moldau.cli.doctor.clock_watch import ClockWatch
from moldau.cli.doctor.machine import broker_process, descriptor_facts, disk_facts
from moldau.client.administration.admin import AsyncAdmin, ClusterDescription
from moldau.errors import ErrorCode, KafkaError
from moldau.testing import Cluster
from tests.cli.conftest import Moldau

NOWHERE = "name.that.does.not.exist.invalid"


def settings(path: Path, **lines: str) -> Path:
    path.write_text("".join(f"{name.replace('_', '.')}={text}\n" for name, text in lines.items()))
    return path


def test_a_sound_broker_is_well_with_its_settings_and_without(broker: Broker, moldau: Moldau, tmp_path: Path) -> None:
    well = moldau("doctor")
    assert well.code == 0 and "ERROR" not in well.out
    assert "Looked at addresses, replicas, folders, configuration, clock: 0 errors, 0 warnings" in well.out
    own = settings(tmp_path / "own", log_dirs=str(broker.folder / "data"), listeners="PLAINTEXT://localhost:9092")
    both = moldau("doctor", "-b", broker.address, "--config", str(own), "--json").json
    assert both["examined"] == [
        "configuration", "disk", "descriptors", "folders", "addresses", "replicas", "clock",
    ]  # fmt: skip
    assert not [one for one in both["found"] if one["severity"] == "error"]
    assert both["facts"]["folders"][0]["in_use"] is True
    assert both["facts"]["disks"][0]["usable"] > 0 and len(both["facts"]["disks"][0]["flush_ms"]) == 5
    assert not list((broker.folder / "data").glob(".moldau-doctor-*"))


def test_a_broker_that_is_not_the_one_of_the_settings_is_told(broker: Broker, offline: Moldau, tmp_path: Path) -> None:
    told = f"The broker at {broker.address} is not the one that --config describes: "
    fresh = settings(tmp_path / "fresh", log_dirs=str(tmp_path / "nothing"))
    assert f"{told}no broker has started with" in offline("doctor", "-b", broker.address, "--config", str(fresh)).out
    other = Broker(tmp_path)
    other.start()
    theirs = settings(tmp_path / "theirs", log_dirs=str(tmp_path / "data"))
    assert f"{told}it belongs to cluster" in offline("doctor", "-b", broker.address, "--config", str(theirs)).out
    assert "is not the one" not in offline("doctor", "-b", other.address, "--config", str(theirs)).out
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    copied = settings(tmp_path / "copied", log_dirs=str(tmp_path / "copy"))
    assert "They may be a copy" in offline("doctor", "-b", other.address, "--config", str(copied)).out
    other.stop()


def test_an_advertised_name_that_does_not_resolve_is_explained(offline: Moldau, tmp_path: Path) -> None:
    ours = Broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{NOWHERE}:9092"})
    ours.start()
    said = offline("doctor", "-b", ours.address)
    ours.stop()
    here = socket.gethostname()
    assert said.code == 1 and said.err == ""
    assert f"Broker 1 tells clients to connect to {NOWHERE}:9092, and {here} cannot resolve {NOWHERE}: " in said.out
    assert "Set advertised.listeners of broker 1 to NAME://HOST:9092 and restart it" in said.out
    assert said.out.count("ERROR") == 1 and "WARNING" not in said.out


def test_what_does_not_answer_is_told_apart(offline: Moldau) -> None:
    refused = offline("doctor", "-b", "127.0.0.1:1")
    assert refused.code == 1 and "127.0.0.1:1: Connection refused" in refused.out
    unknown = offline("doctor", "-b", f"{NOWHERE}:9092")
    assert unknown.code == 1 and f"cannot resolve {NOWHERE}" in unknown.out
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        silent.listen(0)

        def hang_up() -> None:
            for _ in range(10):
                silent.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        closed = offline("doctor", "-b", f"{host}:{port}")
    assert closed.code == 1 and "does not answer as a broker" in closed.out
    assert offline("doctor", "-b", "nowhere:x").error == "'nowhere:x' is not HOST:PORT"


def test_a_cluster_with_a_broker_away_is_described(offline: Moldau) -> None:
    with Cluster(3) as cluster:
        with Admin(cluster.address) as admin:
            admin.create_topic("t", partitions=3, replication_factor=3, configs={"min.insync.replicas": "3"})
            admin.create_topic("single", partitions=1, replication_factor=1)
            cluster.brokers[2].kill()
            wait_until(lambda: len(admin.describe_cluster().brokers) == 2)
            said = offline("doctor", "-b", cluster.address)
    assert said.code == 1, said
    assert "3 partitions cannot be written with acks=all, below min.insync.replicas: t-0, t-1, t-2." in said.out
    assert "is away" in said.out and "single" in said.out


def test_replicas_are_looked_at_while_the_store_does_not_answer(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the store knows the brokers that are away."""
    describe = AsyncAdmin.describe_cluster

    async def without_store(admin: AsyncAdmin, *, include_fenced: bool = False) -> ClusterDescription:
        if include_fenced:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the store is away")
        return await describe(admin)

    monkeypatch.setattr(AsyncAdmin, "describe_cluster", without_store)
    facts = asyncio.run(cluster_facts(broker.address))
    assert facts.status is not None and facts.settings and facts.folders
    assert facts.errors == ("the brokers that are away cannot be asked for: the store is away",)


def test_a_stopped_folder_is_looked_through(offline: Moldau, tmp_path: Path) -> None:
    data = tmp_path / "data"
    ours = Broker(tmp_path, {"broker.id": "4"})
    ours.start()
    with Admin(ours.address) as admin:
        admin.create_topic("t", partitions=2)
    ours.stop()
    own = settings(tmp_path / "own", broker_id="4", log_dirs=str(data), listeners="PLAINTEXT://localhost:9092")
    sound = offline("doctor", "--config", str(own), "--json").json
    assert not [one for one in sound["found"] if one["area"] == "folders"], sound["found"]
    assert sound["facts"]["folders"][0]["largest"].keys() == {"t-0", "t-1"}
    (data / "t-0").rename(data / "t-0.bak")
    (data / "photos").mkdir()
    wrong = offline("doctor", "--config", str(own), "--set", "broker.id=5", "--set", "num.partitions=many")
    assert wrong.code == 1
    for words in (
        "lacks the folders of 1 partition: t-0",
        "belongs to broker 4, and the settings are those of 5",
        "2 names that no broker has made: photos, t-0.bak",
        "num.partitions must be a whole number, not 'many'",
    ):
        assert words in wrong.out, wrong.out


def test_what_cannot_be_used_is_said(offline: Moldau, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = offline("doctor", "--set", f"log.dirs={tmp_path}/file,{tmp_path}/new", "--set", "listeners=P://h:x")
    assert said.code == 1
    assert f"The log folder {tmp_path}/file cannot be used: it is not a folder" in said.out
    assert f"The log folder {tmp_path}/new does not exist yet" in said.out
    assert "cannot read no-such" in offline("doctor", "--config", "no-such").error
    assert offline("doctor", "--log", "x").error == "--log needs --bundle: a log is only written into a bundle"


def test_a_zookeeper_that_is_not_there_is_an_error(offline: Moldau, monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.cli.doctor import ensemble

    monkeypatch.setattr(ensemble, "SESSION_S", 0.3)
    said = offline("doctor", "--set", "broker.id=1", "--set", "zookeeper.connect=127.0.0.1:1,127.0.0.1:2")
    assert said.code == 1
    assert "There is no session in ZooKeeper at 127.0.0.1:1,127.0.0.1:2" in said.out
    assert "The ZooKeeper server 127.0.0.1:2 cannot be reached" in said.out


def test_facts_of_a_machine(tmp_path: Path) -> None:
    facts = disk_facts(tmp_path)
    assert facts.exists and not facts.error and facts.total >= facts.usable > 0 and len(facts.flush_ms) == 5
    assert facts.file_system and not list(tmp_path.iterdir())
    assert not disk_facts(tmp_path / "a" / "b").exists
    times = iter([100.0, 5.0, 101.5, 6.0])
    assert ClockWatch(lambda: next(times), lambda: next(times)).facts().drift_ms == pytest.approx(500)
    assert abs(ClockWatch().facts().now_ms - time.time() * 1000) < 60_000
    assert descriptor_facts([tmp_path]).of_broker == -1 and broker_process(tmp_path) is None


def test_the_descriptors_of_a_broker_that_runs_here_are_counted(broker: Broker) -> None:
    facts = descriptor_facts([broker.folder / "data"])
    assert facts.of_broker > facts.open > 3


def test_certificates_that_a_start_would_refuse_are_errors(offline: Moldau, tmp_path: Path) -> None:
    assert offline("certificates", "make", str(tmp_path / "c"), "--host", "localhost", "--days", "3").code == 0
    file = tmp_path / "c" / "localhost.pem"
    own = settings(
        tmp_path / "own",
        log_dirs=str(tmp_path / "data"),
        listeners="SSL://localhost:9093",
        security_inter_broker_protocol="SSL",
        ssl_keystore_location=str(file),
    )
    said = offline("doctor", "--config", str(own)).out
    assert "WARNING certificates: The certificate of the listener SSL expires in " in said
    file.write_text("garbage")
    broken = offline("doctor", "--config", str(own))
    assert broken.code == 1
    assert f"ERROR   certificates: The listener SSL cannot use TLS: cannot use {file}, which " in broken.out
