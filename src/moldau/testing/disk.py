"""The disk of a broker whose temporary folder ends with it: nothing is flushed, which is most of a start by the clock.

What was written is in the system's cache, so it survives `kill` like the process of a broker that is killed.
"""

from pathlib import Path

from moldau.runtime import FileSystem, RealDisk, RealFile, RealFileSystem


class UnflushedFile(RealFile):
    __slots__ = ()

    def flush(self) -> None:
        pass


class UnflushedFileSystem(RealFileSystem):
    __slots__ = ()

    def flush(self) -> bool:
        return True


class UnflushedDisk(RealDisk):
    _opened = UnflushedFile

    def sync_folder(self, folder: Path) -> None:
        pass

    def file_system(self, folder: Path) -> FileSystem:
        return UnflushedFileSystem(folder)
