"""The note in a partition's folder that says: this copy is complete, and takes the place of the one it was made of.

    arrived-from       {"version": 1, "source": <directory.id>, "logStart": 12, "logEnd": 3400}; not a file of Kafka's

It is written before the copy gets the partition's name, and is gone once the other copy has lost that name: while both
have it, nothing is appended to either of them. `arriving` says what a start makes of it.
"""

import json
from pathlib import Path
from typing import Final, NamedTuple

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.runtime import Disk

ARRIVED: Final = "arrived-from"


class Arrival(NamedTuple):
    """`source`: the directory id of the log folder that the copy was made from; the offsets are those of the whole
    log."""

    source: str
    log_start: int
    log_end: int


def note(disk: Disk, folder: Path, arrival: Arrival) -> None:
    """From now on the copy in this folder is known to be complete, after any crash. Raises `OSError`."""
    said = {"version": 1, "source": arrival.source, "logStart": arrival.log_start, "logEnd": arrival.log_end}
    checkpoints.replace_file(disk, folder / ARRIVED, json.dumps(said, separators=(",", ":")).encode())


def noted(disk: Disk, folder: Path) -> Arrival | None:
    """The note in a folder; None if there is none, or one that cannot be read. Raises `OSError`."""
    if not disk.exists(folder / ARRIVED):
        return None
    try:
        said = json.loads(checkpoints.read_whole(disk, folder / ARRIVED) or b"")
        arrival = Arrival(said["source"], said["logStart"], said["logEnd"])
    except (CorruptCheckpoint, ValueError, KeyError, TypeError, RecursionError):
        return None
    return arrival if [type(one) for one in arrival] == [str, int, int] else None


def forget(disk: Disk, folder: Path) -> None:
    """The note has had its effect, or none. Raises `OSError`."""
    if disk.exists(folder / ARRIVED):
        disk.remove(folder / ARRIVED)
        disk.sync_folder(folder)
