"""A folder that Apache Kafka wrote is taken in, and our broker serves what Kafka served: record for record."""

import filecmp
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.commands import moldau
from harness.logs import config, open_log
from tests.agreement import apache, asking
from tests.agreement.apache import COMPACTED, PARTITIONS, Written
from tests.agreement.dumping import DEEP, DumpTool
from tests.differential.batches import batch
from tests.end_to_end.raw import Raw

EVERY = [(topic, index) for topic, count in PARTITIONS.items() for index in range(count)]
FINE = {"segments", "dotted.name-with_all-2", "deleted", "emptied", "transactions", "stamped", *COMPACTED}
"""Topics with an index entry every 100 bytes."""
PATHS = os.pathsep.join((str(SOURCE), str(SOURCE.parent)))
SETTINGS = {"log.initial.task.delay.ms": "0", "log.retention.check.interval.ms": "200"}


@dataclass(frozen=True)
class Adopted:
    raw: Raw
    broker: Broker
    theirs: Path
    """The folder of Kafka."""
    said: subprocess.CompletedProcess[str]
    before: dict[str, int]


@pytest.fixture(scope="module", params=["clean", "killed"])
def adopted(
    request: pytest.FixtureRequest, written: Written, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Adopted]:
    """Our broker after it took the folder in."""
    theirs: Path = getattr(written, request.param)
    before = contents(theirs)
    behind_ms = int(time.time() * 1000) - written.at_ms
    program, environment = ("tests.agreement.earlier",), {"MOLDAU_EARLIER_MS": str(behind_ms), "PYTHONPATH": PATHS}
    broker = Broker(tmp_path_factory.mktemp("ours"), SETTINGS, program, environment)
    said = moldau("log", "adopt", theirs, "--data-dir", broker.data)
    assert said.returncode == 0, said.stdout + said.stderr
    broker.start()
    try:
        with Raw(broker.address) as raw:
            yield Adopted(raw, broker, theirs, said, before)
        broker.stop()
    finally:
        broker.kill()


def contents(folder: Path) -> dict[str, int]:
    """Every file with a checksum of its bytes."""
    return {str(path.relative_to(folder)): hash(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("topic", "index"), EVERY)
def test_every_batch_and_record_is_served_as_kafka_served_it(
    adopted: Adopted, written: Written, topic: str, index: int
) -> None:
    theirs, ours = written.partitions[topic, index], asking.partition_of(adopted.raw, topic, index)
    assert ours.batches == theirs.batches
    assert (ours.start, ours.end, ours.stable_end) == (theirs.start, theirs.end, theirs.stable_end)
    assert ours.committed == theirs.committed
    assert ours.offsets == theirs.offsets


def test_what_was_written_is_of_every_kind(written: Written) -> None:
    def batches(topic: str) -> list[asking.Batch]:
        return written.partitions[topic, 0].batches

    def codecs(topic: str) -> set[int]:
        return {batch["attributes"] & 7 for batch in batches(topic)}

    assert codecs("codecs") == {0, 1, 2, 3, 4}
    assert codecs("recompressed") == {4}
    assert {batch["attributes"] & 8 for batch in batches("stamped")} == {8}
    assert all(any(batch["attributes"] & 64 for batch in batches(topic)) for topic in COMPACTED)
    assert all(batch["crc_holds"] for topic in PARTITIONS for batch in batches(topic))
    markers = [batch for batch in batches("transactions") if batch["attributes"] & asking.CONTROL]
    assert {batch["records"][0]["key"] for batch in markers} == {b"\0\0\0\0", b"\0\0\0\1"}
    assert written.partitions["open", 0].stable_end < written.partitions["open", 0].end
    assert written.partitions["deleted", 0].start > 0
    assert len(list(written.killed.glob("segments-0/*.log"))) > 5
    assert len(list(written.killed.glob("large-0/*.log"))) > 2


def test_groups_have_their_offsets(adopted: Adopted, written: Written) -> None:
    found = {group: asking.committed_offsets(adopted.raw, group) for group in apache.GROUPS}
    assert found == written.groups
    assert found["readers"]["codecs", 0] == (17, "noted")
    assert found["in-transactions"] == {("codecs", 0): (77, "")}
    assert found["gone"] == {}


def test_topics_keep_their_ids_and_partitions(adopted: Adopted, written: Written) -> None:
    assert asking.topic_ids(adopted.raw) == written.topics


def test_topics_keep_their_settings(adopted: Adopted, written: Written) -> None:
    assert asking.settings(adopted.raw, PARTITIONS) == written.settings
    assert all(written.settings[topic]["cleanup.policy"] == "compact" for topic in COMPACTED)


def test_kafkas_folder_is_as_it_was(adopted: Adopted) -> None:
    assert contents(adopted.theirs) == adopted.before


def test_what_is_written_next_follows(adopted: Adopted, written: Written) -> None:
    following, end = batch(b"next", timestamp=written.at_ms), written.partitions["hollow", 0].end
    assert adopted.raw.produce("hollow", following) == (0, end)
    assert adopted.raw.produce("hollow", following) == (0, end + 1)


@pytest.mark.parametrize("topic", ["codecs", "segments", "spread"])
def test_what_was_sent_to_kafka_is_a_duplicate_when_it_is_sent_to_us(
    adopted: Adopted, written: Written, topic: str
) -> None:
    """What Kafka knew of its producers came along."""
    last = written.partitions[topic, 0].batches[-1]
    assert last["producer_id"] >= 0
    found = asking.fetch(adopted.raw, topic, 0, last["base_offset"], committed=False)
    again = bytearray(found.records or b"")[: last["batch_length"] + 12]
    again[:8] = bytes(8)
    assert adopted.raw.produce(topic, bytes(again)) == (0, last["base_offset"])
    assert asking.look_up(adopted.raw, topic, 0, asking.LATEST)[1] == written.partitions[topic, 0].end


@pytest.mark.parametrize("which", ["clean", "killed"])
def test_our_verify_has_nothing_against_kafkas_files(written: Written, which: str) -> None:
    found = moldau("log", "verify", getattr(written, which))
    assert found.returncode == 0, found.stdout + found.stderr
    assert "error" not in found.stdout.replace("0 errors", "")


@pytest.mark.parametrize("which", ["clean", "killed"])
def test_our_dump_finds_what_kafkas_tool_finds(written: Written, which: str, tool: DumpTool) -> None:
    folder: Path = getattr(written, which)
    logs = sorted(path for topic in PARTITIONS for path in folder.glob(f"{topic}-[0-9]/*.log"))
    theirs = tool.dump(logs, *DEEP)
    found = moldau("log", "dump", "--records", "--json", *logs)
    assert theirs.complaints == []
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count('"type": "record"') == len(theirs.records())


@pytest.mark.parametrize("topic", [topic for topic in PARTITIONS if topic != "hollow"])
def test_indexes_that_we_build_from_kafkas_log_are_kafkas(written: Written, topic: str, tmp_path: Path) -> None:
    interval = 100 if topic in FINE else 0 if topic == "spread" else 4096
    theirs = written.clean / f"{topic}-0"
    ours = tmp_path / f"{topic}-0"
    ours.mkdir()
    for path in (*theirs.glob("*.log"), theirs / "partition.metadata"):
        shutil.copy(path, ours)
    open_log(ours, clean=False, config=config(index_interval_bytes=interval)).close()
    kinds = ["index", "timeindex"]
    if topic not in COMPACTED:  # whose cleaner keeps entries of transactions that have nothing but a marker left
        kinds.append("txnindex")
    built, there = ({path.name for kind in kinds for path in side.glob(f"*.{kind}")} for side in (ours, theirs))
    assert built == there
    assert [name for name in sorted(built) if not filecmp.cmp(theirs / name, ours / name, shallow=False)] == []


def test_an_unknown_folder_is_left_alone_and_reported(written: Written, tmp_path: Path) -> None:
    broker = Broker(tmp_path, SETTINGS)
    broker.start()
    broker.stop()
    shutil.copytree(written.clean / "codecs-0", broker.data / "codecs-0")
    before = contents(broker.data / "codecs-0")
    broker.start()
    try:
        with Raw(broker.address) as raw:
            assert asking.topic_ids(raw) == {}
        broker.stop()
    finally:
        broker.kill()
    assert contents(broker.data / "codecs-0") == before
    assert "codecs-0" in broker.log()
