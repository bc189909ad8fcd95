"""The folder of a command's Spark (its log, its temporary files): removed however the command ends.

The command removes its folder when it ends. If it is killed, its JVM does so (`driver_jvm.py`), and if both are killed,
the next command does: a command holds a lock on its folder for as long as it lives, so a folder that can be locked
belongs to nobody. Locks, unlike process ids, are never taken over by another process.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "moldau-spark-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder in the directory for temporary files (`TMPDIR`), which exists while the block runs; folders that killed
    commands of this user have left there are removed first."""
    remove_abandoned(Path(tempfile.gettempdir()))
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned(below: Path) -> None:
    """Remove the folders of commands that are dead. Others' folders, and links, stay."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(below):
            ours = entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
            if ours and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # another command has just removed it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return  # its command lives
    finally:
        os.close(lock)


def _locked_folder() -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock. Made again if another command removed it before that."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # a file system without locks: then nobody can lock this folder either
            fcntl.flock(lock, fcntl.LOCK_SH)
        if folder.exists() and os.path.samestat(os.stat(folder), os.fstat(lock)):
            return folder, lock
        os.close(lock)
