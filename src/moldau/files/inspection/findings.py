"""The results of an inspection: findings, and the amount of data that was checked.

A finding is an error or a note. Only the first findings of each file are shown; the rest are counted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

LINES_A_FILE: Final = 20


class Finding(NamedTuple):
    path: Path
    message: str
    wrong: bool = True
    """True for an error, False for a note."""


@dataclass
class CheckedTotals:
    """The amount of data that was checked."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0


def limited(findings: Iterable[Finding], lines: int = LINES_A_FILE) -> Iterator[Finding]:
    """The first findings of each file, then the number of the others."""
    counts: dict[Path, list[int]] = {}
    for finding in findings:
        count = counts.setdefault(finding.path, [0, 0])
        count[0] += 1
        if count[0] <= lines:
            yield finding
        else:
            count[1] += finding.wrong
    for path, (total, wrong) in counts.items():
        if total > lines:
            yield Finding(path, f"and {total - lines:,} more findings", wrong > 0)
