"""The files of a store are for the broker's user alone: they hold the cluster's secret, and users' credentials."""

import contextlib
import os
import stat
from pathlib import Path

_BESIDE = ("", "-wal", "-shm")
"""SQLite makes the files beside a database with the permissions of the database."""


def make_private(database: Path) -> None:
    """Create the file of a SQLite database, if it does not exist, so that no other user can read it; take away from
    others what they may do with an existing one, where this user may. Raises `OSError`: it cannot be created."""
    os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for suffix in _BESIDE:
        path = f"{database}{suffix}"
        with contextlib.suppress(OSError):  # not there, or another user's
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & 0o077:
                os.chmod(path, mode & 0o700)
