"""Apache Kafka itself serves the partitions that our broker wrote: their folders put where it has its own.

Topics of the same names are made in a Kafka; it is stopped, its partitions' files are replaced by ours (but for the
topic's id), and it is started again: after a clean stop, so that it uses our indexes, and as after a crash, so that it
recovers our segments itself.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agreement import apache, asking, filling
from tests.agreement.apache import CALM, SETTINGS, address
from tests.agreement.leaving import Left
from tests.differential import apache_kafka
from tests.differential.batches import batch
from tests.differential.brokers import stop
from tests.end_to_end.raw import Raw

ID = "partition.metadata"
CLEAN = ".kafka_cleanshutdown"
TOPICS = list(filling.TOPICS)


@pytest.fixture(scope="module", params=["clean", "unclean"])
def kafka(request: pytest.FixtureRequest, recovered: Left, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    """A Kafka that has our files."""
    folder = tmp_path_factory.mktemp("kafka")
    with apache_kafka.started(folder, {**SETTINGS, **CALM}) as (broker, process):
        with Raw(address(broker)) as raw:
            for topic in TOPICS:
                raw.create_topic(topic, **filling.KEPT, **filling.TOPICS[topic])
            apache.wait_until(lambda: all(asking.has_leader(raw, topic) for topic in TOPICS), "leaders")
        stop(process)
    for topic in TOPICS:
        replace(folder / "data" / f"{topic}-0", recovered.folder(topic))
    if request.param == "unclean":
        (folder / "data" / CLEAN).unlink()
    starts = folder / "data" / "log-start-offset-checkpoint"
    starts.write_bytes((recovered.data / starts.name).read_bytes())
    with apache_kafka.started(folder, {**SETTINGS, **CALM}) as (broker, _):
        with Raw(address(broker)) as raw:
            apache.wait_until(lambda: all(asking.has_leader(raw, topic) for topic in TOPICS), "leaders")
            yield raw


def replace(theirs: Path, ours: Path) -> None:
    for path in theirs.iterdir():
        if path.name != ID:
            path.unlink()
    for path in ours.iterdir():
        if path.name != ID:
            shutil.copy(path, theirs)


@pytest.mark.parametrize("topic", TOPICS)
def test_kafka_serves_what_we_wrote(kafka: Raw, recovered: Left, topic: str) -> None:
    ours, theirs = recovered.partitions[topic], asking.partition_of(kafka, topic, 0)
    assert theirs.batches == ours.batches
    assert (theirs.start, theirs.end, theirs.stable_end) == (ours.start, ours.end, ours.stable_end)
    assert theirs.committed == ours.committed
    offsets = dict(ours.offsets)
    if topic == "timeless":  # of which Kafka, once started anew, names the first record, and before that none
        assert offsets[asking.MAX_TIMESTAMP] == (-1, -1, -1)
        offsets[asking.MAX_TIMESTAMP] = (-1, 0, 0)
    assert theirs.offsets == offsets


def test_kafka_goes_on_where_we_ended(kafka: Raw, recovered: Left) -> None:
    """Also with what it knows of producers, from our snapshot or our segments."""
    end = recovered.partitions["idempotent"].end
    last = filling.sequenced(7101, 4, 1, filling.T0 + 3_600_000 + 6600)
    error, offset = kafka.produce("idempotent", last)
    assert (error, offset) == (0, end - 1), "a duplicate"
    assert kafka.produce("idempotent", filling.sequenced(7101, 9, 1, filling.T0)) == (45, -1), "out of order"
    assert kafka.produce("codecs", batch(b"next")) == (0, recovered.partitions["codecs"].end)
