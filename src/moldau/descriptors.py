"""How the file descriptors of a process are shared out, once, at the start (ARCHITECTURE.md, D20).

Files that the log keeps open, files that unsent replies hold, and connections each have a share; together the shares
never exceed the process's limit, so a flood of connections cannot keep the log from opening a segment.
"""

from typing import NamedTuple

from moldau.errors import StorageError
from moldau.log.files import HELD_MAX, OPEN_FILES_MAX

SPARE_DESCRIPTORS = 64
"""Kept for everything that is neither a file of the log nor a connection."""
PER_CONNECTION = 3
"""Descriptors of one connection: its socket, the duplicate that its replies are sent through, and one file, which a
reply may hold even when the share of held files is used up."""


class Shares(NamedTuple):
    """Descriptors for files that the log keeps open and for files that replies hold, and the number of connections."""

    open_files: int
    held: int
    connections: int


def share_out(descriptors: int | None) -> Shares:
    """The shares of a process that may open this many files and sockets; None means unlimited. Raises `StorageError`
    if no descriptor is left for a connection."""
    if descriptors is None:
        return Shares(OPEN_FILES_MAX, HELD_MAX, 2**31 - 1)
    open_files, held = min(OPEN_FILES_MAX, descriptors // 5), min(HELD_MAX, descriptors // 8)
    connections = (descriptors - open_files - held - SPARE_DESCRIPTORS) // PER_CONNECTION
    if connections < 1:
        raise StorageError(
            f"this process may open only {descriptors} files and sockets, too few to serve a client: "
            "raise the limit (`ulimit -n`, LimitNOFILE in systemd)"
        )
    return Shares(open_files, held, connections)
