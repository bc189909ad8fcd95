"""Opening the embedded metadata at the start of a broker; a copy replaces it if it is missing or damaged.

A broker with data in its log folders had metadata, so empty metadata is never made there: every topic would seem never
to have existed, and automatic creation would reuse the old names. A copy replaces damaged metadata if it knows every
partition in the log folders, and none that it knows is missing. Otherwise the start is refused, and a person decides
with `moldau log repair`.
"""

import logging
from datetime import UTC, datetime
from pathlib import Path

from moldau.cluster.copies import COPY, SPARE, Copy, newest_copy, put_in_place
from moldau.cluster.state.documents import MalformedMetadata
from moldau.cluster.state.reading import read_image
from moldau.errors import StorageError
from moldau.log.folders.folders import LogFolders
from moldau.log.folders.identity import cluster_store
from moldau.log.folders.traces import traces
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.metadata_store.embedded_format import DamagedMetadata
from moldau.runtime import Disk, Runtime

SHOWN = 5

logger = logging.getLogger(__name__)


def open_embedded(folders: LogFolders, node_id: int, runtime: Runtime) -> EmbeddedStore:
    """The metadata in the log folder that has it, which is needed as long as the broker runs; new metadata, in the
    first folder, if nothing was ever kept in any. Blocks. Raises `StorageError`, `OSError`."""
    disk = runtime.disk
    for folder in folders.folders:
        refuse_member(disk, folder.path)
    home, exists = _home(folders, disk)
    folders.needed = home
    wrong = f"{home / FILE_NAME} is missing"
    if exists:
        try:
            return _opened(home, folders, runtime.is_durable)
        except DamagedMetadata as error:
            wrong = str(error)
        except MalformedMetadata as error:
            wrong = f"{home / FILE_NAME} is damaged: {error}"
    elif not (folders.were_used or disk.exists(home / COPY)):
        return EmbeddedStore(home, runtime.is_durable)
    spares = (
        [folder.path / SPARE for folder in folders.serving] if exists else []
    )  # else its folder may be one not named
    copy = newest_copy(disk, [home / COPY, *spares])
    if copy is None:
        raise StorageError(f"{wrong}, and none of its copies can be used: {_remedy(folders)}")
    _fall_back(copy, wrong, folders, node_id, runtime)
    return EmbeddedStore(home, runtime.is_durable)


def refuse_member(disk: Disk, folder: Path) -> None:
    """Raise `StorageError` if this log folder belongs to a broker of several, or is being adopted as one."""
    connect = cluster_store(disk, folder)
    if connect is not None:
        raise StorageError(
            f"{folder} belongs to a broker of the cluster that has its metadata in {connect}: start it with "
            f"--set zookeeper.connect={connect}; if `moldau cluster adopt` was interrupted, run it again first"
        )


def _home(folders: LogFolders, disk: Disk) -> tuple[Path, bool]:
    """The folder with the metadata and True; if no folder has it, the one with its copy, or the first, and False."""
    paths = [folder.path for folder in folders.folders]
    for name in (FILE_NAME, COPY):
        having = [path for path in paths if disk.exists(path / name)]
        if len(having) > 1:
            raise StorageError(
                f"{name} is in both {having[0]} and {having[1]}: remove the one that belongs to another broker"
            )
        if not having and folders.unusable:
            path, error = next(iter(folders.unusable.items()))
            why = error.strerror or error
            raise StorageError(f"no log folder that could be opened has {name}, and {path} cannot be opened: {why}")
        if having:
            return having[0], name == FILE_NAME
    return paths[0], False


def _opened(home: Path, folders: LogFolders, is_durable: bool) -> EmbeddedStore:
    """The store, unless it is empty although the folders were used. Raises `StorageError`."""
    store = EmbeddedStore(home, is_durable)
    try:
        if store.read(read_image()) is None and folders.were_used:
            raise DamagedMetadata(f"{home / FILE_NAME} is empty")
    except BaseException:
        store.close()
        raise
    return store


def _remedy(folders: LogFolders) -> str:
    return (
        f"restore the file, or run `{folders.repair_command}`, which rebuilds it from the partitions; "
        "`moldau log adopt` takes in topics of Apache Kafka"
    )


def _fall_back(copy: Copy, wrong: str, folders: LogFolders, node_id: int, runtime: Runtime) -> None:
    """Replace the metadata by the copy. Raises `StorageError` if the partitions do not agree with it."""
    from moldau.cluster.rebuilding import Known, rebuild, unknown_to  # only a repair needs it

    made = datetime.fromtimestamp(copy.made_ms // 1000, UTC).isoformat()
    on_disk = [trace for folder in folders.serving for trace in traces(runtime.disk, folder.path)]
    directories = {str(folder.path): folder.directory_id for folder in folders.serving}
    known = Known(
        node_id, copy.image.cluster_id, directories, runtime.random.uuid, copy.image, producer_id=copy.producer_id
    )
    rebuilt = rebuild(on_disk, known)
    unknown = unknown_to(copy.image, on_disk)
    if unknown:
        names = ", ".join(str(trace.tp) for trace in unknown[:SHOWN]) + (" ..." if len(unknown) > SHOWN else "")
        rebuilt.problems.insert(0, f"{names} are not in it")
    if rebuilt.problems:
        raise StorageError(
            f"{wrong}, and its copy of {made} does not agree with the partitions ({rebuilt.problems[0]}): "
            f"{_remedy(folders)}"
        )
    assert folders.needed is not None
    put_in_place(runtime.disk, folders.needed, EmbeddedStore.file_of(rebuilt.operations(node_id)))
    logger.error("%s; its copy of %s is used instead. Only settings that were changed later are lost", wrong, made)
