"""Which partitions of a log folder a start opens, which it removes, and which names it leaves alone.

A partition is opened if its topic is known: by the topic id in `partition.metadata`, or by name where a folder has no
id. So a partition of an earlier topic of the same name is not taken for one of its successor. What belongs to a deleted
topic is removed; everything else is reported, and left alone. The copy of a partition that moves between log folders is
known by its topic id alone, as its name may be cut; a copy without one is removed, since nothing in it counts yet.
"""

import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders.folder_names import DELETE_SUFFIX, FUTURE_SUFFIX, OWN_FILES, future_of, partition_of
from moldau.names import TopicPartition
from moldau.runtime import Disk


class Sifted(NamedTuple):
    """What is in a log folder: the partitions of known topics, the names of the folders with copies of partitions, and
    the unknown names."""

    partitions: list[TopicPartition]
    copies: dict[TopicPartition, str]
    strays: list[str]


def sift(disk: Disk, path: Path, known: Mapping[str, uuid.UUID], deleted: Mapping[uuid.UUID, str] | None) -> Sifted:
    """The content of the log folder at `path`; `known` are the topics (name -> id). Partitions of topics in `deleted`
    (id -> name) are removed, and what an interrupted deletion left. Blocks. Raises `OSError`."""
    found = Sifted([], {}, [])
    names_by_id: dict[uuid.UUID, str] = {}
    for name in disk.list(path):
        if name in OWN_FILES or name.endswith(".tmp"):
            continue
        if name.endswith(DELETE_SUFFIX):
            disk.remove(path / name)
            continue
        if name.endswith(FUTURE_SUFFIX) and (future := future_of(name)) is not None:
            names_by_id = names_by_id or {topic_id: topic for topic, topic_id in known.items()}
            _sift_copy(disk, path / name, future, names_by_id, deleted or {}, found)
            continue
        tp = partition_of(name)
        if tp is not None and deleted and _is_deleted(disk, path / name, tp, deleted, known):
            disk.remove(path / name)
        elif tp is None or tp.topic not in known or not _is_of(disk, path / name, known[tp.topic]):
            found.strays.append(name)
        else:
            found.partitions.append(tp)
    return found


def _sift_copy(
    disk: Disk,
    folder: Path,
    future: TopicPartition,
    names_by_id: Mapping[uuid.UUID, str],
    deleted: Collection[uuid.UUID],
    found: Sifted,
) -> None:
    try:
        topic_id = checkpoints.read_topic_id(disk, folder)
    except NotADirectoryError:
        found.strays.append(folder.name)
        return
    except CorruptCheckpoint:
        topic_id = None
    topic = None if topic_id is None else names_by_id.get(topic_id)
    if topic is not None and TopicPartition(topic, future.partition) not in found.copies:
        found.copies[TopicPartition(topic, future.partition)] = folder.name
    elif topic is not None or topic_id is None or topic_id in deleted:
        disk.remove(folder)
    else:
        found.strays.append(folder.name)


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
