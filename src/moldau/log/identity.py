"""What a log folder says of itself as a whole: whose it is (meta.properties), and whether its last stop was clean.

    meta.properties          version=1, cluster.id, node.id (broker.id before KRaft), directory.id (KIP-858); lines that
                             are somebody else's are kept
    .kafka_cleanshutdown     {"version": 0, "brokerEpoch": -1}; that it is there counts, whatever is in it
    closed-offset-checkpoint which logs the last stop had closed when it was cut off, and where they end

All are small files of text that anybody may have edited, and are taken for no more than that.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from moldau.errors import StorageError
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.names import TopicPartition
from moldau.runtime import Disk

CLEAN_MARKER, META_PROPERTIES = ".kafka_cleanshutdown", "meta.properties"
SESSION: Final = "zookeeper-session"
"""The broker's session in ZooKeeper, for the next process that holds the folder."""
NO_BROKER_EPOCH = -1


def read_meta(disk: Disk, folder: Path) -> dict[str, str]:
    """By name; empty if the folder is new. Raises `StorageError`, `OSError`."""
    try:
        data = checkpoints.read_whole(disk, folder / META_PROPERTIES)
    except CorruptCheckpoint as error:
        raise StorageError(f"{error}, which no meta.properties has: put back the one of this log folder") from error
    lines = [line.strip() for line in (data or b"").decode("utf-8", "replace").splitlines()]
    return {
        key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines if line[:1] not in "#!")
    }


def missing_in(meta: Mapping[str, str]) -> list[str]:
    """The missing names that identify a used folder's owner. A folder without a directory.id is given a new one."""
    node = {"node.id", "broker.id"}
    return [*([] if meta.get("cluster.id") else ["cluster.id"]), *([] if node & meta.keys() else ["node.id"])]


def write_meta(disk: Disk, folder: Path, meta: Mapping[str, str]) -> None:
    text = "#\n" + "".join(f"{key}={value}\n" for key, value in meta.items())
    checkpoints.replace_file(disk, folder / META_PROPERTIES, text.encode())


def take_marker(disk: Disk, folder: Path) -> tuple[bool, int]:
    """Whether the last stop was clean, and the broker epoch then. The marker is gone afterwards. Raises `OSError`."""
    path = folder / CLEAN_MARKER
    if not disk.exists(path):
        return False, NO_BROKER_EPOCH
    try:
        epoch = json.loads(checkpoints.read_whole(disk, path) or b"")["brokerEpoch"]
    except (CorruptCheckpoint, ValueError, KeyError, TypeError, RecursionError):
        epoch = NO_BROKER_EPOCH
    disk.remove(path)
    disk.sync_folder(folder)
    return True, epoch if isinstance(epoch, int) else NO_BROKER_EPOCH


def take_closed_ends(disk: Disk, folder: Path) -> dict[TopicPartition, int]:
    """Where the logs end that a stop had closed when it was cut off. The file is gone afterwards, as the marker is:
    nothing that is appended from now on may be taken for closed. Raises `OSError`."""
    path = folder / checkpoints.CLOSED_ENDS
    if not disk.exists(path):
        return {}
    try:
        ends = checkpoints.read_offsets(disk, path)
    except CorruptCheckpoint:
        ends = {}
    disk.remove(path)
    disk.sync_folder(folder)
    return ends


def leave_marker(disk: Disk, folder: Path, broker_epoch: int) -> None:
    marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    checkpoints.replace_file(disk, folder / CLEAN_MARKER, marker.encode())
