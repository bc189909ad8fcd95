"""Reads what a log folder records about its partitions: whether the last stop was clean, and the checkpoints.

After a clean stop, all files must be sound. After any other stop, the next start recovers the log from the recovery
point on: it truncates the log at the first damage and rebuilds indexes. Damage there is expected, not an error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from moldau.files.inspection.findings import Finding
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders.identity import CLEAN_MARKER, META_PROPERTIES
from moldau.names import TopicPartition
from moldau.runtime import Disk

NAMES: Final = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_STARTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANER_OFFSETS,
    checkpoints.CLOSED_ENDS,
)
Offsets = Mapping[TopicPartition, int]


@dataclass
class Surroundings:
    """`clean` is None if the partition is not in a log folder: then nothing is known, and all files must be sound."""

    clean: bool | None = None
    recovery_points: Offsets | None = None
    """None if the partition is not in a log folder."""
    log_starts: Offsets = field(default_factory=dict)
    high_watermarks: Offsets = field(default_factory=dict)
    cleaner_offsets: Offsets = field(default_factory=dict)

    def is_recovered(self, tp: TopicPartition, offset: int) -> bool:
        """Whether the next start recovers the log at `offset`, and truncates it there if it is damaged."""
        return self.clean is False and self.recovery_points is not None and offset >= self.recovery_points.get(tp, 0)


def read_surroundings(disk: Disk, folder: Path) -> tuple[Surroundings, list[Finding]]:
    """The surroundings in a log folder, and the findings about its checkpoints."""
    offsets: dict[str, Offsets | None] = {}
    findings: list[Finding] = []
    for name in NAMES:
        path = folder / name
        try:
            offsets[name] = checkpoints.read_offsets(disk, path) if disk.exists(path) else None
            findings += (Finding(path, message) for message in _impossible(offsets[name] or {}))
        except CorruptCheckpoint as corrupt:
            offsets[name] = None
            findings.append(Finding(path, str(corrupt).removeprefix(f"{path} ")))
        except OSError as error:
            offsets[name] = None
            findings.append(Finding(path, f"the file cannot be read: {error.strerror or error}"))
    recovery, starts, watermarks, cleaner, _ = (offsets[name] for name in NAMES)
    if recovery is None and disk.exists(folder / META_PROPERTIES):
        recovery = {}  # as at a start: without a checkpoint, no offset counts as flushed
    clean = disk.exists(folder / CLEAN_MARKER) if recovery is not None else None
    return Surroundings(clean, recovery, starts or {}, watermarks or {}, cleaner or {}), findings


def _impossible(offsets: Offsets) -> Iterator[str]:
    return (
        f"{tp} has the impossible offset {offset}" for tp, offset in offsets.items() if offset < 0 or tp.partition < 0
    )
