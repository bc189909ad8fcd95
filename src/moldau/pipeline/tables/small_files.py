"""Decides when a table has so many small files that a load compacts it, as Delta's auto compaction does. Pure.

Files are written together in two steps, so that a record is rewritten a few times and not at each compaction: the
files of micro-batches to `TARGETS[0]`, and files of about that size to `TARGETS[1]`. A file below a quarter of a target
counts as small for it, unless it is small for the target before.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from moldau.pipeline.tables.table import Listed

MIB = 1024 * 1024
TARGETS: Final = (16 * MIB, 256 * MIB)
SMALL_SHARE = 4
SMALL_FILES_MAX = 50
"""So many small files of a partition are compacted unless told otherwise; Delta's own default."""


def compaction_target(files: Iterable[Listed], small_files_max: int = SMALL_FILES_MAX) -> int | None:
    """The size in bytes that files are to be written together to; None if no partition of the table has
    `small_files_max` small ones."""
    small: Counter[tuple[int, str]] = Counter()
    for file in files:
        target = next((target for target in TARGETS if file.bytes < target // SMALL_SHARE), None)
        if target is not None:
            small[target, file.path.rpartition("/")[0]] += 1
    return max((target for (target, _), count in small.items() if count >= small_files_max), default=None)
