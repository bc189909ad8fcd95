"""Checks a whole log folder, or the folder of one partition, and yields the findings."""

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from moldau.files.inspection import reading
from moldau.files.inspection.findings import CheckedTotals, Finding
from moldau.files.inspection.kinds import FOLDER_FILES, LEFTOVERS, FileKind, file_name_of, leftover_of
from moldau.files.inspection.partitions import PartitionCheck
from moldau.files.inspection.surroundings import Surroundings, read_surroundings
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders.folder_names import DELETE_SUFFIX, future_of, partition_of
from moldau.log.folders.identity import CLEAN_MARKER, META_PROPERTIES
from moldau.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from moldau.names import TopicPartition
from moldau.runtime import Disk

CONTROLLERS_TOPIC: Final = "__cluster_metadata"
ENTRIES: Final = {FileKind.OFFSET_INDEX: OFFSET_ENTRY, FileKind.TIME_INDEX: TIME_ENTRY}


def verify(disk: Disk, folder: Path, seen: CheckedTotals, others: Collection[str] = ()) -> Iterator[Finding]:
    """Check a folder. Names that begin with one of `others` are ignored. Raises `OSError` if the folder cannot be
    listed."""
    names = disk.list(folder)
    if is_partition(folder, names):
        around, _ = read_surroundings(disk, folder.parent)
        yield from PartitionCheck(disk, folder, _named(folder), around, seen).findings()
        return
    around, wrong = read_surroundings(disk, folder)
    yield from wrong
    yield from _own_files(disk, folder, names)
    there: dict[TopicPartition, uuid.UUID | None] = {}
    for name in names:
        path, tp = folder / name, partition_of(name)
        if tp is not None and _is_folder(disk, path):
            check = PartitionCheck(disk, path, tp, around_controllers(disk, path, tp, around), seen)
            yield from check.findings()
            there[tp] = check.topic_id
        elif name.endswith(DELETE_SUFFIX):
            yield Finding(path, f"{LEFTOVERS[DELETE_SUFFIX]}; the next start removes it", False)
        elif future_of(name) is not None:
            yield Finding(path, "the copy of a partition that moves to this log folder; the next start goes on", False)
        elif leftover_of(name):
            yield Finding(path, LEFTOVERS[leftover_of(name)], False)
        elif name not in FOLDER_FILES and not name.startswith(tuple(others)):
            yield Finding(path, "not a file of a log folder", False)
    yield from _gone(folder, around, there)
    yield from _divided(folder, there)


def around_controllers(disk: Disk, path: Path, tp: TopicPartition, around: Surroundings) -> Surroundings:
    """Kafka 4.4 leaves its controllers' log open at a clean stop, so it is then judged as after an unclean one. The
    folder itself says so: the indexes of a log that was closed end with an entry, those of an open one with room.
    Raises `OSError`."""
    if tp.topic != CONTROLLERS_TOPIC or not around.clean or not _has_room(disk, path):
        return around
    return replace(around, clean=False)


def _has_room(disk: Disk, folder: Path) -> bool:
    """Whether the last entry of an index in the folder is empty."""
    for name in disk.list(folder):
        file_name = file_name_of(name)
        entry = None if file_name is None else ENTRIES.get(file_name.kind)
        if entry is None:
            continue
        with reading.opened(disk, folder / name) as index:
            last = index.read(entry.size, max(0, index.size() - entry.size))
        if last and not any(last):
            return True
    return False


def is_partition(folder: Path, names: Collection[str]) -> bool:
    """Whether a folder is a partition's, judging by its contents; an empty folder is judged by its name."""
    kinds = [file_name.kind for file_name in map(file_name_of, names) if file_name is not None]
    if any(kind in (FileKind.OFFSETS, FileKind.PROPERTIES, FileKind.CLEAN_MARKER) for kind in kinds):
        return False
    return bool(kinds) or (partition_of(folder.name) is not None and not names)


def holds_log(disk: Disk, folder: Path) -> bool:
    """Whether a folder is a log folder or a partition's, judging by its contents. Raises `OSError` if it cannot be
    listed."""
    names = disk.list(folder)
    if is_partition(folder, names) or not FOLDER_FILES.isdisjoint(names):
        return True
    below = (folder / name for name in names if partition_of(name) is not None)
    return any(any(map(file_name_of, disk.list(path))) for path in below if _is_folder(disk, path))


def _named(folder: Path) -> TopicPartition:
    return partition_of(folder.name) or TopicPartition(folder.name, -1)


def _is_folder(disk: Disk, path: Path) -> bool:
    try:
        disk.list(path)
    except NotADirectoryError:
        return False
    except OSError:
        return True
    return True


def _own_files(disk: Disk, folder: Path, names: Collection[str]) -> Iterator[Finding]:
    if META_PROPERTIES in names:
        path = folder / META_PROPERTIES
        try:
            said = reading.properties(reading.text(disk, path) or "")
            if said.get("version") not in ("0", "1"):
                yield Finding(path, "the version is not 0 or 1")
            elif said["version"] == "1" and not {"cluster.id", "node.id"} <= {*said}:
                yield Finding(path, "cluster.id or node.id is missing")
        except CorruptCheckpoint as corrupt:
            yield Finding(path, str(corrupt))
        except OSError as error:
            yield Finding(path, f"the file cannot be read: {error.strerror or error}")
    if CLEAN_MARKER in names:
        path = folder / CLEAN_MARKER
        try:
            said = json.loads(reading.text(disk, path) or "")
            if not isinstance(said, dict) or not isinstance(said.get("brokerEpoch"), int):
                raise ValueError
        except (CorruptCheckpoint, ValueError, RecursionError):
            yield Finding(path, "brokerEpoch is missing", False)
        except OSError as error:
            yield Finding(path, f"the file cannot be read: {error.strerror or error}")


def _gone(folder: Path, around: Surroundings, there: Collection[TopicPartition]) -> Iterator[Finding]:
    for tp in sorted({*(around.recovery_points or {})} - {*there}):
        yield Finding(folder / str(tp), "the partition has a recovery point but no folder", False)


def _divided(folder: Path, there: Mapping[TopicPartition, uuid.UUID | None]) -> Iterator[Finding]:
    """Findings about topics whose partitions have different topic ids."""
    first: dict[str, tuple[TopicPartition, uuid.UUID]] = {}
    for tp, topic_id in there.items():
        if topic_id is not None and first.setdefault(tp.topic, (tp, topic_id))[1] != topic_id:
            path = folder / str(tp) / checkpoints.PARTITION_METADATA
            yield Finding(path, f"the topic id differs from that of {first[tp.topic][0]}")
