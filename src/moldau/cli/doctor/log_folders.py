"""Facts about log folders as they are on the disk, without reading any record."""

from pathlib import Path
from typing import Final

from moldau.cli.doctor.checks.log_folders import StoppedFolder
from moldau.cli.doctor.machine import PREFIX
from moldau.errors import StorageError
from moldau.files.inspection.kinds import FOLDER_FILES
from moldau.files.inspection.surroundings import read_surroundings
from moldau.log.folders.folder_names import DELETE_SUFFIX, future_of, partition_of
from moldau.log.folders.identity import CLEAN_MARKER, LOCK, read_meta
from moldau.metadata_store.embedded import FILE_NAME as STORE_FILE
from moldau.names import TopicPartition
from moldau.runtime import RealDisk, is_locked

SHOWN_MAX: Final = 20


def folder_facts(path: Path) -> tuple[StoppedFolder, dict[TopicPartition, int]]:
    """What is in a log folder, which exists, and the bytes of each of its partitions. Blocks."""
    in_use = is_locked(path / LOCK)
    try:
        names = sorted(one.name for one in path.iterdir())
        meta = read_meta(RealDisk(), path)
    except (OSError, StorageError) as error:
        return StoppedFolder(str(path), in_use, error=getattr(error, "strerror", None) or str(error)), {}
    sizes = {tp: _size(path / name) for name in names if (tp := partition_of(name)) is not None}
    leftovers = [name for name in names if name.endswith(DELETE_SUFFIX) or future_of(name) is not None]
    around, wrong = read_surroundings(RealDisk(), path)
    was_clean = CLEAN_MARKER in names
    known = {*(around.recovery_points or {})} if was_clean and not in_use else set()
    strange = [name for name in names if not (partition_of(name) or name in leftovers or _is_own(name))]
    facts = StoppedFolder(
        str(path),
        in_use,
        was_clean or not sizes,
        meta.get("node.id", meta.get("broker.id", "")),
        meta.get("cluster.id", ""),
        "" if in_use or not wrong else f"{wrong[0].path.name}: {wrong[0].message}",
        len(sizes),
        sum(sizes.values()),
        strange,
        sorted(map(str, known - sizes.keys())),
        len(leftovers),
    )
    return facts, sizes


def _is_own(name: str) -> bool:
    return name in FOLDER_FILES or name.startswith((STORE_FILE, PREFIX)) or name.endswith(".tmp")


def _size(folder: Path) -> int:
    try:
        return sum(one.stat().st_size for one in folder.iterdir())
    except OSError:  # it goes just now
        return 0
