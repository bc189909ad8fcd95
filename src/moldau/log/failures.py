"""Log lines for the operator, and errors for clients, when the files of a log cannot be opened or are damaged.

A failing disk is not handled here: its log folder logs that itself, once, as it goes offline.
"""

import logging
from pathlib import Path

from moldau.errors import ErrorCode, KafkaError
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
