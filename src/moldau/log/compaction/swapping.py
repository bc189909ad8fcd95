"""Replacing several segments by one, in steps; a crash may interrupt any of them.

    1  `<base>.log.cleaned` and its indexes are written and flushed
    2  they become `.swap`, the folder is flushed          from here on the new segment is the one that counts
    3  the log reads from it                               (in memory, on the log's own thread)
    4  the files of the old segments become `.deleted`, oldest first; they go later
    5  `.swap` goes from the names of the new ones, the folder is flushed

A start after a crash finds which of it was done (`log/leftovers.py`): without a `.swap`, or with a `.cleaned` beside
it, nothing was; else the old segments whose offsets the new one spans go, and it takes its name. Nothing is lost either
way, as the last batch of a new segment ends where the last of the old ones did. Readers of an old segment keep its
file.
"""

from collections.abc import Sequence
from pathlib import Path

from moldau.config import TopicConfig
from moldau.log.file_names import CLEANED_SUFFIX, DELETED_SUFFIX, SNAPSHOT_SUFFIX, SWAP_SUFFIX, file_name
from moldau.log.files import LazyFile, OpenFiles
from moldau.log.segment import Segment
from moldau.runtime import Disk


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
