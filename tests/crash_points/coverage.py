"""Which calls of the disk each operation makes: a run that did not crash at each of them has not looked everywhere.

A call that only reads leaves the disk as it is, so a crash there is one at the next that does not: such calls are
listed because they may fail.

The table is what the log does today, by name. A call that an operation no longer makes leaves it; a new one that
matters joins it, so that no later change of the script can lose it in silence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

Pair = tuple[str, str]
_REPLACED: Final = ("create", "truncate", "write", "fsync", "rename", "fsync folder")
"""What it takes to replace a small file."""

EXPECTED: Final[dict[str, tuple[str, ...]]] = {
    "append": ("create", "write", "truncate", "rename", "read"),
    "append replicated": ("create", "write", "truncate", "rename"),
    "truncate": ("open", "read", *_REPLACED, "list", "remove"),
    "roll": ("create", "write", "truncate", "rename"),
    "flush": _REPLACED,
    "checkpoint": _REPLACED,
    "retain": ("rename", "create", "truncate", "write"),
    "remove files": ("remove",),
    "create partition": ("mkdir", "list", "open", *_REPLACED),
    "delete partition": ("rename", "fsync folder"),
    "end transaction": ("write", "create"),
    "flush closed": _REPLACED,
    "compact": ("open", "read", *_REPLACED),
    "close": ("open", *_REPLACED),
    "start": ("open", "read", "stat", "list", "mkdir", "remove", *_REPLACED),
}

EXPECTED_ERRORS: Final[tuple[Pair, ...]] = (
    ("append", "write: io_error"),
    ("append", "write: no_space"),
    ("append", "create: no_space"),
    ("append", "read: io_error"),
    ("flush", "fsync: io_error"),
    ("flush", "fsync folder: io_error"),
    ("roll", "create: no_space"),
    ("retain", "rename: io_error"),
    ("checkpoint", "fsync: io_error"),
    ("checkpoint", "write: no_space"),
    ("checkpoint", "rename: io_error"),
    ("append replicated", "write: io_error"),
    ("truncate", "fsync: io_error"),
    ("close", "fsync: io_error"),
    ("close", "write: no_space"),
    ("start", "read: io_error"),
    ("start", "write: no_space"),
    ("start", "fsync folder: io_error"),
)


def expected() -> set[Pair]:
    return {(operation, call) for operation, calls in EXPECTED.items() for call in calls}


def missing(covered: Iterable[Pair]) -> list[Pair]:
    """The pairs that were expected and did not come."""
    return sorted((expected() | set(EXPECTED_ERRORS)) - set(covered))


def table(covered: Counter[Pair]) -> str:
    """A line an operation: its calls, and how often each was met."""
    calls: dict[str, list[str]] = defaultdict(list)
    for (operation, call), count in sorted(covered.items()):
        calls[operation or "(between)"].append(f"{call} {count:,}")
    width = max((len(operation) for operation in calls), default=0)
    return "\n".join(f"{operation:<{width}}  {', '.join(found)}" for operation, found in calls.items())
