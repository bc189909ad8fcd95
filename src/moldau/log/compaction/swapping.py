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
from moldau.log.deletion import doom, files_of
from moldau.log.file_names import CLEANED_SUFFIX, SWAP_SUFFIX
from moldau.log.files import OpenFiles
from moldau.log.segment import Segment
from moldau.runtime import Disk


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
        # The snapshot at the new segment's own base offset stays: it belongs to the new segment then.
        gone += doom(segment, disk, with_snapshot=segment.base_offset != new.base_offset)
    for lazy in files_of(new, disk):
        lazy.rename(lazy.path.with_name(lazy.path.name.removesuffix(SWAP_SUFFIX)))
    return gone
