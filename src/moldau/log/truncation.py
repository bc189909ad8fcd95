"""Removing the end of a log: what a follower does where its log differs from its leader's (KIP-101, KIP-279).

A crash may interrupt any step; what the next start finds is the log as it was before, or a beginning of it that reaches
at least to the new end:

    1  the recovery point falls to the new end, and its checkpoint is written: without that, a start after a crash would
       trust whatever was written behind the new end afterwards
    2  later segments are removed, the last one first, each before the next: what is left has no hole
    3  the segment that holds the new end is cut at the end of a batch, with its three indexes, and flushed: without
       that, a power loss could bring the old batches back behind new ones
    4  snapshots of producers behind the new end are removed: they count batches that are gone
    5  leader epochs that began behind the new end are forgotten, and the producers become those at the new end

Step 1 needs the log's folder; steps 2 to 4 are here; step 5 is the log's own. Everything here blocks and raises
`OSError`.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.log import lookup
from moldau.log.file_names import SNAPSHOT_SUFFIX, base_of, is_segment_name
from moldau.log.segment import Segment
from moldau.names import Offset, TopicPartition
from moldau.runtime import Disk

logger = logging.getLogger(__name__)


class CutPlace(NamedTuple):
    """Where a log is cut: the number of the segment, the byte in its file, and the log's end afterwards."""

    number: int
    position: int
    end_offset: Offset


def place_of(segments: Sequence[Segment], offset: int) -> CutPlace:
    """Where to cut so that all batches below `offset` stay. The batch that holds `offset` goes as a whole, so the new
    end may be below `offset`."""
    number = lookup.segment_at(segments, offset)
    segment = segments[number]
    position, end = 0, Offset(segment.base_offset)
    for at, header in segment.walk(segment.walk_start(offset - 1)):
        if header.last_offset >= offset:
            break
        position, end = at + header.size, Offset(header.next_offset)
    return CutPlace(number, position, end)


def remove_segments(segments: Sequence[Segment], disk: Disk) -> list[Path]:
    """Take these segments, the last ones of their log, out of its folder; returns the files, which go later."""
    paths: list[Path] = []
    for segment in reversed(segments):
        segment.deleted = True
        paths += segment.doom()
        disk.sync_folder(segment.folder)
    return paths


def remove_snapshots(folder: Path, end: int, disk: Disk) -> None:
    """Remove the snapshots of producers behind the log's new end."""
    for name in disk.list(folder):
        if name.endswith(SNAPSHOT_SUFFIX) and is_segment_name(name) and base_of(name) > end:
            disk.remove(folder / name)
    disk.sync_folder(folder)


def report(tp: TopicPartition, before: int, end: int, high_watermark: int) -> None:
    """Log that the end fell; a warning if committed records are lost, which only an unclean election does."""
    if end < before:
        unclean = f", below its high watermark {high_watermark}" if end < high_watermark else ""
        log = logger.warning if unclean else logger.info
        log("%s is truncated from offset %d to %d%s", tp, before, end, unclean)
