"""The disk of a broker whose temporary folder ends with it: nothing is flushed, which is most of a start by the clock.

What was written is in the system's cache, so it survives `kill` like the process of a broker that is killed.
"""

import os
from pathlib import Path

from moldau.runtime import File, FileSystem, RealDisk, RealFile, RealFileSystem


class UnflushedFile(RealFile):
    __slots__ = ()

    def flush(self) -> None:
        pass


class UnflushedFileSystem(RealFileSystem):
    __slots__ = ()

    def flush(self) -> bool:
        return True


class UnflushedDisk(RealDisk):
    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0) | os.O_CLOEXEC
        return UnflushedFile(os.open(path, flags, 0o644))

    def sync_folder(self, folder: Path) -> None:
        pass

    def file_system(self, folder: Path) -> FileSystem:
        return UnflushedFileSystem(folder)
