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

The caller keeps the cleaner away from the log (`Log.cleaning`), and appends and reads nothing meanwhile. Everything
here blocks.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.log import lookup
from moldau.log.deletion import doom
from moldau.log.file_names import SNAPSHOT_SUFFIX, base_of, is_segment_name
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.names import Offset, TopicPartition
from moldau.runtime import Disk

logger = logging.getLogger(__name__)


class CutPlace(NamedTuple):
    """Where a log is cut: the number of the segment, the byte in its file, and the log's end afterwards."""

    number: int
    position: int
    end_offset: Offset


def truncate_to(log: Log, offset: int, high_watermark: int, now_ms: int) -> Offset:
    """Remove what is at or behind `offset`, whole batches only, so that what is left agrees with a leader whose log
    differs from there on. Returns the log's new end, at or below `offset`: the caller lowers its high watermark to
    that and wakes the requests that wait. A log start within the batch that goes falls to the new end, as in Kafka.

    Leader epochs that began at or behind the new end are forgotten even where no batch goes. Raises `KafkaError`:
    OFFSET_OUT_OF_RANGE below the log's start, KAFKA_STORAGE_ERROR.
    """
    log.serving.check()
    if offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    with log.flushing.lock, log.serving.guard():
        end = log.log_end_offset
        if offset < end:
            _cut(log, place_of(log.segments, offset), now_ms)
        log.epochs.truncate_from_end(min(offset, log.log_end_offset))
    _report(log.tp, end, log.log_end_offset, high_watermark)
    return log.log_end_offset


def begin_at(log: Log, offset: int, now_ms: int) -> None:
    """Remove everything, and begin anew at `offset`, where the leader's log begins. Raises `KafkaError`
    (KAFKA_STORAGE_ERROR)."""
    log.serving.check()
    with log.flushing.lock, log.serving.guard():
        logger.info("%s is emptied and restarts at offset %d; it ended at %d", log.tp, offset, log.log_end_offset)
        _cut(log, CutPlace(0, 0, Offset(min(log.segments[0].base_offset, offset))), now_ms)
        with log.serving.changing_files():
            remove_snapshots(log.folder, -1, log.files.disk)
            log.emptied(Offset(offset), now_ms)
        if log.services.write_log_starts is not None:  # the next start would begin anew at one above the log's end
            log.services.write_log_starts()


def _cut(log: Log, place: CutPlace, now_ms: int) -> None:
    """Steps 1 to 4, and what step 5 changes besides the epochs. Raises `OSError`; then nothing was cut, or the log is
    offline."""
    disk, end = log.files.disk, place.end_offset
    disk.list(log.folder)  # fails if no descriptor is left, before anything is changed
    log.flushing.lower(end)
    with log.serving.changing_files():
        log.remove_later(_remove_segments(log.segments[place.number + 1 :], disk), now_ms)
        cut = log.segments[place.number].cut(place.position, end)
        remove_snapshots(log.folder, end, disk)
        log.truncated((*log.segments[: place.number], cut), end)


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


def _remove_segments(segments: Sequence[Segment], disk: Disk) -> list[Path]:
    """Take these segments, the last ones of their log, out of its folder; returns the files, which go later. Raises
    `OSError`."""
    paths: list[Path] = []
    for segment in reversed(segments):
        paths += doom(segment, disk)
        disk.sync_folder(segment.folder)
    return paths


def remove_snapshots(folder: Path, end: int, disk: Disk) -> None:
    """Remove the snapshots of producers behind the log's new end. Raises `OSError`."""
    for name in disk.list(folder):
        if name.endswith(SNAPSHOT_SUFFIX) and is_segment_name(name) and base_of(name) > end:
            disk.remove(folder / name)
    disk.sync_folder(folder)


def _report(tp: TopicPartition, before: int, end: int, high_watermark: int) -> None:
    """Log that the end fell; a warning if committed records are lost, which only an unclean election does."""
    if end < before:
        unclean = f", below its high watermark {high_watermark}" if end < high_watermark else ""
        log = logger.warning if unclean else logger.info
        log("%s is truncated from offset %d to %d%s", tp, before, end, unclean)
