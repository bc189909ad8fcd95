"""What a log folder says of itself as a whole: whose it is (meta.properties), and whether its last stop was clean.

    meta.properties          version=1, cluster.id, node.id (broker.id before KRaft), directory.id (KIP-858); lines that
                             are somebody else's are kept
    .kafka_cleanshutdown     {"version": 0, "brokerEpoch": -1}; that it is there counts, whatever is in it
    running-broker           {"version": 1, "brokerEpoch": 17, "bootId": ..., "lock": ...} in a cluster: the
                             registration that the folder was served in last, the machine's boot then, and the mark of
                             `.lock`: a copy of the folder, which may lack what was appended since, has another one
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
LOCK: Final = ".lock"
RUNNING: Final = "running-broker"
SESSION: Final = "zookeeper-session"
"""The broker's session in ZooKeeper, for the next process that holds the folder."""
CLUSTER_STORE: Final = "cluster-store"
"""The `zookeeper.connect` of the cluster of several that the folder's broker belongs to, or is being adopted by."""
NO_BROKER_EPOCH = -1


def read_meta(disk: Disk, folder: Path) -> dict[str, str]:
    """By name; empty if the folder is new. Raises `StorageError`, `OSError`."""
    try:
        data = checkpoints.read_whole(disk, folder / META_PROPERTIES)
    except CorruptCheckpoint as error:
        raise StorageError(f"{error}, so it is not a meta.properties: restore the one of this log folder") from error
    lines = [line.strip() for line in (data or b"").decode("utf-8", "replace").splitlines()]
    return {
        key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines if line[:1] not in "#!")
    }


def missing_in(meta: Mapping[str, str]) -> list[str]:
    """The missing names that identify a used folder's owner. A folder without a directory.id is given a new one."""
    node = {"node.id", "broker.id"}
    return [*([] if meta.get("cluster.id") else ["cluster.id"]), *([] if node & meta.keys() else ["node.id"])]


def claimed(
    meta: Mapping[str, str], path: Path, cluster_id: str, node_id: int, directory_id: str, remedy: str
) -> dict[str, str]:
    """The `meta` of a folder that belongs to this node of this cluster; unchanged if that is complete. `remedy`: the
    end of the sentence that refuses the folder. Raises `StorageError` if it belongs to another node."""
    theirs, node = meta.get("cluster.id"), meta.get("node.id", meta.get("broker.id"))
    if theirs is not None and theirs != cluster_id:
        raise StorageError(f"{path} belongs to the cluster {theirs}, not to {cluster_id}: {remedy}")
    if node is not None and node != str(node_id):
        raise StorageError(f"{path} belongs to node {node}, not to {node_id}: {remedy}")
    if theirs is not None and node is not None and "directory.id" in meta:
        return dict(meta)
    own = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id), "directory.id": directory_id}
    return {**meta, **own}


def cluster_store(disk: Disk, folder: Path) -> str | None:
    """The `zookeeper.connect` of the cluster that the folder's broker is one of; None if the broker is, or may be,
    alone. Raises `OSError`."""
    try:
        data = checkpoints.read_whole(disk, folder / CLUSTER_STORE)
    except CorruptCheckpoint:
        return "?"
    return None if data is None else data.decode("utf-8", "replace").strip() or "?"


def note_cluster_store(disk: Disk, folder: Path, connect: str) -> None:
    """The folder's broker is one of several from now on. Raises `OSError`."""
    if cluster_store(disk, folder) != connect:
        checkpoints.replace_file(disk, folder / CLUSTER_STORE, f"{connect}\n".encode())


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


def note_running(disk: Disk, folder: Path, broker_epoch: int) -> None:
    """From now on the folder is served in this registration of the broker. Flushes. Raises `OSError`."""
    running = {
        "version": 1,
        "brokerEpoch": broker_epoch,
        "bootId": disk.boot_id(),
        "lock": disk.mark(folder / LOCK),
    }
    checkpoints.replace_file(disk, folder / RUNNING, json.dumps(running, separators=(",", ":")).encode())


def forget_running(disk: Disk, folder: Path) -> None:
    """The folder may have lost records. Raises `OSError`."""
    if disk.exists(folder / RUNNING):
        disk.remove(folder / RUNNING)
        disk.sync_folder(folder)


def running_epoch(disk: Disk, folder: Path) -> int:
    """The broker epoch that the folder was served in last, if the machine has not been started since and the folder is
    not a copy; else -1: a process that ended in any way has lost nothing then. Raises `OSError`."""
    boot_id, mark = disk.boot_id(), disk.mark(folder / LOCK)
    try:
        document = json.loads(checkpoints.read_whole(disk, folder / RUNNING) or b"")
        is_here = boot_id and (document["bootId"], document["lock"]) == (boot_id, mark)
        epoch = document["brokerEpoch"] if is_here else NO_BROKER_EPOCH
    except (CorruptCheckpoint, ValueError, KeyError, TypeError, RecursionError):
        return NO_BROKER_EPOCH
    return epoch if isinstance(epoch, int) else NO_BROKER_EPOCH
