"""Apache Kafka itself serves the partitions that our broker wrote: their folders put where it has its own.

Topics of the same names are made in a Kafka; it is stopped, its partitions' files are replaced by ours (but for the
topic's id), and it is started again: after a clean stop, so that it uses our indexes, and as after a crash, so that it
recovers our segments itself.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import apache_kafka
from harness.listening import stop
from moldau.log.log import Log
from tests.agreement import apache, asking, filling
from tests.agreement.apache import CALM, SETTINGS, address
from tests.agreement.filling import Record
from tests.agreement.leaving import Both
from tests.agreement.logs import fill_compacted, with_transactions
from tests.differential.batches import T0, batch, read_batches
from tests.end_to_end.raw import Raw
from tests.log.compaction.compacting import compact, compacted_log

pytestmark = pytest.mark.long

ID = "partition.metadata"
CLEAN = ".kafka_cleanshutdown"
TOPICS = list(filling.TOPICS)


@dataclass(frozen=True)
class Alone:
    """A log that was written without a broker."""

    folder: Path
    batches: list[asking.Batch]
    stable_end: int
    committed: list[Record]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Alone]:
    """Logs with transactions, one of them open, and compacted ones."""
    base = tmp_path_factory.mktemp("alone")
    transactions, _ = with_transactions(base / "transactions-0")
    compacted = compacted_log(base / "compacted-0", segment_bytes=2000)
    fill_compacted(compacted, 0)
    assert compact(compacted)
    fill_compacted(compacted, 60)
    return {"transactions": finished(transactions), "compacted": finished(compacted)}


def finished(log: Log) -> Alone:
    stable_end = int(log.committed.last_stable_offset(log.log_end_offset))
    aborted = {(one.producer_id, one.first_offset) for one in log.committed.aborted_between(0, stable_end)}
    log.close()
    data = b"".join(path.read_bytes() for path in sorted(log.folder.glob("*.log")))
    batches = read_batches(data) or []
    decided = [one for one in batches if one["base_offset"] < stable_end]
    return Alone(log.folder, batches, stable_end, asking.without_aborted(decided, aborted, stable_end))


@pytest.fixture(scope="module", params=["clean", "unclean"])
def kafka(
    request: pytest.FixtureRequest,
    of_process: Both,
    alone: dict[str, Alone],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Raw]:
    """A Kafka that has our files."""
    folder = tmp_path_factory.mktemp("kafka")
    with apache_kafka.started(folder, {**SETTINGS, **CALM}) as (broker, process):
        with Raw(address(broker)) as raw:
            for topic in TOPICS:
                raw.create_topic(topic, **filling.KEPT, **filling.TOPICS[topic])
            for topic in alone:
                raw.create_topic(topic, **filling.KEPT)
            wait_for_leaders(raw, [*TOPICS, *alone])
        stop(process)
    for topic in TOPICS:
        replace(folder / "data" / f"{topic}-0", of_process.recovered.folder(topic))
    for topic, written in alone.items():
        replace(folder / "data" / f"{topic}-0", written.folder)
    if request.param == "unclean":
        (folder / "data" / CLEAN).unlink()
    starts = folder / "data" / "log-start-offset-checkpoint"
    starts.write_bytes((of_process.recovered.data / starts.name).read_bytes())
    with apache_kafka.started(folder, {**SETTINGS, **CALM}) as (broker, _):
        with Raw(address(broker)) as raw:
            wait_for_leaders(raw, [*TOPICS, *alone])
            yield raw


def wait_for_leaders(raw: Raw, topics: list[str]) -> None:
    apache.wait_for_kafka(lambda: all(asking.has_leader(raw, topic) for topic in topics), "leaders")


def replace(theirs: Path, ours: Path) -> None:
    for path in theirs.iterdir():
        if path.name != ID:
            path.unlink()
    for path in ours.iterdir():
        if path.name != ID:
            shutil.copy(path, theirs)


@pytest.mark.parametrize("topic", TOPICS)
def test_kafka_serves_what_we_wrote(kafka: Raw, of_process: Both, topic: str) -> None:
    ours, theirs = of_process.recovered.partitions[topic], asking.partition_of(kafka, topic, 0)
    assert theirs.batches == ours.batches
    assert (theirs.start, theirs.end, theirs.stable_end) == (ours.start, ours.end, ours.stable_end)
    assert theirs.committed == ours.committed
    offsets = dict(ours.offsets)
    if topic == "timeless":  # of which Kafka, once started anew, names the first record, and before that none
        assert offsets[asking.MAX_TIMESTAMP] == (-1, -1, -1)
        offsets[asking.MAX_TIMESTAMP] = (-1, 0, 0)
    assert theirs.offsets == offsets


@pytest.mark.parametrize("topic", ["transactions", "compacted"])
def test_kafka_serves_our_transactions_and_what_our_cleaner_left(
    kafka: Raw, alone: dict[str, Alone], topic: str
) -> None:
    ours, theirs = alone[topic], asking.partition_of(kafka, topic, 0)
    assert theirs.batches == ours.batches
    assert theirs.stable_end == ours.stable_end
    assert theirs.committed == ours.committed
    assert len(theirs.committed) < sum(len(one["records"]) for one in theirs.batches)


def test_kafka_goes_on_where_we_ended(kafka: Raw, of_process: Both) -> None:
    """Also with what it knows of producers, from our snapshot or our segments."""
    end = of_process.recovered.partitions["idempotent"].end
    last = filling.sequenced(7101, 4, 1, T0 + 3_600_000 + 6600)
    error, offset = kafka.produce("idempotent", last)
    assert (error, offset) == (0, end - 1), "a duplicate"
    assert kafka.produce("idempotent", filling.sequenced(7101, 9, 1, T0)) == (45, -1), "out of order"
    assert kafka.produce("codecs", batch(b"next")) == (0, of_process.recovered.partitions["codecs"].end)
