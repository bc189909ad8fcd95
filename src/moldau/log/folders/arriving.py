"""What a start makes of copies of partitions that were on their way from one log folder to another.

    the partition is in another folder                  it counts, and the copy goes on; a note in the copy goes
    it is in no other folder, and a note in the copy    the copy is complete, and is the partition from now on; if the
    says that it is complete                            folder it came from may still have it, nothing is served
    it is in no folder, and the copy has no note        the partition is lost: the copy may lack records
    it is in two folders, one of them with a note       the swap was cut off: the one that the metadata names counts

Both copies have the same records while both have the partition's name, but an older note may lie in a folder that was
offline since. So the metadata decide, and else the copy without a note, which must have been served since.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau.log.folders import arrival
from moldau.log.folders.arrival import Arrival
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folder_names import folder_name_for_deletion, folder_name_for_future
from moldau.names import TopicPartition

logger = logging.getLogger(__name__)


def settle_copies(
    by_folder: Mapping[LogFolder, list[TopicPartition]],
    copies: Mapping[LogFolder, Mapping[TopicPartition, str]],
    made: Mapping[TopicPartition, str],
    failed: Callable[[LogFolder, OSError], None],
) -> None:
    """Bring what is on the disks in line with the table above: `by_folder` (the partitions of each log folder) and the
    copies that the folders have found. `made`: the directory id of the folder in which the metadata has each partition.
    `failed` is called with a folder whose disk fails. Blocks."""
    homes: dict[TopicPartition, list[LogFolder]] = {}
    for folder, partitions in by_folder.items():
        for tp in partitions:
            homes.setdefault(tp, []).append(folder)
    for tp, folders in homes.items():
        for folder in folders:
            try:
                if _settle_home(tp, folder, folders, by_folder, made.get(tp)):
                    break
            except OSError as error:
                failed(folder, error)
    for folder, names in copies.items():
        for tp, name in names.items():
            try:
                _settle_copy(folder, tp, name, by_folder, made.get(tp))
            except OSError as error:
                failed(folder, error)


def _settle_home(
    tp: TopicPartition,
    folder: LogFolder,
    folders: Sequence[LogFolder],
    by_folder: Mapping[LogFolder, list[TopicPartition]],
    made: str | None,
) -> bool:
    """A partition has its name in this log folder, and in all of `folders`. Returns whether it has a note here."""
    arrived = arrival.noted(folder.runtime.disk, folder.path / str(tp))
    if arrived is None:
        return False
    others = [other for other in folders if other is not folder]
    if not others and _counts(folder, arrived, by_folder, made):
        folder.arrived[tp] = arrived
    elif not others:
        _leave(tp, folder, by_folder)
    elif len(others) == 1 and made == folder.directory_id:
        _rename(others[0], str(tp), folder_name_for_deletion(tp, folder.runtime.random.uuid()))
        by_folder[others[0]].remove(tp)
        folder.arrived[tp] = arrived
    elif len(others) == 1:
        name = folder_name_for_future(tp, folder.runtime.random.uuid())
        _rename(folder, str(tp), name)
        by_folder[folder].remove(tp)
        arrival.forget(folder.runtime.disk, folder.path / name)
        folder.futures.found[tp] = name
    return True


def _settle_copy(
    folder: LogFolder,
    tp: TopicPartition,
    name: str,
    by_folder: Mapping[LogFolder, list[TopicPartition]],
    made: str | None,
) -> None:
    disk = folder.runtime.disk
    arrived = arrival.noted(disk, folder.path / name)
    is_there = any(tp in partitions for partitions in by_folder.values())
    if is_there and tp in by_folder.get(folder, ()):
        _rename(folder, name, folder_name_for_deletion(tp, folder.runtime.random.uuid()))
    elif is_there:
        arrival.forget(disk, folder.path / name)
        folder.futures.found[tp] = name
    elif arrived is not None and _counts(folder, arrived, by_folder, made):
        _rename(folder, name, str(tp))
        by_folder[folder].append(tp)
        folder.arrived[tp] = arrived
    else:
        folder.futures.found[tp] = name


def _counts(
    folder: LogFolder, arrived: Arrival, by_folder: Mapping[LogFolder, list[TopicPartition]], made: str | None
) -> bool:
    """Whether the log folder that the copy came from has certainly not been served since the copy was complete."""
    return made == folder.directory_id or any(other.directory_id == arrived.source for other in by_folder)


def _leave(tp: TopicPartition, folder: LogFolder, by_folder: Mapping[LogFolder, list[TopicPartition]]) -> None:
    by_folder[folder].remove(tp)
    logger.error(
        "%s in %s is not served: it had just been moved there from a log folder that is offline or missing, which may "
        "have later records. Repair that one's disk, name it in log.dirs, and restart the broker", tp, folder.path,
    )  # fmt: skip


def _rename(folder: LogFolder, old: str, new: str) -> None:
    path: Path = folder.path
    folder.runtime.disk.rename(path / old, path / new)
    folder.runtime.disk.sync_folder(path)
