"""Recognises the files of a log folder by their names.

00000000000000000000.log, .index, .timeindex, .txnindex, .snapshot    named by an offset
the same with suffix .deleted, .cleaned or .swap                      left by a deletion or a compaction
leader-epoch-checkpoint, partition.metadata                           one in each partition's folder
arrived-from                                                          in the folder of a partition that has moved
the four checkpoints, meta.properties, .kafka_cleanshutdown           one in each log folder
"""

import enum
from typing import Final, NamedTuple

from moldau.log import checkpoints
from moldau.log.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from moldau.log.folders.arrival import ARRIVED
from moldau.log.folders.folder_names import DELETE_SUFFIX, OWN_FILES
from moldau.log.folders.identity import CLEAN_MARKER, META_PROPERTIES

DIGITS: Final = 20
OFFSET_DIGITS_MAX: Final = 2**63 - 1


class FileKind(enum.Enum):
    """The kind of a file; the value is its name in messages."""

    LOG = "log"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TRANSACTION_INDEX = "transaction index"
    SNAPSHOT = "producer snapshot"
    LEADER_EPOCHS = "leader epochs"
    TOPIC_ID = "topic id"
    OFFSETS = "offsets by partition"
    PROPERTIES = "properties"
    CLEAN_MARKER = "mark of a clean stop"
    ARRIVAL = "note of a complete copy"


_BY_SUFFIX: Final = {
    LOG_SUFFIX: FileKind.LOG,
    INDEX_SUFFIX: FileKind.OFFSET_INDEX,
    TIME_INDEX_SUFFIX: FileKind.TIME_INDEX,
    TRANSACTION_INDEX_SUFFIX: FileKind.TRANSACTION_INDEX,
    SNAPSHOT_SUFFIX: FileKind.SNAPSHOT,
}
_BY_NAME: Final = {
    checkpoints.LEADER_EPOCHS: FileKind.LEADER_EPOCHS,
    checkpoints.PARTITION_METADATA: FileKind.TOPIC_ID,
    checkpoints.RECOVERY_POINTS: FileKind.OFFSETS,
    checkpoints.LOG_STARTS: FileKind.OFFSETS,
    checkpoints.HIGH_WATERMARKS: FileKind.OFFSETS,
    checkpoints.CLEANER_OFFSETS: FileKind.OFFSETS,
    checkpoints.CLOSED_ENDS: FileKind.OFFSETS,
    META_PROPERTIES: FileKind.PROPERTIES,
    CLEAN_MARKER: FileKind.CLEAN_MARKER,
    ARRIVED: FileKind.ARRIVAL,
}
PARTITION_FILES: Final = (checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA, ARRIVED)
CONTROLLERS_FILES: Final = ("quorum-state", "bootstrap.checkpoint")
"""Files of Kafka's controllers, in the folder of their metadata log and beside it."""
FOLDER_FILES: Final = OWN_FILES | {*_BY_NAME, *CONTROLLERS_FILES} - {*PARTITION_FILES}
LEFTOVERS: Final = {
    DELETED_SUFFIX: "files left by a deletion",
    CLEANED_SUFFIX: "files left by a compaction that did not finish",
    SWAP_SUFFIX: "files left by a compaction that was interrupted while it replaced segments",
    TEMPORARY_SUFFIX: "files left by writes that did not finish",
    DELETE_SUFFIX: "left by the deletion of a topic",
}
"""The meaning of each suffix; the next start of the broker finishes or removes such files."""


class FileName(NamedTuple):
    kind: FileKind
    offset: int
    """The offset in the file's name; -1 if the name has none."""
    leftover: str
    """The suffix of a leftover, or empty."""


def file_name_of(name: str) -> FileName | None:
    """The parts of a file name; None if it is not the name of a known file."""
    kind = _BY_NAME.get(name)
    if kind is not None:
        return FileName(kind, -1, "")
    leftover = leftover_of(name)
    digits, dot, suffix = name.removesuffix(leftover).partition(".")
    kind = _BY_SUFFIX.get(dot + suffix)
    if kind is None or len(digits) != DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    return FileName(kind, int(digits), leftover) if int(digits) <= OFFSET_DIGITS_MAX else None


def leftover_of(name: str) -> str:
    """The suffix that marks the file as a leftover, or empty."""
    return next((suffix for suffix in LEFTOVERS if name.endswith(suffix)), "")
