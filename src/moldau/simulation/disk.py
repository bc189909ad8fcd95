"""A disk in memory that tells *written* from *flushed*, so that a crash can lose, tear and reorder what was not
flushed.

A file's bytes are kept twice: as a reader sees them, and as they would be found after a power loss, with the writes
since the last flush in between. A crash keeps the flushed bytes and, of the rest, whatever sectors the seed says.
Names are kept as a file system with an ordered journal keeps them: a crash keeps a prefix of the changes to each
folder, at least up to the last `sync_folder`. SIGKILL of a process is no crash of the disk: then nothing that was
written is lost.
"""

import copy
import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

from moldau.errors import StorageError
from moldau.runtime import Buffer, File

SECTOR_BYTES = 512


class Content:
    """The bytes of a file; what was only made room for, as preallocated indexes are, takes none here."""

    def __init__(self) -> None:
        self.size = 0
        self._data = bytearray()

    def read(self, length: int, at: int) -> bytes:
        end = min(at + length, self.size)
        found = bytes(self._data[at:end])
        return found + bytes(max(end - at - len(found), 0))

    def write(self, data: Buffer, at: int) -> None:
        if not data:
            return
        if at > len(self._data):
            self._data.extend(bytes(at - len(self._data)))
        self._data[at : at + len(data)] = data
        self.size = max(self.size, at + len(data))

    def resize(self, size: int) -> None:
        del self._data[size:]
        self.size = size


Write = tuple[int, bytes | None]
"""(position, bytes), or (size, None) for a cut or an extension."""


class Inode:
    """One file: as it is read, as it would be found after a power loss, and the writes that make the difference."""

    def __init__(self) -> None:
        self.now = Content()
        self.flushed = Content()
        self.pending: list[Write] = []

    def change(self, write: Write) -> None:
        _apply_write(self.now, write)
        self.pending.append(write)

    def flush(self) -> None:
        for write in self.pending:
            _apply_write(self.flushed, write)
        self.pending.clear()

    def crash(self, seed: random.Random) -> None:
        """Become what is found after a power loss: of each write not flushed, the sectors that the seed says."""
        for position, data in self.pending:
            if data is None:
                if seed.random() < 0.5:
                    self.flushed.resize(position)
                continue
            for start in range(0, len(data), SECTOR_BYTES):
                if seed.random() < 0.5:
                    self.flushed.write(data[start : start + SECTOR_BYTES], position + start)
        self.pending.clear()
        self.now = copy.deepcopy(self.flushed)


def _apply_write(content: Content, write: Write) -> None:
    position, data = write
    if data is None:
        content.resize(position)
    else:
        content.write(data, position)


class SimulatedFile:
    def __init__(self, inode: Inode, writable: bool, disk: "SimulatedDisk"):
        self._inode = inode
        self._writable = writable
        self._disk = disk
        self._closed = False

    def read(self, length: int, at: int) -> bytes:
        self._check_open()
        return self._inode.now.read(length, at)

    def write(self, data: Buffer, at: int) -> None:
        self._check()
        self._inode.change((at, bytes(data)))

    def size(self) -> int:
        self._check_open()
        return self._inode.now.size

    def truncate(self, size: int) -> None:
        self._check()
        self._inode.change((size, None))

    def flush(self) -> None:
        self._check_open()
        self._inode.flush()

    def close(self) -> None:
        """The bytes stay where they are."""
        self._closed = True

    def fileno(self) -> int | None:
        return None

    def _check(self) -> None:
        self._check_open()
        if not self._writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _check_open(self) -> None:
        self._disk.check_alive()
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))


Change = tuple[str, Inode | None]
"""A name that now stands for that file, or (None) for nothing."""


class Folder:
    def __init__(self) -> None:
        self.now: dict[str, Inode] = {}
        self.synced: dict[str, Inode] = {}
        self.pending: list[tuple[Change, ...]] = []

    def change(self, *changes: Change) -> None:
        """One step of the journal: all of it or nothing lasts."""
        _apply(self.now, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        self.synced = dict(self.now)
        self.pending.clear()

    def crash(self, seed: random.Random) -> None:
        for changes in self.pending[: seed.randint(0, len(self.pending))]:
            _apply(self.synced, changes)
        self.now = dict(self.synced)
        self.pending.clear()


def _apply(names: dict[str, Inode], changes: tuple[Change, ...]) -> None:
    for name, inode in changes:
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


class SimulatedDisk:
    """See `runtime.Disk`. Folders are made and renamed as whole and last at once; files are where crashes happen.

    One object is the disk as one process sees it: after a crash or a kill, the next process gets another, and whatever
    the dead one still tries fails.
    """

    def __init__(self, folders: dict[str, Folder] | None = None) -> None:
        self._folders = folders if folders is not None else {"/": Folder()}
        self._locked: dict[str, None] = {}
        self._alive = True

    def after_crash(self, seed: random.Random) -> "SimulatedDisk":
        """The power failed: what was not flushed is lost, torn or reordered."""
        inodes: dict[int, Inode] = {}
        for path in sorted(self._folders):
            folder = self._folders[path]
            for inode in [*folder.now.values(), *folder.synced.values()]:
                inodes.setdefault(id(inode), inode)
            folder.crash(seed)
        for inode in inodes.values():
            inode.crash(seed)
        return self.after_kill()

    def after_kill(self) -> "SimulatedDisk":
        """The process was killed, the machine lives: what was written stays, every lock is free."""
        self._alive = False
        return SimulatedDisk(self._folders)

    def check_alive(self) -> None:
        if not self._alive:
            raise OSError(errno.EIO, "this process is dead")

    def _folder(self, path: Path) -> Folder:
        self.check_alive()
        folder = self._folders.get(str(path))
        if folder is None:
            self._check_no_file(path)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return folder

    def _check_no_file(self, path: Path) -> None:
        """Nothing can be below a file."""
        for each in (path, *path.parents):
            if str(each) not in self._folders and self.exists(each):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        folder = self._folder(path.parent)
        if str(path) in self._folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        inode = folder.now.get(path.name)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            inode = Inode()
            folder.change((path.name, inode))
        return SimulatedFile(inode, writable, self)

    def exists(self, path: Path) -> bool:
        folder = self._folders.get(str(path.parent))
        return str(path) in self._folders or (folder is not None and path.name in folder.now)

    def size(self, path: Path) -> int:
        return self.open(path, writable=False).size()

    def modified_ms(self, path: Path) -> int:
        """The simulation keeps no times of files: as old as the epoch."""
        self.size(path)
        return 0

    def list(self, folder: Path) -> list[str]:
        below = str(folder).rstrip("/") + "/"
        children = [p[len(below) :] for p in self._folders if p.startswith(below) and "/" not in p[len(below) :]]
        return sorted([*self._folder(folder).now, *(child for child in children if child)])

    def make_folder(self, folder: Path) -> None:
        if str(folder) not in self._folders:
            if self.exists(folder):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
            self._check_no_file(folder.parent)
        for each in [*reversed(folder.parents), folder]:
            self._folders.setdefault(str(each), Folder())

    def rename(self, old: Path, new: Path) -> None:
        if str(old) in self._folders:
            self._rename_folder(str(old), str(new))
            return
        source, target = self._folder(old.parent), self._folder(new.parent)
        inode = source.now.get(old.name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(old))
        if str(new) in self._folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(new))
        if source is target:
            source.change((old.name, None), (new.name, inode))
        else:
            target.change((new.name, inode))
            source.change((old.name, None))

    def _rename_folder(self, old: str, new: str) -> None:
        if new in self._folders and self.list(Path(new)):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        if new not in self._folders and self.exists(Path(new)):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), new)
        self._folder(Path(new).parent)
        for path in [p for p in self._folders if p == old or p.startswith(old + "/")]:
            self._folders[new + path[len(old) :]] = self._folders.pop(path)

    def remove(self, path: Path) -> None:
        name = str(path)
        if name in self._folders:
            for below in [p for p in self._folders if p == name or p.startswith(name + "/")]:
                del self._folders[below]
        elif self.exists(path):
            self._folder(path.parent).change((path.name, None))

    def sync_folder(self, folder: Path) -> None:
        self._folder(folder).sync()

    def lock(self, path: Path) -> Callable[[], None]:
        if str(path) in self._locked:
            raise StorageError(f"another broker uses {path.parent}: stop it, or give this one a --data-dir of its own")
        self._locked[str(path)] = None
        self.open(path, create=True)
        return lambda: self._locked.pop(str(path), None)
