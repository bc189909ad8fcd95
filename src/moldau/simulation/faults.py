"""The faults of a simulated disk: which of its calls fail and how, and a count of all calls.

Each call of the disk (a system call on a real one) is counted under the label of the operation that makes it. `plan`
maps a call's number to a fault: power loss, a failed read, write or fsync, or no space left. `watch` is called before
every call, so that a driver can see the disk as a crash at this call would leave it. The disk itself applies a fault's
effect on bytes.
"""

import errno
import os
import random
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

READS: Final = frozenset({"open", "read", "stat", "list"})
"""Calls that do not change the disk."""
CHANGES: Final = frozenset(
    {"create", "write", "truncate", "fsync", "rename", "remove", "mkdir", "fsync folder", "fsync all"}
)
SPACE: Final = frozenset({"create", "write", "rename", "mkdir", "fsync", "fsync folder", "fsync all"})
"""Calls that can fail because no space is left."""


class PowerLoss(BaseException):
    """The machine loses power at this call. A `BaseException`, so that the program under test does not handle it."""


class DiskFault(Enum):
    POWER_LOSS = auto()
    IO_ERROR = auto()
    NO_SPACE = auto()


class DiskCall(NamedTuple):
    number: int
    operation: str
    name: str
    path: Path


class Faults:
    """`operation` labels the calls that follow; `covered` counts them by (operation, name)."""

    def __init__(self, seed: random.Random):
        self.seed = seed
        self.operation = ""
        self.calls = 0
        self.covered: Counter[tuple[str, str]] = Counter()
        self.plan: dict[int, DiskFault] = {}
        self.met: list[tuple[DiskFault, DiskCall]] = []
        self.watch: Callable[[DiskCall], None] | None = None

    def meet(self, name: str, path: Path) -> OSError | None:
        """Count the next call. Returns the error with which it fails, or None. Raises `PowerLoss`."""
        self.calls += 1
        self.covered[self.operation, name] += 1
        if self.watch is not None:
            self.watch(DiskCall(self.calls, self.operation, name, path))
        fault = self.plan.get(self.calls)
        if fault is None or (fault is DiskFault.NO_SPACE and name not in SPACE):
            return None
        self.met.append((fault, DiskCall(self.calls, self.operation, name, path)))
        if fault is DiskFault.POWER_LOSS:
            raise PowerLoss(f"at call {self.calls}, {name} of {self.operation}")
        code = errno.EIO if fault is DiskFault.IO_ERROR else errno.ENOSPC
        return OSError(code, os.strerror(code), str(path))
