"""The names in a log folder: those of partitions, of deleted partitions, and of the folder's own files.

    <topic>-<partition>               a partition; the number has no leading zero and fits 31 bits
    <topic>-<partition>.<id>-delete   a deleted partition, removed later; `<id>` is 32 hexadecimal digits
    <topic>-<partition>.<id>-future   a copy of a partition of another log folder, which moves here

A topic's name has up to 249 characters (Kafka's rule for topic names); before an id it may be cut. All other names are
somebody else's.
"""

import re
import uuid
from typing import Final

from moldau.log import checkpoints
from moldau.log.folders.identity import CLEAN_MARKER, CLUSTER_STORE, LOCK, META_PROPERTIES, RUNNING, SESSION
from moldau.names import TopicPartition

DELETE_SUFFIX: Final = "-delete"
FUTURE_SUFFIX: Final = "-future"
NAME_BYTES_MAX: Final = 255
"""What a file system takes as a name."""
OWN_FILES: Final = frozenset(
    {
        LOCK,
        CLEAN_MARKER,
        META_PROPERTIES,
        RUNNING,
        SESSION,
        CLUSTER_STORE,
        checkpoints.RECOVERY_POINTS,
        checkpoints.LOG_STARTS,
        checkpoints.HIGH_WATERMARKS,
        checkpoints.CLEANER_OFFSETS,
        checkpoints.CLOSED_ENDS,
    }
)
"""The files of a log folder as a whole."""
_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})", re.ASCII)
_FUTURE: Final = re.compile(_PARTITION.pattern + r"\.[0-9a-f]{32}" + FUTURE_SUFFIX, re.ASCII)


def partition_of(name: str) -> TopicPartition | None:
    """The partition that a folder's name stands for; None for any other name."""
    match = _PARTITION.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match and int(match[2]) < 2**31 else None


def future_of(name: str) -> TopicPartition | None:
    """The partition that is copied to a folder of this name, whose topic's name may be cut; None for any other name."""
    match = _FUTURE.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match and int(match[2]) < 2**31 else None


def folder_name_for_deletion(tp: TopicPartition, unique: uuid.UUID) -> str:
    """`topic-partition.<unique>-delete`, with the topic's name truncated if the whole would be too long."""
    return _with_suffix(tp, unique, DELETE_SUFFIX)


def folder_name_for_future(tp: TopicPartition, unique: uuid.UUID) -> str:
    """`topic-partition.<unique>-future`, with the topic's name truncated if the whole would be too long."""
    return _with_suffix(tp, unique, FUTURE_SUFFIX)


def _with_suffix(tp: TopicPartition, unique: uuid.UUID, kind: str) -> str:
    suffix = f"-{tp.partition}.{unique.hex}{kind}"
    return tp.topic[: NAME_BYTES_MAX - len(suffix)] + suffix
