"""Files that identify the data are damaged between two lives of a broker: they are repaired, or the start is refused
in a sentence; acknowledged records are never served as if they had never been written.
"""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.client.administration.admin import Admin
from moldau.cluster.state.layout import topic_deleted
from moldau.cluster.state.reading import read_image
from moldau.errors import KafkaError
from moldau.log import checkpoints
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.runtime import RealDisk
from tests.end_to_end.damage import (
    META_DAMAGE,
    METADATA_DAMAGE,
    STORE,
    copied,
    flipped,
    refused,
    rewritten,
    serves_everything,
    stopped_cleanly,
    without_copies,
    written,
)

IN_TEST = ("missing", "a header of garbage", "a bit in a topic", "a node that is gone")
OF_EACH_KIND = [pytest.param(how, marks=[pytest.mark.check] * (how not in IN_TEST)) for how in METADATA_DAMAGE]
"""`make test` has a database that is missing, malformed, wrong in its contents, and incomplete."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stopped_cleanly(tmp_path_factory.mktemp("original"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def stopped(original: Path, broker: Broker) -> Broker:
    """A broker that has written, and was stopped."""
    return copied(original, broker)


@pytest.mark.parametrize("how", META_DAMAGE)
def test_meta_properties_that_do_not_say_whose_the_folder_is_stop_the_start(stopped: Broker, how: str) -> None:
    META_DAMAGE[how](stopped.data)
    said = refused(stopped)
    assert "meta.properties" in said and f"moldau log repair {stopped.data}" in said


def test_another_directory_id_is_learnt_and_everything_is_served(stopped: Broker) -> None:
    rewritten("meta.properties", lambda text: flipped(text, text.index(b"directory.id=") + 20))(stopped.data)
    stopped.start()
    serves_everything(stopped)


@pytest.mark.parametrize("how", OF_EACH_KIND)
def test_the_copy_takes_the_place_of_damaged_metadata(stopped: Broker, how: str) -> None:
    METADATA_DAMAGE[how](stopped.data)
    stopped.start()
    assert f"{stopped.data / STORE}" in stopped.log() and "is used instead" in stopped.log()
    serves_everything(stopped)
    with Admin(stopped.address) as admin:
        assert {one.name: one.value for one in admin.topic_configs("u")}["retention.ms"] == "-1"
    stopped.stop()
    stopped.start()
    assert stopped.log().count("is used instead") == 1


@pytest.mark.parametrize("how", OF_EACH_KIND)
def test_without_a_copy_damaged_metadata_stop_the_start(stopped: Broker, how: str) -> None:
    METADATA_DAMAGE[how](stopped.data)
    without_copies(stopped.data)
    for _ in range(2):
        said = refused(stopped)
        assert STORE in said and f"moldau log repair {stopped.data}" in said
    assert (stopped.data / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("how", ["missing", "garbage"])
def test_a_lost_write_ahead_log_loses_nothing_that_was_answered(broker: Broker, how: str) -> None:
    written(broker, Broker.kill)
    without_copies(broker.data)
    log = broker.data / f"{STORE}-wal"
    log.unlink() if how == "missing" else log.write_bytes(b"garbage!" * (log.stat().st_size // 8))
    (broker.data / f"{STORE}-shm").unlink()
    broker.start()
    serves_everything(broker)


def test_a_partition_without_its_folder_stops_the_start(broker: Broker) -> None:
    written(broker, Broker.kill)
    shutil.rmtree(broker.data / "t-1")
    said = refused(broker)
    assert str(broker.data / "t-1") in said and f"moldau log repair {broker.data}" in said
    assert not (broker.data / "t-1").exists()


def test_a_folder_that_names_another_topic_stops_the_start(stopped: Broker) -> None:
    checkpoints.write_topic_id(RealDisk(), stopped.data / "t-1", uuid.UUID(int=5))
    said = refused(stopped)
    assert str(stopped.data / "t-1" / "partition.metadata") in said and "moldau log repair" in said


def test_a_copy_that_is_older_than_the_partitions_does_not_take_their_place(stopped: Broker) -> None:
    old = (stopped.data / f"{STORE}.copy").read_bytes()
    stopped.start()
    with Admin(stopped.address) as admin:
        admin.create_topic("later")
    stopped.stop()
    (stopped.data / f"{STORE}.copy").write_bytes(old)
    (stopped.data / STORE).unlink()
    said = refused(stopped)
    assert "later-0" in said and "moldau log repair" in said and not (stopped.data / STORE).exists()


def test_metadata_of_an_earlier_time_give_no_name_away_that_has_records(stopped: Broker) -> None:
    stopped.start()
    with Admin(stopped.address) as admin:
        admin.create_topic("later")
    stopped.stop()
    fresh = (stopped.data / STORE).read_bytes()
    database = EmbeddedStore(stopped.data)
    image = database.read(read_image())
    assert image is not None
    database.multi(topic_deleted(image.topics["later"])[1:])
    database.close()
    stopped.start()
    with Admin(stopped.address, default_api_timeout_ms=3_000) as admin:  # the error is one that is tried again
        with pytest.raises(KafkaError, match="moldau log repair"):
            admin.create_topic("later")
    with Admin(stopped.address) as admin:
        assert set(admin.list_topics()) == {"t", "u"}
    assert f"{stopped.data / 'later-0'} is not a partition of this cluster" in stopped.log()
    stopped.stop()
    (stopped.data / STORE).write_bytes(fresh)
    stopped.start()
    with Admin(stopped.address) as admin:
        assert set(admin.list_topics()) == {"t", "u", "later"}
