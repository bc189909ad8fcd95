"""The small text files beside the log, and how any of them is replaced in one step.

    recovery-point-offset-checkpoint, log-start-offset-checkpoint, replication-offset-checkpoint (the high watermarks):
        0                           version
        2                           how many lines follow
        flights 0 120               topic, partition, offset
        flights 1 119
    leader-epoch-checkpoint (in each partition's folder):
        0                           version
        1                           how many lines follow
        3 120                       epoch, first offset
    partition.metadata (in each partition's folder):
        version: 0
        topic_id: AAAAAAAAAAAAAAAAAAAAAQ

A file is written under another name, flushed, and renamed: a reader sees the old one or the new one. A reader takes a
file whole or not at all: a wrong version, a malformed line or a wrong count is `CorruptCheckpoint`. What each number
means is for others to know.
"""

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from moldau.names import TopicPartition, long_id, short_id
from moldau.runtime import Disk

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CLOSED_ENDS: Final = "closed-offset-checkpoint"
"""Where the logs end that a stop had closed when it was cut off; not one of Kafka's files."""
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
FILE_BYTES_MAX: Final = 256 << 20
"""A checkpoint larger than this is none: one line a partition is far below it."""
_VERSION = "0"


class CorruptCheckpoint(Exception):
    """The file is not what it should be; it cannot be used at all."""


def replace_file(disk: Disk, path: Path, data: bytes, flush: bool = True) -> None:
    """The file has this content, now and (with `flush`) after any crash."""
    stage_file(disk, path, data, flush)
    place_file(disk, path)
    if flush:
        disk.sync_folder(path.parent)


def replace_private_file(disk: Disk, path: Path, data: bytes, flush: bool = True) -> None:
    """As `replace_file`; no other user can read the file."""
    disk.remove(_staged(path))
    file = disk.create_private(_staged(path))
    try:
        file.write(data, 0)
        if flush:
            file.flush()
    finally:
        file.close()
    place_file(disk, path)
    if flush:
        disk.sync_folder(path.parent)


def stage_file(disk: Disk, path: Path, data: bytes, flush: bool) -> None:
    """Write the content beside the file, for `place_file`: not before it is flushed, or a power loss could leave the
    name without the bytes."""
    file = disk.open(_staged(path), create=True)
    try:
        file.truncate(0)
        file.write(data, 0)
        if flush:
            file.flush()
    finally:
        file.close()


def place_file(disk: Disk, path: Path) -> None:
    disk.rename(_staged(path), path)


def _staged(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def read_whole(disk: Disk, path: Path) -> bytes | None:
    """All of a small file; None if it is not there."""
    try:
        file = disk.open(path, writable=False)
    except FileNotFoundError:
        return None
    try:
        size = file.size()
        if size > FILE_BYTES_MAX:
            raise CorruptCheckpoint(f"{path} has {size} bytes")
        return file.read(size, 0)
    finally:
        file.close()


def _read_lines(disk: Disk, path: Path) -> list[str]:
    """The lines behind version and count; none if there is no file, or an empty one, as Kafka begins with.

    Raises `CorruptCheckpoint`.
    """
    data = read_whole(disk, path)
    if not data:
        return []
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise CorruptCheckpoint(f"{path} is no text") from None
    if len(lines) < 2 or lines[0] != _VERSION or not _is_number(lines[1]) or int(lines[1]) != len(lines) - 2:
        raise CorruptCheckpoint(f"{path} does not begin with version {_VERSION} and the number of its lines")
    return lines[2:]


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 20


def _content(lines: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def read_offsets(disk: Disk, path: Path) -> dict[TopicPartition, int]:
    """Offsets by partition; none if there is no file. Raises `CorruptCheckpoint`."""
    offsets = {}
    for line in _read_lines(disk, path):
        parts = line.split(" ")
        if len(parts) != 3 or not _is_number(parts[1]) or not _is_number(parts[2]):
            raise CorruptCheckpoint(f"{path} has a malformed line: {line[:300]!r}")
        offsets[TopicPartition(parts[0], int(parts[1]))] = int(parts[2])
    return offsets


def write_offsets(disk: Disk, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    lines = [f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items())]
    replace_file(disk, path, _content(lines))


def read_epochs(disk: Disk, folder: Path) -> list[tuple[int, int]]:
    """(epoch, start offset) of a partition; none if there is no file. Raises `CorruptCheckpoint`."""
    epochs = []
    for line in _read_lines(disk, folder / LEADER_EPOCHS):
        epoch, _, start_offset = line.partition(" ")
        if not _is_number(epoch) or not _is_number(start_offset):
            raise CorruptCheckpoint(f"{folder / LEADER_EPOCHS} has a malformed line: {line[:300]!r}")
        epochs.append((int(epoch), int(start_offset)))
    return epochs


def write_epochs(disk: Disk, folder: Path, epochs: Iterable[tuple[int, int]]) -> None:
    replace_file(disk, folder / LEADER_EPOCHS, _epochs(epochs))


def stage_epochs(disk: Disk, folder: Path, epochs: Iterable[tuple[int, int]]) -> None:
    """As `stage_file`, without a flush."""
    stage_file(disk, folder / LEADER_EPOCHS, _epochs(epochs), flush=False)


def _epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    return _content([f"{epoch} {start}" for epoch, start in epochs])


def read_topic_id(disk: Disk, folder: Path) -> uuid.UUID | None:
    """The topic id in a partition's folder; None if there is no file. Raises `CorruptCheckpoint`."""
    path = folder / PARTITION_METADATA
    data = read_whole(disk, path)
    if data is None:
        return None
    fields = dict(line.split(": ", 1) for line in data.decode("utf-8", "replace").splitlines() if ": " in line)
    try:
        if fields.get("version") != "0":
            raise ValueError
        return long_id(fields["topic_id"])
    except (KeyError, ValueError):
        raise CorruptCheckpoint(f"{path} names no topic id") from None


def write_topic_id(disk: Disk, folder: Path, topic_id: uuid.UUID) -> None:
    """Not flushed: that goes with the first records of the partition, so that ten thousand are made in a moment."""
    text = f"version: 0\ntopic_id: {short_id(topic_id)}"
    replace_file(disk, folder / PARTITION_METADATA, text.encode(), flush=False)


def flush_topic_id(disk: Disk, folder: Path) -> None:
    flush_file(disk, folder / PARTITION_METADATA)


def flush_file(disk: Disk, path: Path) -> None:
    file = disk.open(path, writable=False)
    try:
        file.flush()
    finally:
        file.close()
