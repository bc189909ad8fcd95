"""Brokers that lose data on purpose, one for each way: the tests that kill brokers must notice every one.

Each takes the disk of a fragile broker and returns the one that it uses instead, or changes what else it needs.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moldau.log.producers.producers import Producers
from moldau.runtime import Buffer, File, RealDisk
from tests.end_to_end.fragile_broker import FragileDisk, FragileFile, kind_of


class LateFile(FragileFile):
    """Keeps what was written last until more is written."""

    __slots__ = ("_late",)
    _late: tuple[bytes, int] | None

    def write(self, data: Buffer, at: int) -> None:
        before, self._late = self._late, (bytes(data), at)
        if before is not None:
            super().write(*before)


class LateDisk(FragileDisk):
    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        opened = super().open(path, create=create, writable=writable)
        if kind_of(path) != ".log" or not create:
            return opened
        assert isinstance(opened, FragileFile)
        late = LateFile(opened, opened.kind, self.fate)
        late._late = None
        return late


class HastyDisk(FragileDisk):
    """Removes a segment before its compacted one takes its place, and is killed between the two."""

    def rename(self, old: Path, new: Path) -> None:
        if new.name.endswith(".log.swap") and self.fate.claim():
            os.unlink(new.with_name(new.name.removesuffix(".swap")))
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(old, new)


def acknowledges_before_it_writes(disk: FragileDisk) -> RealDisk:
    return LateDisk(disk.fate)


def removes_segments_before_the_swap(disk: FragileDisk) -> RealDisk:
    return HastyDisk(disk.fate)


def knows_no_duplicates(disk: FragileDisk) -> RealDisk:
    no_check: Any = lambda self, header: None  # noqa: E731
    Producers.check = no_check  # type: ignore[method-assign]
    return disk


MUTATIONS: dict[str, Callable[[FragileDisk], RealDisk]] = {
    mutation.__name__: mutation
    for mutation in (acknowledges_before_it_writes, removes_segments_before_the_swap, knows_no_duplicates)
}
