"""How one segment takes the place of several, in steps of which a crash may interrupt any.

    1  `<base>.log.cleaned` and its indexes are written and flushed
    2  they become `.swap`, the folder is flushed          from here on the new segment is the one that counts
    3  the log reads from it                               (in memory, on the log's own thread)
    4  the files of the old segments become `.deleted`, oldest first; they go later
    5  `.swap` goes from the names of the new ones, the folder is flushed

A start after a crash finds which of it was done (`finish_leftovers`): without a `.swap`, or with a `.cleaned` beside
it, nothing was; else the old segments whose offsets the new one spans go, and it takes its name. Nothing is lost either
way, as the last batch of a new segment ends where the last of the old ones did. Whoever reads an old segment goes on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from moldau.config import TopicConfig
from moldau.log.files import LazyFile, OpenFiles
from moldau.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    Segment,
    file_name,
)
from moldau.records.batch import HEADER_SIZE, read_header
from moldau.runtime import Disk

CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX = ".cleaned", ".swap", ".tmp"
LEFTOVER_SUFFIXES: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def files_of(segment: Segment, disk: Disk) -> list[LazyFile]:
    """The files that a segment has, the log first."""
    aborted = [segment.aborted.file] if disk.exists(segment.aborted.file.path) else []
    return [segment.log, segment.offsets.file, segment.times.file, *aborted]


def cleaned_segment(folder: Path, base_offset: int, config: TopicConfig, files: OpenFiles) -> Segment:
    """A new, empty segment beside the one of its name. Raises `OSError`."""
    segment = Segment(folder, base_offset, config, files, 0)
    for lazy in (segment.log, segment.offsets.file, segment.times.file, segment.aborted.file):
        lazy.path = lazy.path.with_name(lazy.path.name + CLEANED_SUFFIX)
        files.disk.remove(lazy.path)
    try:
        segment.log.create()
        segment.begin_rebuild()
    except OSError:
        segment.remove()
        raise
    return segment


def commit(segment: Segment, disk: Disk) -> None:
    """Step 2 except the flush: a `.cleaned` segment becomes the one that counts. Raises `OSError`."""
    for lazy in files_of(segment, disk):
        lazy.rename(lazy.path.with_name(lazy.path.name.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX))


def finish(old: Sequence[Segment], new: Segment, disk: Disk) -> list[Path]:
    """Steps 4 and 5 except the flush; returns the files that go later. Raises `OSError`."""
    gone: list[Path] = []
    for segment in old:
        segment.deleted = True
        for lazy in files_of(segment, disk):
            lazy.rename(lazy.path.with_name(lazy.path.name + DELETED_SUFFIX))
            gone.append(lazy.path)
        snapshot = segment.folder / file_name(segment.base_offset, SNAPSHOT_SUFFIX)
        if segment.base_offset != new.base_offset and disk.exists(snapshot):
            doomed = snapshot.with_name(snapshot.name + DELETED_SUFFIX)
            disk.rename(snapshot, doomed)
            gone.append(doomed)
        segment.let_go()
    for lazy in files_of(new, disk):
        lazy.rename(lazy.path.with_name(lazy.path.name.removesuffix(SWAP_SUFFIX)))
    return gone


def spliced(segments: Sequence[Segment], old: Sequence[Segment], new: Segment) -> list[Segment]:
    """The list with `new` where `old` was."""
    at = segments.index(old[0])
    assert list(segments[at : at + len(old)]) == list(old), "only neighbours are swapped"
    return [*segments[:at], new, *segments[at + len(old) :]]


def base_of(name: str) -> int:
    """The offset that a file of a segment is named by."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def is_segment_name(name: str) -> bool:
    digits, _, _ = name.partition(".")
    return len(digits) == 20 and digits.isascii() and digits.isdigit()


def finish_leftovers(disk: Disk, folder: Path) -> bool:
    """Finish or throw away what a deletion or a swap left when it was interrupted; whether there was anything.

    It may be interrupted itself, anywhere: a swap that does not count goes before the `.cleaned` that says so, and in
    one that counts the log gets its name first, as an index alone is taken for one that waits for its name.
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
    """Remove the segments whose offsets a complete `.log.swap` spans."""
    base = base_of(swap)
    end = _last_offset(disk, folder / swap)
    for name in disk.list(folder):
        if name.endswith(SEGMENT_SUFFIXES) and is_segment_name(name) and base <= base_of(name) <= max(end, base):
            disk.remove(folder / name)


def _last_offset(disk: Disk, path: Path) -> int:
    """The last offset in a file of batches; -1 if there is none."""
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
