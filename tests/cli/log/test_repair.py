"""`moldau log repair`: what was damaged is made whole again, and what is lost is said."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.client.administration.admin import Admin
from moldau.cluster import copies
from moldau.log import checkpoints
from moldau.names import TopicPartition
from moldau.runtime import RealDisk
from tests.cli.conftest import Moldau, Outcome
from tests.end_to_end.damage import (
    META_DAMAGE,
    METADATA_DAMAGE,
    STORE,
    TOPICS,
    append,
    copied,
    ends,
    refused,
    serves_everything,
    stopped_cleanly,
    without_copies,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stopped_cleanly(tmp_path_factory.mktemp("original"))


@pytest.fixture
def stopped(original: Path, tmp_path: Path) -> Iterator[Broker]:
    """A broker that has written."""
    made = Broker(tmp_path)
    yield copied(original, made)
    made.kill()


def repaired(offline: Moldau, broker: Broker, *more: str) -> list[str]:
    """The changes, shown first and then carried out; afterwards nothing is left to repair."""
    command = ("log", "repair", str(broker.data), *more)
    shown = offline(*command)
    assert shown.code == 0 and "add --execute" in shown.err, shown
    done = offline(*command, "--execute")
    assert (done.code, done.err) == (0, ""), done
    assert offline("log", "repair", str(broker.data)).lines == ["nothing to repair"]
    return done.lines


def problem(outcome: Outcome) -> str:
    assert outcome.code == 1 and "nothing was changed" in outcome.err, outcome
    [line] = [line for line in outcome.lines if line.startswith("problem: ")]
    return line


@pytest.mark.parametrize("how", META_DAMAGE)
def test_meta_properties_are_written_as_they_were(offline: Moldau, stopped: Broker, how: str) -> None:
    META_DAMAGE[how](stopped.data)
    refused(stopped)
    assert any("meta.properties" in line for line in repaired(offline, stopped))
    stopped.start()
    serves_everything(stopped)


@pytest.fixture(scope="module")
def ids(original: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, uuid.UUID]:
    """The topic ids in `original`."""
    broker = copied(original, Broker(tmp_path_factory.mktemp("looked_at")))
    broker.start()
    try:
        return topic_ids(broker)
    finally:
        broker.stop()


def topic_ids(broker: Broker) -> dict[str, uuid.UUID]:
    with Admin(broker.address) as admin:
        return {name: view.topic_id for name, view in admin.list_topics().items()}


OF_EACH_KIND = ("missing", "a bit in a topic", "a node that is gone", "malformed")
"""The rest of the damage is left to `make check`, since each takes three starts of a broker."""


@pytest.mark.parametrize(
    "how",
    [pytest.param(how, marks=[] if how in OF_EACH_KIND else pytest.mark.check) for how in METADATA_DAMAGE],
)
def test_metadata_without_a_copy_are_made_of_the_partitions(
    offline: Moldau, stopped: Broker, ids: dict[str, uuid.UUID], how: str
) -> None:
    METADATA_DAMAGE[how](stopped.data)
    without_copies(stopped.data)
    refused(stopped)
    said = repaired(offline, stopped)
    assert any("topic t: rebuilt from its 3 partitions; its settings are lost" in line for line in said)
    stopped.start()
    serves_everything(stopped)
    assert topic_ids(stopped) == ids
    with Admin(stopped.address) as admin:
        assert {one.name: one.value for one in admin.topic_configs("t")}["retention.ms"] == "-1"


def test_groups_keep_their_offsets_when_the_metadata_are_made_anew(offline: Moldau, stopped: Broker) -> None:
    stopped.start()
    wanted = {TopicPartition("t", number): 1 for number in range(TOPICS["t"])}
    with Admin(stopped.address) as admin:
        admin.alter_group_offsets("g", wanted)
    stopped.kill()
    (stopped.data / STORE).unlink()
    without_copies(stopped.data)
    repaired(offline, stopped)
    stopped.start()
    with Admin(stopped.address) as admin:
        assert {tp: one.offset for tp, one in admin.group_offsets("g").items()} == wanted
        assert {one.name: one.value for one in admin.topic_configs("__consumer_offsets")}["cleanup.policy"] == "compact"


def test_topics_that_the_copy_does_not_have_are_taken_in(offline: Moldau, stopped: Broker) -> None:
    old = (stopped.data / copies.COPY).read_bytes()
    stopped.start()
    with Admin(stopped.address) as admin:
        admin.create_topic("later", partitions=2)
        admin.create_partitions("u", 2)
    stopped.kill()
    (stopped.data / copies.COPY).write_bytes(old)
    (stopped.data / STORE).unlink()
    refused(stopped)
    said = repaired(offline, stopped)
    assert "topic u: it has 2 partitions, not 1" in said
    stopped.start()
    assert ends(stopped) == {"t": [1, 1, 1], "u": [1, 0], "later": [0, 0]}
    with Admin(stopped.address) as admin:
        assert {one.name: one.value for one in admin.topic_configs("u")}["retention.ms"] == "-1"
    append(stopped)


def test_a_lost_partition_begins_anew_only_if_that_is_accepted(offline: Moldau, stopped: Broker) -> None:
    shutil.rmtree(stopped.data / "t-1")
    command = ("log", "repair", str(stopped.data), "--execute")
    assert "--accept-empty t-1" in problem(offline(*command))
    refused(stopped)
    assert offline(*command, "--accept-empty", "t-2").error.startswith("--accept-empty t-2: ")
    assert "t-1 has no folder: it starts empty" in repaired(offline, stopped, "--accept-empty", "t-1")
    stopped.start()
    assert ends(stopped) == {"t": [1, 0, 1], "u": [1]}
    append(stopped)
    assert ends(stopped) == {"t": [2, 1, 2], "u": [2]}


def test_a_partition_gets_the_topic_id_that_the_metadata_has(offline: Moldau, stopped: Broker) -> None:
    checkpoints.write_topic_id(RealDisk(), stopped.data / "t-1", uuid.UUID(int=5))
    refused(stopped)
    [line] = repaired(offline, stopped)
    assert line.startswith(f"{stopped.data / 't-1'}: partition.metadata names the topic id AAAAAAAAAAAAAAAAAAAABQ")
    stopped.start()
    serves_everything(stopped)


def test_nothing_is_repaired_while_a_broker_runs_or_where_no_broker_was(
    offline: Moldau, stopped: Broker, tmp_path: Path
) -> None:
    stopped.start()
    assert offline("log", "repair", str(stopped.data)).error == f"a broker is using {stopped.data}: stop it first"
    (tmp_path / "empty").mkdir()
    assert "neither metadata nor partitions" in offline("log", "repair", str(tmp_path / "empty")).error


@pytest.mark.parametrize("call", ["replace_file", "put_in_place"])
def test_a_repair_that_was_cut_off_is_made_again(
    offline: Moldau, stopped: Broker, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stopped.data / STORE).write_bytes(b"")
    (stopped.data / "meta.properties").unlink()
    without_copies(stopped.data)
    with monkeypatch.context() as patch:
        where = "moldau.log.checkpoints.replace_file" if call == "replace_file" else f"moldau.files.repairing.{call}"

        def fails(*_: object, **__: object) -> None:
            raise OSError(5, "Input/output error")

        patch.setattr(where, fails)
        assert offline("log", "repair", str(stopped.data), "--execute").code == 1
    repaired(offline, stopped)
    stopped.start()
    serves_everything(stopped)
