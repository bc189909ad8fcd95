"""Replacing several segments by one, in steps; a crash may interrupt any of them.

    1  `<base>.log.cleaned` and its indexes are written and flushed
    2  they become `.swap`, the folder is flushed          from here on the new segment counts
    3  the log reads from it                               (in memory, on the log's own thread)
    4  the files of the old segments become `.deleted`, oldest first; they go later
    5  the new files lose the suffix `.swap`, the folder is flushed

A start after a crash determines which steps were done (`log/recovering/leftovers.py`). Without a `.swap` file, or with
a `.cleaned` file beside it, the swap did not happen. Otherwise the old segments in the new one's offset range are
removed, and the new one gets its final name. No record is lost either way: the new segment ends at the same offset as
the old ones. Readers of an old segment keep its file open.
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
    """A new, empty segment, in `.cleaned` files beside the segment with the same base offset. Raises `OSError`."""
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
    """Step 2 except the flush: rename a segment's files from `.cleaned` to `.swap`. Raises `OSError`."""
    for lazy in files_of(segment, disk):
        lazy.rename(lazy.path.with_name(lazy.path.name.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX))


def finish(old: Sequence[Segment], new: Segment, disk: Disk) -> list[Path]:
    """Steps 4 and 5 except the flush; returns the files that are to be removed later. Raises `OSError`."""
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
