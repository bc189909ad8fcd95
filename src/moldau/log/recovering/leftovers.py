"""Leftovers of an interrupted deletion or compaction in a partition's folder: a start finishes or removes them.

`compaction/swapping.py` lists the steps of a swap. Without a `.swap` file, or with a `.cleaned` file beside it, the
swap had not begun to count: its files go. A `.swap` file alone is a complete segment: the old segments whose offsets it
spans go, and it takes its final name.
"""

from pathlib import Path

from moldau.log.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    base_of,
    is_segment_name,
)
from moldau.records.batch import HEADER_SIZE, read_header
from moldau.runtime import Disk


def finish_leftovers(disk: Disk, folder: Path) -> bool:
    """Finish an interrupted deletion or swap, or throw its files away; whether any file was removed. Blocks. Raises
    `OSError`.

    A crash may interrupt this function anywhere, so the order matters: `.swap` files that do not count are removed
    before the `.cleaned` files that say so. Of a swap that counts the log is renamed first, as an index without its log
    is taken for one that still waits for its name.
    """
    names = disk.list(folder)
    cleaned = [base_of(name) for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = sorted((name for name in names if name.endswith(SWAP_SUFFIX)), key=lambda name: LOG_SUFFIX not in name)
    invalid = [name for name in swaps if cleaned and base_of(name) >= min(cleaned)]
    gone = [*invalid, *(name for name in names if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX)))]
    for name in gone:
        disk.remove(folder / name)
    valid = [name for name in swaps if name not in invalid]
    for name in valid:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            _remove_replaced(disk, folder, name)
    for name in valid:
        disk.rename(folder / name, folder / name.removesuffix(SWAP_SUFFIX))
    if valid:
        disk.sync_folder(folder)
    return bool(gone)


def _remove_replaced(disk: Disk, folder: Path, swap: str) -> None:
    """Remove the segments whose offsets a complete `.log.swap` file spans."""
    base = base_of(swap)
    end = _last_offset(disk, folder / swap)
    for name in disk.list(folder):
        if name.endswith(SEGMENT_SUFFIXES) and is_segment_name(name) and base <= base_of(name) <= max(end, base):
            disk.remove(folder / name)


def _last_offset(disk: Disk, path: Path) -> int:
    """The last offset in a file of batches; -1 if it holds none."""
    file = disk.open(path, writable=False)
    try:
        at, last, size = 0, -1, file.size()
        while size - at >= HEADER_SIZE:
            header = read_header(file.read(HEADER_SIZE, at))
            if header.size < HEADER_SIZE:
                break
            last, at = header.last_offset, at + header.size
        return last
    finally:
        file.close()
