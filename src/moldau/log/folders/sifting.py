"""Which partitions of a log folder a start opens, which it removes, and which names it leaves alone.

A partition is opened if its topic is known: by the topic id in `partition.metadata`, or by name where a folder has no
id. So a partition of an earlier topic of the same name is not taken for one of its successor. What belongs to a deleted
topic is removed; everything else is reported, and left alone.
"""

import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders.folder_names import DELETE_SUFFIX, OWN_FILES, partition_of
from moldau.names import TopicPartition
from moldau.runtime import Disk


def sift(
    disk: Disk, path: Path, known: Mapping[str, uuid.UUID], deleted: Mapping[uuid.UUID, str] | None
) -> tuple[list[TopicPartition], list[str]]:
    """The partitions of known topics (name -> id) in the log folder at `path`, and the unknown names. Partitions of
    topics in `deleted` (id -> name) are removed, and what an interrupted deletion left. Blocks. Raises `OSError`."""
    partitions, strays = [], []
    for name in disk.list(path):
        if name in OWN_FILES or name.endswith(".tmp"):
            continue
        if name.endswith(DELETE_SUFFIX):
            disk.remove(path / name)
            continue
        tp = partition_of(name)
        if tp is not None and deleted and _is_deleted(disk, path / name, tp, deleted, known):
            disk.remove(path / name)
        elif tp is None or tp.topic not in known or not _is_of(disk, path / name, known[tp.topic]):
            strays.append(name)
        else:
            partitions.append(tp)
    return partitions, strays


def _is_deleted(
    disk: Disk, folder: Path, tp: TopicPartition, deleted: Mapping[uuid.UUID, str], known: Collection[str]
) -> bool:
    """Whether a folder belongs to a deleted topic. If `partition.metadata` was lost in the crash, match by folder name
    instead of topic id."""
    try:
        topic_id = checkpoints.read_topic_id(disk, folder)
    except NotADirectoryError:
        return False
    except CorruptCheckpoint:
        topic_id = None
    return topic_id in deleted or (topic_id is None and tp.topic not in known and tp.topic in deleted.values())


def _is_of(disk: Disk, folder: Path, topic_id: uuid.UUID) -> bool:
    """Whether a folder belongs to the topic with this id, not to an earlier one of the same name. An unreadable
    `partition.metadata` is removed, and rewritten when the log is opened."""
    try:
        recorded_id = checkpoints.read_topic_id(disk, folder)
    except NotADirectoryError:
        return False
    except CorruptCheckpoint:
        disk.remove(folder / checkpoints.PARTITION_METADATA)
        return True
    return recorded_id is None or recorded_id == topic_id
