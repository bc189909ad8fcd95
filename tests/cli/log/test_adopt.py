"""`moldau log adopt`: another broker's topics come into our folder, and a broker serves them."""

import json
import shutil
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.logs import names
from moldau.cli.log import adopt as log_adopt
from moldau.client.administration.admin import Admin
from moldau.cluster.state import layout
from moldau.cluster.state.reading import read_image
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.runtime import RealDisk
from tests.cli.conftest import Moldau
from tests.files.inspection.filled import IDS, RECORDS, fill
from tests.files.test_kafka_settings import batches, config

SAFE = ("--set", "retention.ms=-1")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs")
    fill(path)
    shutil.copytree(path / "hollow-0", path / "__cluster_metadata-0")
    return path


def adopt(offline: Moldau, theirs: Path, ours: Path, *more: str) -> list[str]:
    done = offline("log", "adopt", str(theirs), "--data-dir", str(ours), *more)
    assert done.code == 0, done
    return done.lines


def test_a_broker_serves_what_was_adopted_record_for_record(offline: Moldau, theirs: Path, tmp_path: Path) -> None:
    ours = tmp_path / "data"
    said = adopt(offline, theirs, ours, *SAFE, "--set", "bookings/cleanup.policy=compact")
    assert said[0].startswith("adopted topic bookings: partitions: 1, ")
    assert said[0].endswith("; retention.ms=-1, cleanup.policy=compact")
    assert said[-1].startswith(f"skipped {theirs / '__cluster_metadata-0'}: the metadata log of Kafka's controllers")
    assert offline("log", "verify", str(ours)).code == 0
    before = offline("log", "dump", str(theirs / "flights-0"), "--records", "--json").out
    broker = Broker(tmp_path, {})
    broker.start()
    try:
        with Admin(broker.address) as admin:
            assert set(admin.list_topics()) == set(IDS)
            assert admin.list_topics()["flights"].topic_id == IDS["flights"]
        b = ("-b", broker.address)
        consumed = offline("consume", "flights", "--from-beginning", "-n", str(RECORDS), "--json", *b).lines
        produced = offline("produce", "flights", *b, stdin=b"one more\n")
        assert produced.code == 0, produced
        again = offline("consume", "flights", "--partition", "0", "--offset", str(RECORDS), "-n", "1", *b)
        assert again.out == "one more\n"
    finally:
        broker.stop()
    meant = [line for line in map(json.loads, before.splitlines()) if line["type"] == "record"]
    assert len(meant) == RECORDS == len(consumed)
    for original, served in zip(meant, map(json.loads, consumed), strict=True):
        for name in ("offset", "timestamp_ms", "key", "value", "value_base64", "headers"):
            assert original.get(name) == served.get(name)
    assert offline("log", "verify", str(ours)).code == 0


def test_epochs_and_producer_ids_go_on_behind_what_is_in_the_records(
    offline: Moldau, theirs: Path, tmp_path: Path
) -> None:
    adopt(offline, theirs, tmp_path / "ours", *SAFE, "--node-id", "3")
    store = EmbeddedStore(tmp_path / "ours")
    try:
        image = store.read(read_image())
        assert image is not None and image.cluster_id == "the-cluster"
        assert image.topics["flights"].id == IDS["flights"]
        [partition] = image.topics["flights"].partitions
        assert (partition.leader, partition.leader_epoch, partition.replicas) == (3, 4, (3,))
        block = store.get(layout.PRODUCER_ID_BLOCK)
        assert block is not None and int(json.loads(block.data)["block_end"]) >= 70
    finally:
        store.close()


def test_a_dry_run_says_what_would_be_and_makes_nothing(offline: Moldau, theirs: Path, tmp_path: Path) -> None:
    said = adopt(offline, theirs, tmp_path / "ours", "--dry-run")
    assert said[0].startswith("would adopt topic bookings")
    assert not (tmp_path / "ours").exists()
    shown = offline("log", "adopt", str(theirs), "--data-dir", str(tmp_path / "ours"), "--dry-run", "--json").json
    assert [each["topic"] for each in shown["adoptable"]] == sorted(IDS) and shown["adopted"] == []


def test_a_second_run_leaves_out_what_is_there_and_another_topic_of_the_name_is_refused(
    offline: Moldau, theirs: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "ours"
    assert len(adopt(offline, theirs, ours, *SAFE, "--topic", "flights")) == 2
    again = adopt(offline, theirs, ours, *SAFE)
    assert [line.split()[0] for line in again] == ["adopted", "adopted", "skipped", "skipped"]
    assert f"skipped {theirs / 'flights-0'}: it was taken in before" in again
    other = tmp_path / "other"
    fill(other)
    (other / "flights-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAA7w")
    said = offline("log", "adopt", str(other), "--data-dir", str(ours)).error
    assert said == "topic flights already exists: delete it here, or choose others with --topic"


def test_what_was_interrupted_is_gone_on_with(
    offline: Moldau, theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "data"

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log_adopt.registration, "register", interrupted)
    assert offline("log", "adopt", str(theirs), "--data-dir", str(ours), *SAFE).code == 130
    broker = Broker(tmp_path, {})
    broker.start()
    with Admin(broker.address) as admin:
        assert admin.list_topics() == {}
    broker.stop()
    assert (ours / "bookings-0").exists()
    monkeypatch.undo()
    assert len(adopt(offline, theirs, ours, *SAFE)) == 4
    assert offline("log", "verify", str(ours)).lines[-1].endswith("all is well")
    assert [name for name in names(ours) if name.endswith(".tmp")] == []


def test_settings_may_come_from_a_file_and_are_checked(offline: Moldau, theirs: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("retention.ms=-1\nflights/segment.bytes=2000000\n")
    said = adopt(offline, theirs, tmp_path / "ours", "--config", str(file), "--dry-run")
    assert [line for line in said if "segment.bytes=2000000" in line] == [said[1]]
    base = ("log", "adopt", str(theirs), "--data-dir", str(tmp_path / "ours"))
    assert "did you mean retention.ms" in offline(*base, "--set", "retention.m=1").error
    assert "these folders have no topic nobody" in offline(*base, "--set", "nobody/retention.ms=1").error
    assert "these folders have no topic nobody" in offline(*base, "--topic", "nobody").error


def test_settings_come_from_kafkas_metadata_log_if_it_is_there(offline: Moldau, theirs: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(theirs, source)
    settings = {"cleanup.policy": "compact", "min.insync.replicas": "2", "remote.storage.enable": "true"}
    values = [config("flights", name, value) for name, value in settings.items()]
    (source / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(batches(values))
    said = adopt(offline, source, tmp_path / "ours", "--set", "bookings/retention.ms=-1", "--dry-run")
    assert [line.rpartition("; ")[2] for line in said[:3]] == [
        "retention.ms=-1",
        "cleanup.policy=compact",
        "default settings",
    ]
    stronger = adopt(offline, source, tmp_path / "ours", "--set", "cleanup.policy=delete", "--dry-run")
    assert stronger[1].endswith("; cleanup.policy=delete")
    assert adopt(offline, source, tmp_path / "ours", "--default-settings", "--dry-run")[1].endswith("default settings")
    (source / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(batches(values)[:-20] + b"\x55" * 20)
    said_of = offline("log", "adopt", str(source), "--data-dir", str(tmp_path / "ours"), "--dry-run").error
    assert said_of.endswith("--default-settings ignores them")


def test_settings_of_groups_brokers_and_client_metrics_come_along(
    offline: Moldau, theirs: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    shutil.copytree(theirs, source)
    values = [
        config("readers", "consumer.session.timeout.ms", "50000", 32),
        config("basics", "metrics", "*", 16),
        config("", "log.retention.ms", "-1", 4),
        config("1", "log.cleaner.threads", "2", 4),
    ]
    (source / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(batches(values))
    said = adopt(offline, source, tmp_path / "data", *SAFE)
    assert said[-4:] == [
        "adopted setting of brokers: all brokers: log.retention.ms",
        "adopted setting of client metrics: basics: metrics",
        "adopted setting of groups: readers: consumer.session.timeout.ms",
        "left behind: setting of brokers: 1: log.cleaner.threads",
    ]
    store = EmbeddedStore(tmp_path / "data")
    try:
        image = store.read(read_image())
    finally:
        store.close()
    assert image is not None and image.client_metrics == {"basics": {"metrics": "*"}}


def test_internal_topics_are_compacted_whatever_others_are_given(offline: Moldau, theirs: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(theirs, source)
    (source / "flights-0").rename(source / "__consumer_offsets-0")
    (source / "recovery-point-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 0 {RECORDS}\n")
    (source / "replication-offset-checkpoint").unlink()
    said = adopt(offline, source, tmp_path / "ours", *SAFE, "--dry-run")
    assert said[0].endswith("cleanup.policy=compact, compression.type=producer, segment.bytes=104857600")


def test_what_cannot_be_adopted_is_said_in_a_sentence(offline: Moldau, theirs: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    base = ("log", "adopt", str(theirs), "--data-dir", str(ours))
    assert "is not a log folder" in offline("log", "adopt", str(tmp_path)).error
    assert "are the same folder" in offline("log", "adopt", str(theirs), "--data-dir", str(theirs)).error
    release = RealDisk().lock(theirs / ".lock")
    assert offline(*base).error == f"a broker is using {theirs}: stop it first"
    release()
    (theirs / ".lock").unlink()
    ours.mkdir()
    release = RealDisk().lock(ours / ".lock")
    assert "another broker uses" in offline(*base).error
    release()
    (ours / "flights-0").mkdir()
    assert offline(*base).error == f"{ours / 'flights-0'} exists already and belongs to no topic: move it elsewhere"
    (ours / "flights-0").rmdir()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(theirs, elsewhere)
    (elsewhere / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=1\n")
    for name in IDS:
        shutil.rmtree(elsewhere / f"{name}-0")
    assert "belong to different clusters" in offline("log", "adopt", str(theirs), str(elsewhere)).error
    broken = tmp_path / "broken"
    shutil.copytree(theirs, broken)
    path = broken / "flights-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-9])
    assert "verify` shows all findings" in offline("log", "adopt", str(broken), "--data-dir", str(ours)).error
    (ours / "metadata.sqlite").unlink()
    (ours / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\ndirectory.id=d\n")
    assert "name the log folder that has it" in offline(*base).error
