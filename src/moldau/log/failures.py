"""Log lines for the operator, and errors for clients, when the files of a log cannot be opened or are damaged, or its
records have times with which they cannot be deleted.

A failing disk is not handled here: its log folder logs that itself, once, as it goes offline.
"""

import logging
from pathlib import Path

from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.notices import Notices

notices = Notices(logging.getLogger(__name__))


def no_descriptor(path: Path, error: OSError) -> KafkaError:
    """The process can open no more files: returns what to answer. Clients try again, and the disk is not at fault."""
    notices.error(
        "",
        "a file in %s cannot be opened: %s. Requests that need it are answered with an error that clients retry. "
        "Raise the limit of open files (`ulimit -n`, LimitNOFILE in systemd), or lower max.connections",
        path,
        error.strerror,
    )
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no file descriptor is left to open a file in {path}; try again")


def damaged(path: Path, error: Exception) -> None:
    """A batch in a partition's folder, or in a file of it, cannot be read."""
    notices.error(
        str(path),
        "%s is damaged: %s. Requests that need that batch are refused; `moldau log verify` shows details",
        path,
        error,
    )


def kept_by_its_time(tp: TopicPartition, base_offset: int, timestamp_ms: int) -> None:
    """A segment is not deleted, and none behind it, since a record in it is stamped with a time in the future."""
    notices.warning(
        str(tp),
        "%s keeps its records beyond retention.ms: one in the segment at offset %d is stamped %d ms since 1970, which "
        "is yet to come. Delete them (`moldau topics delete-records`), or set retention.bytes; with "
        "message.timestamp.after.max.ms the topic refuses such records",
        tp,
        base_offset,
        timestamp_ms,
    )
