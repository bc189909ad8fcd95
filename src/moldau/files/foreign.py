"""The log folders of another broker, Apache Kafka's or ours: which topics are in them, and whether they can be taken.

Names and numbers of partitions come from the folders, ids from `partition.metadata`; where a topic's partitions end and
begin, and how they were left, from the checkpoints beside them. What cannot be used is skipped with a reason: the
metadata log of Kafka's controllers, share groups' state, partitions that were being moved or removed. A topic that
lacks a partition here, or whose files do not hold, cannot be taken as it is: `refusal` says why.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from moldau.errors import StorageError
from moldau.files.inspection import reading
from moldau.files.inspection.findings import Finding, Seen
from moldau.files.inspection.partitions import PartitionCheck
from moldau.files.inspection.surroundings import Surroundings, read_surroundings
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folder import DELETE_SUFFIX, partition_of
from moldau.log.identity import META_PROPERTIES
from moldau.names import TopicPartition
from moldau.records.batch import MAGIC
from moldau.runtime import Disk, is_folder

SKIPPED_TOPICS: Final = {
    "__cluster_metadata": "the metadata log of Kafka's controllers; only topics' settings are taken from it",
    "__share_group_state": "the state of share groups, which are not served here",
}
SKIPPED_SUFFIXES: Final = {
    DELETE_SUFFIX: "its topic was deleted",
    "-future": "it was being moved to another folder",
    "-stray": "it was left over from another assignment",
}
MISSING_SHOWN: Final = 10


@dataclass
class ForeignPartition:
    """One partition as it lies in another broker's folder."""

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
    """Up to where it was compacted; -1 if it never was."""


@dataclass
class ForeignTopic:
    name: str
    partitions: dict[int, ForeignPartition] = field(default_factory=dict)
    doubled: Path | None = None
    """A second folder of one of its partitions."""

    @property
    def folder(self) -> Path:
        """Of its first partition, to name it by."""
        return self.partitions[min(self.partitions)].folder

    @property
    def id(self) -> uuid.UUID | None:
        return next((one.topic_id for one in self.partitions.values() if one.topic_id is not None), None)


@dataclass
class Survey:
    """Everything in some folders. `clusters` are the clusters they belong to."""

    topics: dict[str, ForeignTopic] = field(default_factory=dict)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    clusters: set[str] = field(default_factory=set)


def survey(disk: Disk, folders: Sequence[Path]) -> Survey:
    """What is there, by names and checkpoints alone. Raises `StorageError` for what is no log folder, `OSError`."""
    found = Survey()
    for folder in folders:
        names = disk.list(folder)
        around, _ = read_surroundings(disk, folder)
        if META_PROPERTIES not in names and not any(partition_of(name) for name in names):
            raise StorageError(f"{folder} is no log folder: it has neither {META_PROPERTIES} nor a partition")
        properties = reading.properties_in(disk, folder / META_PROPERTIES)
        if "cluster.id" in properties:
            found.clusters.add(properties["cluster.id"])
        for name in names:
            _sort_in(disk, folder / name, around, found)
    return found


def _sort_in(disk: Disk, path: Path, around: Surroundings, found: Survey) -> None:
    suffix = next((suffix for suffix in SKIPPED_SUFFIXES if path.name.endswith(suffix)), None)
    if suffix is not None:
        found.skipped.append((path, SKIPPED_SUFFIXES[suffix]))
        return
    tp = partition_of(path.name)
    if tp is None or not is_folder(disk, path):
        return
    if tp.topic in SKIPPED_TOPICS:
        found.skipped.append((path, SKIPPED_TOPICS[tp.topic]))
        return
    topic = found.topics.setdefault(tp.topic, ForeignTopic(tp.topic))
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
    """Read all of the topic's files; why it cannot be taken in, or None. What was learnt is in its partitions then."""
    missing = [number for number in range(max(topic.partitions)) if number not in topic.partitions]
    if topic.doubled is not None:
        return f"topic {topic.name} has a partition twice: {topic.doubled} is one of them"
    if missing:
        shown = ", ".join(map(str, missing[:MISSING_SHOWN])) + (" ..." if len(missing) > MISSING_SHOWN else "")
        return f"topic {topic.name} lacks the partitions {shown} here: name the other log folders as well"
    for partition in topic.partitions.values():
        wrong = _look(disk, partition)
        if wrong is not None:
            return f"{wrong.path}: {wrong.message} (`moldau log verify` says more)"
    ids = {partition.topic_id for partition in topic.partitions.values()} - {None}
    if len(ids) > 1:
        return f"the partitions of topic {topic.name} name different topic ids: they are not of one topic"
    return None


def _look(disk: Disk, partition: ForeignPartition) -> Finding | None:
    """The first thing that is wrong with a partition's files."""
    around, _ = read_surroundings(disk, partition.folder.parent)
    seen = Seen()
    check = PartitionCheck(disk, partition.folder, partition.tp, around, seen)
    wrong = [finding for finding in check.findings() if finding.wrong]
    walked = check.walked
    if walked.oldest_format < MAGIC:
        message = f"it has messages of format {walked.oldest_format}: read them in with `moldau log import`"
        return Finding(partition.folder, message)
    if wrong:
        return wrong[0]
    partition.leader_epoch = max(walked.leader_epoch, int(walked.epochs.latest))
    partition.producer_id_max = walked.producer_id_max
    partition.records = seen.records
    partition.end = walked.end
    return None
