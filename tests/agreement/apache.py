"""Folders of an Apache Kafka that its own client filled, left by a SIGKILL and by a clean stop; and what Kafka said of
what is in them.

Its retention has removed what was deleted before the first is taken, and its cleaner has compacted what is to be
compacted before the second. What Kafka says is asked of the third that is started on the same files, and stopped.
All of it is packed into the tree (`fixtures.py`).
"""

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import apache_kafka
from harness.listening import Broker, stop
from harness.patience import stretched, wait_until
from tests.agreement import asking, fixtures
from tests.agreement.asking import Partition
from tests.agreement.filling import Record, records_of
from tests.end_to_end.raw import Raw
from tests.environments import java_class, kafka_jars

SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "0",
    "log.index.size.max.bytes": "100000",
    "broker.session.timeout.ms": "6000",  # after which one that was killed may register again
    "broker.heartbeat.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "300",
}
CALM = {"log.cleaner.backoff.ms": "3600000", "log.retention.check.interval.ms": "3600000"}
RETAINING = {"log.retention.check.interval.ms": "300"}
CLEANING = {"log.cleaner.backoff.ms": "100"}
PARTITIONS = {
    **dict.fromkeys(
        (
            "codecs", "segments", "dotted.name-with_all-2", "stamped", "recompressed", "large", "hollow", "deleted",
            "emptied", "compacted", "compacted-transactions", "transactions", "open",
        ),
        1,
    ),
    "spread": 3,
}  # fmt: skip
COMPACTED = ("compacted", "compacted-transactions")
GROUPS = ("readers", "other", "gone", "in-transactions", "nobody")
AGO_MS = 3 * 3_600_000
"""How long before now the first record was made: near enough to be kept by the retention of whoever takes it."""
PATIENCE_S = 60.0
FILL_SECONDS_MAX = 180


@dataclass(frozen=True)
class Written:
    """Two folders with the same records, and what Kafka said of them; `dirty` is from before compaction."""

    dirty: Path
    killed: Path
    clean: Path
    at_ms: int
    """When it was written."""
    partitions: dict[tuple[str, int], Partition]
    groups: dict[str, dict[tuple[str, int], tuple[int, str | None]]]
    topics: dict[str, tuple[str, int]]
    settings: dict[str, dict[str, str | None]]


FOLDERS = ("dirty", "killed", "clean")


def written(folder: Path) -> Written:
    unpacked, (at_ms, partitions, groups, topics, settings) = fixtures.recorded("written", folder, write)
    read = {place: partition_from(*fields) for place, fields in partitions.items()}
    return Written(*(unpacked / name for name in FOLDERS), at_ms, read, groups, topics, settings)


def partition_from(*fields: Any) -> Partition:
    *numbers, batches, committed, offsets = fields
    return Partition(*numbers, batches, [Record(*record) for record in committed], offsets)


def fields_of(partition: Partition) -> tuple[Any, ...]:
    """As literals."""
    numbers = partition.start, partition.end, partition.stable_end
    return *numbers, partition.batches, [tuple(record) for record in partition.committed], partition.offsets


def write(folder: Path) -> tuple[dict[str, Path], tuple[Any, ...]]:
    """The folders by their names; when they were written, and what Kafka said of partitions, groups, topics and
    settings."""
    with apache_kafka.started(folder, {**SETTINGS, **CALM, **RETAINING}) as (broker, process):
        fill(broker)
        wait_for_kafka(lambda: is_removed(folder / "data" / "deleted-0"), "retention")
        with Raw(address(broker)) as raw:
            ends = [f"{topic} 0 {asking.look_up(raw, topic, 0, asking.LATEST)[1]}" for topic in COMPACTED]
        # a cleaner that finds less to be committed when it begins cleans twice
        watermarks = folder / "data" / "replication-offset-checkpoint"
        wait_for_kafka(lambda: set(ends) <= set(watermarks.read_text().splitlines()), "checkpoint")
        process.kill()
        process.wait()
    shutil.copytree(folder / "data", folder / "dirty")
    with apache_kafka.started(folder, {**SETTINGS, **CALM, **CLEANING}) as (broker, process):
        with Raw(address(broker)) as raw:
            wait_for_kafka(lambda: all(is_compacted(raw, topic) for topic in COMPACTED), "compaction")
        process.kill()
        process.wait()
    shutil.copytree(folder / "data", folder / "killed")
    with apache_kafka.started(folder, {**SETTINGS, **CALM}) as (broker, process):
        with Raw(address(broker)) as raw:
            wait_for_kafka(lambda: all(asking.has_leader(raw, topic) for topic in PARTITIONS), "leaders")
            partitions = {
                (topic, index): asking.partition_of(raw, topic, index)
                for topic, count in PARTITIONS.items()
                for index in range(count)
            }
            groups = {group: asking.committed_offsets(raw, group) for group in GROUPS}
            topics, settings = asking.topic_ids(raw), asking.settings(raw, PARTITIONS)
        stop(process)
    folders = {"dirty": folder / "dirty", "killed": folder / "killed", "clean": folder / "data"}
    literal = {place: fields_of(partition) for place, partition in partitions.items()}
    return folders, (int(time.time() * 1000), literal, groups, topics, settings)


def fill(broker: Broker) -> None:
    class_path = java_class(Path(__file__).parent / "KafkaWriter.java", kafka_jars())
    begin = int(time.time() * 1000) - AGO_MS
    command = ["java", *apache_kafka.JVM, "-cp", class_path, "KafkaWriter", address(broker), str(begin)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(FILL_SECONDS_MAX))
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"filling Kafka took too long; it said {late.stdout!r} {late.stderr!r}") from None
    assert done.stdout.strip().endswith("filled"), done.stdout + done.stderr


def address(broker: Broker) -> str:
    return f"{broker.host}:{broker.port}"


def is_compacted(raw: Raw, topic: str) -> bool:
    """Whether no key is there twice but in the active segment, which holds one record."""
    if not asking.has_leader(raw, topic):
        return False
    start, end = (asking.look_up(raw, topic, 0, kind)[1] for kind in (asking.EARLIEST, asking.LATEST))
    batches, _, _ = asking.read(raw, topic, 0, start, end)
    keys = [record.key for batch in batches if not batch["attributes"] & asking.CONTROL for record in records_of(batch)]
    return 0 < len(keys) == len(set(keys))


def is_removed(partition: Path) -> bool:
    """Whether the first segments of a partition are gone, or on their way."""
    return not (partition / "00000000000000000000.log").exists()


def wait_for_kafka(holds: Callable[[], bool], what: str) -> None:
    assert wait_until(holds, PATIENCE_S, 0.1), f"Kafka's {what} did not come"
