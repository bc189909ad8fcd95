"""What an inspection comes back with: findings, and how much was looked at.

A finding is wrong or just worth a word. A file in which everything is wrong does not fill the screen: after a few lines
the rest is counted.
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
    """Whether something is not as it has to be; else it is a note."""


@dataclass
class Seen:
    """How much was looked at."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0


def limited(findings: Iterable[Finding], lines: int = LINES_A_FILE) -> Iterator[Finding]:
    """The first findings of each file, and how many more there are."""
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
            yield Finding(path, f"and {total - lines:,} more like these", wrong > 0)
