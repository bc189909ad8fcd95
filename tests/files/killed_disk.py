"""A disk whose process is killed before one of its calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from moldau.runtime import RealDisk


class Killed(BaseException):
    """The process ends here."""


class KilledFile:
    def __init__(self, file: Any, count: Callable[[], None]):
        self._file = file
        self._count = count

    def __getattr__(self, name: str) -> Any:
        if name in ("write", "truncate", "flush"):
            self._count()
        return getattr(self._file, name)


class KilledDisk(RealDisk):
    """The real disk of a process that is killed before its call of number `at`."""

    def __init__(self, at: int = -1) -> None:
        super().__init__()
        self.calls = 0
        self._at = at

    def _count(self) -> None:
        if self.calls == self._at:
            raise Killed
        self.calls += 1

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self._count()
        return KilledFile(super().open(path, create=create, writable=writable), self._count)

    def create_private(self, path: Path) -> Any:
        self._count()
        return KilledFile(super().create_private(path), self._count)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)

    def sync_folder(self, folder: Path) -> None:
        self._count()
        super().sync_folder(folder)
