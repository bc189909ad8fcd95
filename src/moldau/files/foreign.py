"""Lists the topics in the log folders of another broker, Apache Kafka's or ours, and decides which can be adopted.

Topic names and partition numbers come from the folders' names, topic ids from `partition.metadata`, start offsets,
recovery points and the kind of the last stop from the files of the log folder. Some folders are skipped with a reason:
the metadata log of Kafka's controllers, the state of share groups, partitions that were being moved or deleted. A topic
with a missing partition or damaged files cannot be adopted: `refusal` returns the reason.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from moldau.errors import StorageError
from moldau.files.inspection import reading
from moldau.files.inspection.findings import CheckedTotals, Finding
from moldau.files.inspection.partitions import PartitionCheck
from moldau.files.inspection.surroundings import Surroundings, read_surroundings
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders.folder_names import DELETE_SUFFIX, partition_of
from moldau.log.folders.identity import META_PROPERTIES
from moldau.names import TopicPartition
from moldau.records.batch import MAGIC
from moldau.runtime import Disk, is_folder

SKIPPED_TOPICS: Final = {
    "__cluster_metadata": "the metadata log of Kafka's controllers; users, rights, quotas and settings come from it",
    "__share_group_state": "the state of share groups, which Moldau does not support",
}
SKIPPED_SUFFIXES: Final = {
    DELETE_SUFFIX: "a partition of a deleted topic",
    "-future": "a partition that was being moved to another log folder",
    "-stray": "a stray partition, left over from an earlier assignment",
}
MISSING_SHOWN: Final = 10


@dataclass
class ForeignPartition:
    """One partition in another broker's log folder."""

    tp: TopicPartition
    folder: Path
    clean: bool
    recovery_point: int
    log_start: int
    topic_id: uuid.UUID | None = None
    leader_epoch: int = -1
    producer_id_max: int = -1
    records: int = 0
    end: int = 0
    cleaned: int = -1
    """The offset up to which the partition was compacted; -1 if it never was."""


@dataclass
class ForeignTopic:
    name: str
    partitions: dict[int, ForeignPartition] = field(default_factory=dict)
    doubled: Path | None = None
    """A second folder for a partition that already has one."""

    @property
    def folder(self) -> Path:
        """The folder of the topic's first partition; messages name the topic by it."""
        return self.partitions[min(self.partitions)].folder

    @property
    def id(self) -> uuid.UUID | None:
        return next((one.topic_id for one in self.partitions.values() if one.topic_id is not None), None)


@dataclass
class Survey:
    """The contents of some log folders. `clusters` are the ids of the clusters that the folders belong to."""

    topics: dict[str, ForeignTopic] = field(default_factory=dict)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    clusters: set[str] = field(default_factory=set)


def survey(disk: Disk, folders: Sequence[Path]) -> Survey:
    """List topics and partitions by names and checkpoints, without reading logs. Raises `StorageError` if a folder is
    not a log folder, and `OSError`."""
    surveyed = Survey()
    for folder in folders:
        names = disk.list(folder)
        around, _ = read_surroundings(disk, folder)
        if META_PROPERTIES not in names and not any(partition_of(name) for name in names):
            raise StorageError(f"{folder} is not a log folder: it has neither {META_PROPERTIES} nor a partition")
        properties = reading.properties_in(disk, folder / META_PROPERTIES)
        if "cluster.id" in properties:
            surveyed.clusters.add(properties["cluster.id"])
        for name in names:
            _sort_in(disk, folder / name, around, surveyed)
    return surveyed


def _sort_in(disk: Disk, path: Path, around: Surroundings, surveyed: Survey) -> None:
    suffix = next((suffix for suffix in SKIPPED_SUFFIXES if path.name.endswith(suffix)), None)
    if suffix is not None:
        surveyed.skipped.append((path, SKIPPED_SUFFIXES[suffix]))
        return
    tp = partition_of(path.name)
    if tp is None or not is_folder(disk, path):
        return
    if tp.topic in SKIPPED_TOPICS:
        surveyed.skipped.append((path, SKIPPED_TOPICS[tp.topic]))
        return
    topic = surveyed.topics.setdefault(tp.topic, ForeignTopic(tp.topic))
    if tp.partition in topic.partitions:
        topic.doubled = path
        return
    recovery_point = (around.recovery_points or {}).get(tp, 0)
    log_start = around.log_starts.get(tp, 0)
    try:
        topic_id = checkpoints.read_topic_id(disk, path)
    except CorruptCheckpoint:
        topic_id = None
    clean = around.clean is True
    partition = ForeignPartition(tp, path, clean, recovery_point, log_start, topic_id)
    partition.cleaned = around.cleaner_offsets.get(tp, -1)
    topic.partitions[tp.partition] = partition


def refusal(disk: Disk, topic: ForeignTopic) -> str | None:
    """Read all files of the topic. Returns the reason why it cannot be adopted, or None. Fills in ends, epochs and
    producer ids of its partitions."""
    missing = [number for number in range(max(topic.partitions)) if number not in topic.partitions]
    if topic.doubled is not None:
        return f"topic {topic.name} has two folders for one partition: {topic.doubled} is one of them"
    if missing:
        shown = ", ".join(map(str, missing[:MISSING_SHOWN])) + (" ..." if len(missing) > MISSING_SHOWN else "")
        return f"topic {topic.name} lacks partitions {shown} in these folders: name the other log folders as well"
    for partition in topic.partitions.values():
        wrong = _look(disk, partition)
        if wrong is not None:
            return f"{wrong.path}: {wrong.message} (`moldau log verify` shows all findings)"
    ids = {partition.topic_id for partition in topic.partitions.values()} - {None}
    if len(ids) > 1:
        return f"the partitions of topic {topic.name} have different topic ids, so they belong to different topics"
    return None


def _look(disk: Disk, partition: ForeignPartition) -> Finding | None:
    """The first error in a partition's files, or None."""
    around, _ = read_surroundings(disk, partition.folder.parent)
    seen = CheckedTotals()
    check = PartitionCheck(disk, partition.folder, partition.tp, around, seen)
    wrong = [finding for finding in check.findings() if finding.wrong]
    walked = check.walked
    if walked.oldest_format < MAGIC:
        message = f"the log has messages of format {walked.oldest_format}: import them with `moldau log import`"
        return Finding(partition.folder, message)
    if wrong:
        return wrong[0]
    partition.leader_epoch = max(walked.leader_epoch, int(walked.epochs.latest))
    partition.producer_id_max = walked.producer_id_max
    partition.records = seen.records
    partition.end = walked.end
    return None
