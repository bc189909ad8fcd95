"""The identity of the partitions in a log folder by their own files, without the metadata.

Topic and number are the folder's name, the topic id is in `partition.metadata`, and the leader epochs and producer ids
that wrote in a partition are kept beside its records. Only small files are read, and a damaged one is ignored.
"""

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.file_names import SNAPSHOT_SUFFIX
from moldau.log.folders.folder_names import partition_of
from moldau.log.producers import snapshots
from moldau.names import TopicPartition
from moldau.runtime import Disk, is_folder

UNKNOWN = -1
KAFKAS_OWN_TOPICS = ("__cluster_metadata", "__share_group_state")
"""Internal topics of Apache Kafka that Moldau does not have: their folders are left alone."""


class Trace(NamedTuple):
    """One partition's folder. `topic_id` is None where `partition.metadata` is missing or damaged; the others are the
    largest that are known, or -1."""

    tp: TopicPartition
    folder: Path
    topic_id: uuid.UUID | None
    leader_epoch: int = UNKNOWN
    producer_id: int = UNKNOWN


def traces(disk: Disk, folder: Path) -> list[Trace]:
    """Of every partition in a log folder, sorted by name. Raises `OSError`."""
    traced = []
    for name in disk.list(folder):
        tp = partition_of(name)
        if tp is not None and tp.topic not in KAFKAS_OWN_TOPICS and is_folder(disk, folder / name):
            traced.append(_trace(disk, tp, folder / name))
    return traced


def _trace(disk: Disk, tp: TopicPartition, folder: Path) -> Trace:
    try:
        topic_id = checkpoints.read_topic_id(disk, folder)
    except CorruptCheckpoint:
        topic_id = None
    try:
        epochs = [epoch for epoch, _ in checkpoints.read_epochs(disk, folder)]
    except CorruptCheckpoint:
        epochs = []
    names = [name for name in disk.list(folder) if name.endswith(SNAPSHOT_SUFFIX)]
    return Trace(tp, folder, topic_id, max(epochs, default=UNKNOWN), _producer_id(disk, folder, names))


def _producer_id(disk: Disk, folder: Path, names: Iterable[str]) -> int:
    largest = UNKNOWN
    for name in names:
        try:
            producers = snapshots.decode(checkpoints.read_whole(disk, folder / name) or b"")
        except CorruptCheckpoint:
            continue
        largest = max([largest, *(producer_id for producer_id, _ in producers or ())])
    return largest
