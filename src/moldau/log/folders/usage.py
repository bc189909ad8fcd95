"""How much of its volume a log folder's partitions take: what DescribeLogDirs reports (KIP-827)."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from moldau.log.folders.folder import LogFolder
from moldau.names import TopicPartition


class FolderUse(NamedTuple):
    """The content of one log folder: its path, the size of each partition's records (None if the folder is offline),
    and the size and usable free space of its volume, in bytes."""

    path: str
    sizes: Mapping[TopicPartition, int] | None
    total_bytes: int = -1
    usable_bytes: int = -1


def use_of(path: Path, folder: LogFolder | None, wanted: Collection[TopicPartition] | None = None) -> FolderUse:
    """The use of the log folder at `path`, with the sizes of all partitions or of those that are `wanted`; `folder` is
    None if it is offline. Blocks."""
    if folder is None:
        return FolderUse(str(path), None)
    try:
        total, usable = folder.runtime.disk.space(path)
    except OSError:
        return FolderUse(str(path), None)
    if wanted is None:
        logs = list(folder.logs.items())
    else:
        logs = [(tp, log) for tp in wanted if (log := folder.logs.get(tp)) is not None]
    return FolderUse(str(path), {tp: log.size for tp, log in logs}, total, usable)
