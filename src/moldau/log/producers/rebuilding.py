"""The producers of a log at one of its offsets: from the newest snapshot at or below it, and the batches behind that.

A start needs them at the log's end, a truncation at the new end. Everything here blocks and raises `OSError`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from moldau.log.file_names import SNAPSHOT_SUFFIX, base_of, file_name, is_segment_name
from moldau.log.producers import snapshots
from moldau.log.producers.producers import Producers
from moldau.log.segment import Segment
from moldau.log.transaction_index import AbortedTxn
from moldau.names import Offset
from moldau.records.batch import MARKER_BYTES_MAX, BatchHeader, Marker, read_control
from moldau.runtime import Disk

WALK_BACK_ENTRIES: Final = 64
WALK_BACK_BYTES: Final = 1 << 18
"""How many index entries, or bytes of small segments, before a snapshot are read again for what it does not hold."""


def snapshot_offsets(names: Sequence[str]) -> list[int]:
    """The offsets of the snapshots among the sorted names of a folder's files. Some may be gone by now, with their
    segments."""
    return [base_of(name) for name in names if name.endswith(SNAPSHOT_SUFFIX) and is_segment_name(name)]


def producers_in(disk: Disk, folder: Path, segments: Sequence[Segment], end: int) -> tuple[Producers, int]:
    """As `producers_at`, from the snapshots that the folder has now."""
    return producers_at(disk, folder, snapshot_offsets(disk.list(folder)), segments, end)


def producers_at(
    disk: Disk, folder: Path, offsets: Sequence[int], segments: Sequence[Segment], end: int
) -> tuple[Producers, int]:
    """The producers at the offset `end`: those of the newest valid snapshot at or below it, and of the batches from
    there to `end`. Also the offset of that snapshot. `offsets`: of the snapshots in the folder, rising; damaged ones
    are removed."""
    first = segments[0].base_offset
    producers: Producers | None = None
    for offset in reversed(offsets):
        if first <= offset <= end:
            producers = snapshots.read(disk, folder, offset)
            if producers is not None:
                break
            disk.remove(folder / file_name(offset, SNAPSHOT_SUFFIX))
    if producers is None:
        producers = Producers()
        producers.end_offset = Offset(first)
    snapshot_offset = int(producers.end_offset)
    if len(producers):
        producers.complete(_headers_before(segments, snapshot_offset))
    replay(segments, producers, end)
    return producers, snapshot_offset


def replay(segments: Sequence[Segment], producers: Producers, end: int) -> None:
    start = producers.end_offset
    if start >= end:
        return
    for at, segment in enumerate(segments):
        if segment.base_offset >= end:
            break
        if at + 1 < len(segments) and segments[at + 1].base_offset <= start:
            continue
        batch = segment.find(start)
        if batch is not None:
            replay_segment(segment, producers, batch.position)
    producers.end_offset = Offset(end)


def replay_segment(segment: Segment, producers: Producers, position: int) -> list[AbortedTxn]:
    """Let the producers see what is in a segment from a position on; the transactions that are aborted there."""
    aborted = []
    for at, header in segment.walk(position):
        ended = producers.replay(header, _marker_at(segment, at) if header.is_control else None)
        if ended is not None:
            aborted.append(ended)
    return aborted


def _marker_at(segment: Segment, position: int) -> Marker | None:
    return read_control(segment.log.get().read(min(MARKER_BYTES_MAX, segment.size - position), position))


def _headers_before(segments: Sequence[Segment], offset: int) -> list[BatchHeader]:
    """The batches shortly before an offset, in order: enough for the requests a producer had in flight."""
    headers: list[BatchHeader] = []
    walked = 0
    for segment in reversed(segments):
        if segment.base_offset >= offset:
            continue
        at = segment.walk_back(WALK_BACK_ENTRIES)
        of_segment = [
            header for _, header in segment.walk(at) if header.last_offset < offset and header.producer_id >= 0
        ]
        headers[:0] = of_segment
        walked += segment.size - at
        if walked >= WALK_BACK_BYTES or at:
            break
    return headers
