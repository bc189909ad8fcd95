"""What a member of a group writes down of the records that it is handed: one line each, in a file that survives it."""

import os
import time
from pathlib import Path
from typing import NamedTuple

COMMIT_MS, BACKOFF_MS = 1_000, 300


def now_s() -> float:
    """Seconds of a clock that all processes of this machine share, and that goes on while one is stopped."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Line(NamedTuple):
    """The record at `offset` was handed out between `asked_s` and `handed_s`, in the member's `spell`: from one
    assignment of its partitions to the next."""

    member: str
    spell: int
    partition: int
    offset: int
    asked_s: float
    handed_s: float


class Notes:
    """Appends lines, each with one write."""

    def __init__(self, path: Path):
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(self, spell: int, partition: int, offset: int, asked_s: float, handed_s: float) -> None:
        os.write(self._file, f"{spell} {partition} {offset} {asked_s:.6f} {handed_s:.6f}\n".encode())


def lines_in(folder: Path) -> list[Line]:
    """The lines of all members, in the order in which records were handed out."""
    found = []
    for path in sorted(folder.iterdir()):
        for text in path.read_text().splitlines():
            spell, partition, offset, asked_s, handed_s = text.split()
            found.append(Line(path.name, int(spell), int(partition), int(offset), float(asked_s), float(handed_s)))
    return sorted(found, key=lambda line: line.handed_s)
