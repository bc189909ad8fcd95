"""Which files a command of `moldau log` looks at, and that no broker is using them."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Option
from moldau.errors import StorageError
from moldau.files.inspection.kinds import file_name_of
from moldau.log.folders.identity import LOCK
from moldau.runtime import File, RealDisk, is_locked

Force = Annotated[bool, Option("--force", help="Read the files even if a broker is using them.")]


class FilesOnly(RealDisk):
    """The disk, on which only regular files can be opened, not pipes or devices: reading one might never end."""

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        if not (create and not os.path.exists(path)) and not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(0, "it is no file", str(path))
        return super().open(path, create=create, writable=writable)


def files_of(disk: RealDisk, path: Path) -> Iterator[Path]:
    """The file itself, or what a folder has of a log's files, its partitions' included. Raises `OSError`."""
    if not path.is_dir():
        os.stat(path)
        yield path
        return
    for name in disk.list(path):
        if (path / name).is_dir():
            yield from (path / name / below for below in disk.list(path / name) if file_name_of(below))
        elif file_name_of(name):
            yield path / name


def refuse_if_used(path: Path, force: bool) -> None:
    """Raises `StorageError` if a broker holds the folder that the path is in."""
    full = path.resolve()
    for folder in () if force else (full, *list(full.parents)[:2]):
        if is_locked(folder / LOCK):
            raise StorageError(f"a broker is using {folder}: stop it first, or look anyway with --force")
