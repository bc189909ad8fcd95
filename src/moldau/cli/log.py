"""`moldau log`: what is in the files of a broker that does not run."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from moldau.cli.log_lines import json_line, text_line
from moldau.cli.options import Json
from moldau.errors import StorageError
from moldau.log.folder import LOCK
from moldau.log.inspection.documents import documents
from moldau.log.inspection.kinds import file_name_of
from moldau.runtime import File, RealDisk, is_locked

app = typer.Typer(name="log", help="The files of a stopped broker: dump.", no_args_is_help=True)

Force = Annotated[bool, typer.Option("--force", help="Look even if a broker is using the files.")]


class FilesOnly(RealDisk):
    """The disk, where a thing that is no file (a pipe, a device) cannot be opened: reading one might never end."""

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(0, "it is no file", str(path))
        return super().open(path, create=create, writable=writable)


@app.command()
def dump(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders of partitions.")],
    records: Annotated[bool, typer.Option("--records", "-r", help="Also every record.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """
    Print what is in files of a log: batches, records, indexes, producer snapshots, checkpoints.

    Examples:

      moldau log dump moldau-data/events-0

      moldau log dump moldau-data/events-0/00000000000000000000.log --records --json
    """
    disk = FilesOnly()
    for path in paths:
        refuse_if_used(path, force)
    files = [file for path in paths for file in files_of(disk, path)]
    write, out = json_line if as_json else text_line, sys.stdout.buffer
    bad = 0
    for path in files:
        for document in documents(disk, path, with_records=records):
            out.write(write(document))
            bad += document["type"] == "problem"
    out.flush()
    return 1 if bad else 0


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
