"""The log folders of a stopped broker, locked while a tool works on them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from moldau.errors import StorageError
from moldau.log.folders.identity import LOCK
from moldau.runtime import Disk, is_locked


class HeldFolders:
    """Use it in `with`; `paths` are absolute, each once."""

    def __init__(self, folders: Sequence[Path], disk: Disk):
        """Lock the folders. Raises `StorageError` if a broker is using one of them, and `OSError`."""
        self.paths = list(dict.fromkeys(folder.absolute() for folder in folders))
        self._locks: list[Callable[[], None]] = []
        try:
            for folder in self.paths:
                disk.list(folder)
                if is_locked(folder / LOCK):
                    raise StorageError(f"a broker is using {folder}: stop it first")
                self._locks.append(disk.lock(folder / LOCK))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        for release in self._locks:
            release()

    def __enter__(self) -> "HeldFolders":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
