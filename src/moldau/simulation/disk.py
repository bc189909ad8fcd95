"""A simulated disk in memory. It separates *written* from *flushed* bytes, so that a crash can lose, tear and reorder
unflushed writes. Its `Faults` decide at which calls it fails, is full or loses power.

A crash draws one share of unflushed data that survives on the whole disk, from nothing to all; `platter` applies it to
the bytes of files and the names in folders. SIGKILL of a process does not crash the disk: all written data stays.
"""

import errno
import os
import random
from pathlib import Path
from typing import Final

from moldau.errors import StorageError
from moldau.runtime import Buffer, File, FileSystem, Lock
from moldau.simulation.faults import Faults
from moldau.simulation.platter import SECTOR_BYTES, Folder, Inode, InodeOrFolder

__all__ = ["SECTOR_BYTES", "SimulatedDisk", "SimulatedFile"]
SHARES: Final = (0.0, 0.0, 0.1, 0.5, 0.5, 0.5, 0.9, 1.0)
"""The approximate shares of unflushed data that a crash may keep."""


class SimulatedFile:
    def __init__(self, inode: Inode, path: Path, writable: bool, disk: "SimulatedDisk"):
        self._inode = inode
        self._path = path
        self._writable = writable
        self._disk = disk
        self._closed = False

    def read(self, length: int, at: int) -> bytes:
        self._check_open()
        self._disk.call("read", self._path)
        return self._inode.now.read(length, at)

    def write(self, data: Buffer, at: int) -> None:
        self._check()
        error = self._disk.meet("write", self._path)
        if error is not None:
            assert self._disk.faults is not None
            data = memoryview(data)[: self._disk.faults.seed.randint(0, len(data))]
        self._inode.change((at, bytes(data)))
        if error is not None:
            raise error

    def size(self) -> int:
        self._check_open()
        return self._inode.now.size

    def truncate(self, size: int) -> None:
        self._check()
        self._disk.call("truncate", self._path)
        self._inode.change((size, None))

    def flush(self) -> None:
        """Flush. After a failure the unwritten bytes are lost: the next flush succeeds without writing them."""
        self._check_open()
        error = self._disk.meet("fsync", self._path)
        if error is not None:
            assert self._disk.faults is not None
            self._inode.keep(self._disk.faults.seed, self._disk.faults.seed.choice(SHARES[:-1]))
            raise error
        self._inode.flush()

    def close(self) -> None:
        """Close the file. Unflushed bytes stay unflushed."""
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


class SimulatedLock:
    def __init__(self, path: Path, disk: "SimulatedDisk"):
        self._path = path
        self._disk = disk
        self._folder = disk.node(path.parent)

    def __call__(self) -> None:
        self._disk.unlock(self._path)

    def in_place(self) -> bool:
        return self._disk.node(self._path.parent) is self._folder


class SimulatedFileSystem:
    """The whole disk. `SimulatedDisk.flushes_all` decides whether one call can flush all of it."""

    def __init__(self, disk: "SimulatedDisk", root: Folder):
        self._disk = disk
        self._root = root

    def flush(self) -> bool:
        """Flush the whole disk. A failure may lose any unflushed data, as a failed fsync may."""
        self._disk.check_alive()
        if not self._disk.flushes_all:
            return False
        error = self._disk.meet("fsync all", Path("/"))
        if error is not None:
            assert self._disk.faults is not None
            seed = self._disk.faults.seed
            self._root.keep_all(seed, seed.choice(SHARES[:-1]))
            raise error
        self._root.sync_all()
        return True

    def close(self) -> None:
        """Nothing to do: no descriptor is open."""


class SimulatedDisk:
    """Implements `runtime.Disk`.

    One object is the disk of one process. After a crash or a kill the next process gets another object, and every call
    of the dead process fails.
    """

    def __init__(self, root: Folder | None = None, faults: Faults | None = None, boots: int = 1) -> None:
        self.faults = faults
        self._boots = boots
        self.flushes_all = True
        self._root = Folder() if root is None else root
        self._locked: dict[str, None] = {}
        self._alive = True

    def after_crash(self, seed: random.Random) -> "SimulatedDisk":
        """The disk after a power failure: unflushed data is lost, torn or reordered."""
        self._root.crash(seed, seed.choice(SHARES))
        disk = self.after_kill()
        disk._boots += 1
        return disk

    def after_kill(self) -> "SimulatedDisk":
        """The disk after a SIGKILL of the process: all written data stays, and all locks are free."""
        self._alive = False
        return SimulatedDisk(self._root, self.faults, self._boots)

    def fork(self) -> "SimulatedDisk":
        """An independent copy of this disk, without its faults."""
        return SimulatedDisk(self._root.copy({}))

    def mark(self, path: Path) -> str:
        return "original" if self.exists(path) else ""  # nothing copies folders here

    def boot_id(self) -> str:
        return f"boot-{self._boots}"

    def check_alive(self) -> None:
        if not self._alive:
            raise OSError(errno.EIO, "this process is dead")

    def meet(self, name: str, path: Path) -> OSError | None:
        """Register a call of the disk. Returns the error with which it fails, or None."""
        return None if self.faults is None else self.faults.meet(name, path)

    def call(self, name: str, path: Path) -> None:
        """Register a call of the disk. Raises the error with which it fails."""
        if self.faults is not None and (error := self.faults.meet(name, path)) is not None:
            raise error

    def node(self, path: Path) -> InodeOrFolder | None:
        """The file or folder at a path; None if it or its parent does not exist."""
        node: InodeOrFolder | None = self._root
        for name in path.parts[1:]:
            if not isinstance(node, Folder):
                return None
            node = node.now.get(name)
        return node

    def _folder(self, path: Path) -> Folder:
        self.check_alive()
        node = self.node(path)
        if isinstance(node, Folder):
            return node
        self._check_no_file(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    def _check_no_file(self, path: Path) -> None:
        """Raise `NotADirectoryError` if the path or a parent of it is a file."""
        for each in (path, *path.parents):
            if isinstance(self.node(each), Inode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        folder = self._folder(path.parent)
        node = folder.now.get(path.name)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        self.call("open" if node is not None or not create else "create", path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            node = Inode()
            folder.change((path.name, node))
        return SimulatedFile(node, path, writable, self)

    def create_private(self, path: Path) -> File:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        return self.open(path, create=True)

    def exists(self, path: Path) -> bool:
        return self.node(path) is not None

    def size(self, path: Path) -> int:
        self._folder(path.parent)
        self.call("stat", path)
        node = self.node(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return node.now.size if isinstance(node, Inode) else 0

    def modified_ms(self, path: Path) -> int:
        """Always 0: the simulation keeps no modification times."""
        self.size(path)
        return 0

    def set_modified_ms(self, path: Path, ms: int) -> None:
        """Does nothing: the simulation keeps no modification times."""
        self.call("stat", path)

    def list(self, folder: Path) -> list[str]:
        node = self._folder(folder)
        self.call("list", folder)
        return sorted(node.now)

    def make_folder(self, folder: Path) -> None:
        if isinstance(self.node(folder), Inode):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
        self._check_no_file(folder)
        at = self._root
        for depth, name in enumerate(folder.parts[1:]):
            below = at.now.get(name)
            if not isinstance(below, Folder):
                self.call("mkdir", Path(*folder.parts[: depth + 2]))
                below = Folder()
                at.change((name, below))
            at = below

    def rename(self, old: Path, new: Path) -> None:
        source, target = self._folder(old.parent), self._folder(new.parent)
        node, replaced = source.now.get(old.name), target.now.get(new.name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(old))
        if isinstance(node, Inode) and isinstance(replaced, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(new))
        if isinstance(node, Folder) and isinstance(replaced, Inode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(new))
        if isinstance(node, Folder) and isinstance(replaced, Folder) and replaced.now:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(new))
        self.call("rename", old)
        if node is replaced:
            return
        if source is target:
            source.change((old.name, None), (new.name, node))
        else:
            target.change((new.name, node))
            source.change((old.name, None))

    def remove(self, path: Path) -> None:
        node = self.node(path)
        if isinstance(node, Folder):
            for name in sorted(node.now):
                self.remove(path / name)
        if node is not None:
            folder = self._folder(path.parent)
            self.call("remove", path)
            folder.change((path.name, None))

    def sync_folder(self, folder: Path) -> None:
        """Sync the folder's names. A failure may lose unsynced names, as a failed fsync may lose bytes."""
        node = self._folder(folder)
        error = self.meet("fsync folder", folder)
        if error is not None:
            assert self.faults is not None
            node.keep(self.faults.seed, self.faults.seed.choice(SHARES[:-1]))
            raise error
        node.sync()

    def file_system(self, folder: Path) -> FileSystem:
        return SimulatedFileSystem(self, self._root)

    def space(self, folder: Path) -> tuple[int, int]:
        """Free and total space in bytes: unlimited, unless a fault limits it."""
        self._folder(folder)
        return 2**62, 2**62

    def lock(self, path: Path) -> Lock:
        if str(path) in self._locked:
            raise StorageError(f"another broker uses {path.parent}: stop it, or give this one a --data-dir of its own")
        self.open(path, create=True)
        self._locked[str(path)] = None
        return SimulatedLock(path, self)

    def unlock(self, path: Path) -> None:
        self._locked.pop(str(path), None)
