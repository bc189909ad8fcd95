"""Partitions that exist by the metadata, but have no folder at a start, or more than one.

A partition whose folder is missing is lost: creating it empty would silently drop acknowledged records. So the start is
refused, unless the partition's log folder is offline (the partition may be in it), or the operator accepts the loss. If
a partition is in two folders, nobody can know which copy is right.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from moldau.errors import StorageError
from moldau.log import checkpoints
from moldau.log.folders.folder import LogFolder
from moldau.names import TopicPartition, counted, short_id
from moldau.runtime import Disk

LOST_SHOWN: Final = 5
"""Lost partitions that a sentence names."""

logger = logging.getLogger(__name__)


class Expected(NamedTuple):
    """The partitions that must exist in some log folder.

    `made`: each of them, and the log folder that it was in, None if that is offline or not known. `known`: topics
    (name -> id). `accepted` decides which partitions may start empty if they are lost, None if a repair decides that.
    `is_whole`: every log folder is online."""

    made: Mapping[TopicPartition, LogFolder | None]
    known: Mapping[str, uuid.UUID]
    accepted: Callable[[TopicPartition], bool] | None
    is_whole: bool


def refuse_doubles(by_folder: Mapping[LogFolder, Sequence[TopicPartition]]) -> None:
    """Raises `StorageError` if a partition is in two folders."""
    seen: dict[TopicPartition, LogFolder] = {}
    for folder, partitions in by_folder.items():
        for tp in partitions:
            other = seen.setdefault(tp, folder)
            if other is not folder:
                raise StorageError(
                    f"{tp} is both in {other.path} and in {folder.path}: move the one that is not wanted out of the "
                    "log folders"
                )


def accepted_losses(
    expected: Expected,
    by_folder: Mapping[LogFolder, Sequence[TopicPartition]],
    strays: Collection[str],
    or_repair: Callable[[str], str],
) -> list[TopicPartition]:
    """The lost partitions that may start empty. `by_folder`: the partitions that are there; `strays`: the paths of all
    other names; `or_repair`: the end of a sentence that says what a repair does. Raises `StorageError` if a loss is not
    accepted, or if another topic's folder is in a partition's place."""
    there = {tp for partitions in by_folder.values() for tp in partitions}
    lost: list[Path] = []
    empty: list[TopicPartition] = []
    for tp, folder in expected.made.items():
        if tp in there:
            continue
        # Another topic's folder has its place: not even an accepted loss could start empty there.
        if folder is not None and str(folder.path / str(tp)) in strays:
            raise StorageError(
                _of_another_topic(folder.runtime.disk, folder.path / str(tp), expected.known[tp.topic], or_repair)
            )
        # While a folder is offline, a partition that may be in it is not lost.
        if (folder is not None or expected.is_whole) and expected.accepted is not None and expected.accepted(tp):
            logger.warning("%s has lost its folder and starts empty, as --accept-empty says", tp)
            empty.append(tp)
        elif folder is not None:
            lost.append(folder.path / str(tp))
    if lost:
        raise StorageError(_lost(lost, expected.accepted is not None, or_repair))
    return empty


def _lost(lost: list[Path], may_be_accepted: bool, or_repair: Callable[[str], str]) -> str:
    shown = ", ".join(map(str, sorted(lost)[:LOST_SHOWN])) + (" ..." if len(lost) > LOST_SHOWN else "")
    remedy = or_repair("can start lost partitions empty")
    if may_be_accepted:
        remedy = ", or start once with --accept-empty TOPIC-N (or `all`), and what is lost starts empty"
    return (
        f"{counted(len(lost), 'partition')} {'has' if len(lost) == 1 else 'have'} no folder ({shown}): restore "
        f"what is missing{remedy}"
    )


def _of_another_topic(disk: Disk, path: Path, expected: uuid.UUID, or_repair: Callable[[str], str]) -> str:
    topic_id = checkpoints.read_topic_id(disk, path)
    assert topic_id is not None, "a partition without a topic id is taken by its name"
    repair = or_repair("writes the metadata's id into it")
    return (
        f"{path / checkpoints.PARTITION_METADATA} names the topic id {short_id(topic_id)}, but the "
        f"metadata has {short_id(expected)} for {path.name}: replace the folder if it belongs to another topic, "
        f"and the file if not{repair}"
    )
