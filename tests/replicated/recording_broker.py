"""A broker on a machine that can lose power: it writes down what it changes on its disk and what it flushes.

usage: python -m tests.replicated.recording_broker server start --data-dir FOLDER ...

The journal is FOLDER.journal, see `Entry`. FOLDER.boot has the machine's boot id. Nothing is really flushed: the test
decides by the journal what a power loss leaves (`machine.Machine`).
"""

import os
import pickle
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from moldau import process
from moldau.cli import main
from moldau.runtime import Buffer, File, FileSystem, RealDisk, RealFile, Runtime


class Entry(NamedTuple):
    """A change, by the number of the file's inode, or by paths."""

    what: Literal["create", "write", "truncate", "flush", "rename", "remove", "make", "sync"]
    inode: int = 0
    at: int = 0
    data: bytes = b""
    path: str = ""
    new_path: str = ""


def journal_of(data: Path) -> Path:
    return data.with_name(f"{data.name}.journal")


def boot_id_of(data: Path) -> Path:
    return data.with_name(f"{data.name}.boot")


class Journal:
    """`lock` is held over a change and its note: notes are in the order of the changes."""

    def __init__(self, path: Path):
        self.lock = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, entry: Entry) -> None:
        data = pickle.dumps(tuple(entry))
        os.write(self._file, len(data).to_bytes(4, "big") + data)


class RecordedFile(RealFile):
    __slots__ = ("_inode", "_journal")

    def __init__(self, opened: RealFile, journal: Journal):
        self._fd, opened._fd = opened._fd, -1
        self._inode = os.fstat(self._fd).st_ino
        self._journal = journal

    def write(self, data: Buffer, at: int) -> None:
        with self._journal.lock:
            super().write(data, at)
            self._journal.note(Entry("write", self._inode, at, bytes(data)))

    def truncate(self, size: int) -> None:
        with self._journal.lock:
            super().truncate(size)
            self._journal.note(Entry("truncate", self._inode, size))

    def flush(self) -> None:
        os.fstat(self._fd)
        with self._journal.lock:
            self._journal.note(Entry("flush", self._inode))


class FlushedOneByOne:
    """A file system that cannot be flushed as a whole."""

    def flush(self) -> bool:
        return False

    def close(self) -> None:
        pass


class RecordedDisk(RealDisk):
    def __init__(self, data: Path):
        self._boot_id = boot_id_of(data)
        self._journal = Journal(journal_of(data))

    def boot_id(self) -> str:
        return self._boot_id.read_text()

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        with self._journal.lock:
            is_new = create and not path.exists()
            return self._recorded(super().open(path, create=create, writable=writable), path, is_new)

    def create_private(self, path: Path) -> File:
        with self._journal.lock:
            return self._recorded(super().create_private(path), path, is_new=True)

    def _recorded(self, opened: File, path: Path, is_new: bool) -> File:
        assert isinstance(opened, RealFile)
        recorded = RecordedFile(opened, self._journal)
        if is_new:
            self._journal.note(Entry("create", recorded._inode, path=str(path)))
        return recorded

    def rename(self, old: Path, new: Path) -> None:
        with self._journal.lock:
            super().rename(old, new)
            self._journal.note(Entry("rename", path=str(old), new_path=str(new)))

    def remove(self, path: Path) -> None:
        with self._journal.lock:
            super().remove(path)
            self._journal.note(Entry("remove", path=str(path)))

    def make_folder(self, folder: Path) -> None:
        with self._journal.lock:
            super().make_folder(folder)
            self._journal.note(Entry("make", path=str(folder)))

    def sync_folder(self, folder: Path) -> None:
        os.stat(folder)
        with self._journal.lock:
            self._journal.note(Entry("sync", path=str(folder)))

    def file_system(self, folder: Path) -> FileSystem:
        return FlushedOneByOne()


def run() -> None:
    data = Path(sys.argv[sys.argv.index("--data-dir") + 1])
    process.Runtime = partial(Runtime, disk=RecordedDisk(data))  # type: ignore[misc, assignment]
    main.main()


if __name__ == "__main__":
    run()
