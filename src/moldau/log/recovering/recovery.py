"""Bringing a partition's folder back: which files belong together, where the log ends, what may be trusted.

Rules, by their numbers in the reliability notes:
    1, 2  leftovers of a deletion or a compaction are finished or thrown away
    3     an index without a log goes; a missing or impossible index is built anew: of transactions now, others when
          they are opened
    4     after an unclean stop every batch from the recovery point's segment on is read: the log is cut at the first
          one that does not hold, and if a segment lost bytes all later segments go
    5     a log that ends below its known start begins anew there
    6     the recovery point moves forward only where a clean stop flushed; producers come from the newest snapshot that
          holds and the batches behind it

Everything here blocks, and is as long as what has to be read.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from moldau.checksums import crc32c
from moldau.config import TopicConfig
from moldau.log import checkpoints, lookup
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.epochs import Epochs
from moldau.log.file_names import (
    INDEX_SUFFIX,
    LEFTOVER_SUFFIXES,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
    is_segment_name,
)
from moldau.log.files import OpenFiles
from moldau.log.indexes import CorruptIndex
from moldau.log.producers import rebuilding, snapshots
from moldau.log.producers.producers import Producers
from moldau.log.recovering.leftovers import finish_leftovers
from moldau.log.recovering.progress import LARGE_BYTES, Progress
from moldau.log.segment import RELATIVE_MAX, Segment
from moldau.log.transaction_index import ENTRY
from moldau.names import counted
from moldau.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    MAGIC,
    BatchHeader,
    read_control,
    read_header,
)
from moldau.runtime import Disk, File

CHUNK_BYTES: Final = 1 << 20

logger = logging.getLogger(__name__)


@dataclass
class LoadedLog:
    """The state that a log starts with."""

    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    epochs: Epochs
    producers: Producers
    snapshot_offset: int
    """Where the newest producer snapshot is; -1 without one."""
    changed_names: bool
    """Whether files were made or removed, so that the folder has to be flushed."""
    snapshots: list[Path]
    """Those of producers that may not be flushed."""


@dataclass
class Loading:
    """The input of `load`."""

    folder: Path
    config: TopicConfig
    files: OpenFiles
    now_ms: int
    clean: bool
    recovery_point: int
    log_start: int
    progress: Progress | None = None
    gaps_are_losses: bool = False
    """Whether each segment must end where the next one begins: ours do, compacted or not, Kafka's may end before that.
    Adopted segments lie below the recovery point, so where that is known a gap behind it is a loss."""
    closed_at: int = -1
    """The log's end when it was closed, after which the stop was cut off; -1 if it was not. A log that still ends there
    was closed cleanly."""
    names: list[str] = field(default_factory=list)
    """The names of the folder's files after its leftovers were finished, sorted."""
    snapshots: list[Path] = field(default_factory=list)

    def tolerates_gap(self, gapless: bool) -> bool:
        """Whether a segment may end before the next one begins; `gapless`: no offset is missing inside of it. A gap
        inside says nothing about our own segments: a follower's may have them, as its leader's log was compacted."""
        return not self.gaps_are_losses and (self.config.compacts or not gapless)

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def new_segment(self, base_offset: int) -> Segment:
        return Segment.create(self.folder, base_offset, self.config, self.files, self.now_ms, 0)


def load(loading: Loading) -> LoadedLog:
    """The log in a folder; an empty one if the folder has none. Raises `OSError`."""
    disk, folder = loading.disk, loading.folder
    # Rules 1 and 2: leftovers.
    changed = False
    loading.names = disk.list(folder)
    if any(name.endswith(LEFTOVER_SUFFIXES) for name in loading.names):
        changed = finish_leftovers(disk, folder)
        loading.names = disk.list(folder)
    # Rule 3: segments, and indexes that are missing or may be older than their segment.
    segments, suspects = _open_segments(loading)
    first = 0 if loading.clean else lookup.segment_at(segments, loading.recovery_point)
    # A segment that ends at the recovery point was closed after the flush that moved the point there: its batches were
    # flushed, and its indexes perhaps not.
    if first and segments[first].base_offset == loading.recovery_point and segments[first - 1] not in suspects:
        suspects.append(segments[first - 1])
    epochs = _load_epochs(loading, segments)
    for segment in suspects:
        segment.rebuild_indexes()
    closed_end = _closed_end(loading, segments)
    was_closed = loading.clean or closed_end >= 0
    first = len(segments) if closed_end >= 0 else lookup.segment_at(segments, loading.recovery_point)
    _check_transactions(loading, segments[:first], suspects)
    # Rule 4: after an unclean stop, batches from the recovery point's segment on are read again.
    producers, snapshot_offset, end = None, -1, closed_end
    if segments and closed_end < 0:
        for segment in segments[:first]:
            segment.assume_flushed()
        producers, snapshot_offset = _producers_at(loading, segments, segments[first].base_offset)
        # Later epochs may be of batches that were lost; reading notes those of the batches that are there.
        epochs.truncate_from_end(segments[first].base_offset)
        end, changed = _recover(loading, segments, first, epochs, producers), True
    elif was_closed:
        for segment in segments:
            segment.assume_flushed()
    # Rule 5: a log that ends below its start begins anew there: offsets below it were served and deleted, and must not
    # be given to other records.
    start = max(loading.log_start, segments[0].base_offset if segments else 0)
    if segments and end < start:
        logger.warning("%s ends at %d, below its start %d: it restarts there, empty", folder.name, end, start)
        _remove_segments(disk, segments)
        segments, epochs, producers = [], Epochs(), None
        epochs.dirty = True
    if not segments:
        segments, end, changed = [loading.new_segment(start)], start, True
    epochs.truncate_from_start(start)
    epochs.truncate_from_end(end)
    for segment in segments:
        segment.created_ms = loading.now_ms
    # Rule 6: the recovery point only falls, unless the log was closed; producers come from a snapshot and the batches
    # behind it.
    recovery_point = end if was_closed else min(loading.recovery_point, end)
    if producers is None:
        producers, snapshot_offset = _producers_at(loading, segments, end)
    _remove_stray_snapshots(loading, segments, end, snapshot_offset)
    return LoadedLog(
        segments, start, end, recovery_point, epochs, producers, snapshot_offset, changed, loading.snapshots
    )


def _closed_end(loading: Loading, segments: Sequence[Segment]) -> int:
    """The end of a log that was closed: by a clean stop, or by one that was cut off after it had noted where this log
    ends. -1 if the log was not closed, or has no segment, or has a torn batch at its end."""
    # A torn batch contradicts the marker of a clean stop: the files were changed after it.
    if not segments or not (loading.clean or loading.closed_at >= 0) or not _ends_whole(segments[-1]):
        return -1
    # A log that grew after it was noted as closed was not closed any more.
    end = segments[-1].next_offset()
    return end if loading.clean or end == loading.closed_at else -1


def _load_epochs(loading: Loading, segments: list[Segment]) -> Epochs:
    try:
        return Epochs(checkpoints.read_epochs(loading.disk, loading.folder))
    except CorruptCheckpoint as error:
        logger.warning("%s; it is rebuilt from the log", error)
    epochs = Epochs()
    for segment in segments:
        for batch in segment.walk(0):
            _note_epoch(epochs, batch.header)
    epochs.dirty = True
    return epochs


def _open_segments(loading: Loading) -> tuple[list[Segment], list[Segment]]:
    """The folder's segments in order, and those whose indexes are missing (rule 3)."""
    disk, folder = loading.disk, loading.folder
    names = [name for name in loading.names if is_segment_name(name)]
    there = set(names)
    segments: list[Segment] = []
    suspects: list[Segment] = []
    for name in names:
        digits, _, suffix = name.partition(".")
        suffix = "." + suffix
        if suffix == LOG_SUFFIX:
            size = disk.size(folder / name)
            segment = Segment(folder, int(digits), loading.config, loading.files, size)
            segments.append(segment)
            if digits + INDEX_SUFFIX not in there or digits + TIME_INDEX_SUFFIX not in there:
                suspects.append(segment)
        # Its log was removed, and a crash came before the rest of the segment's files went.
        elif suffix in SEGMENT_SUFFIXES and digits + LOG_SUFFIX not in there:
            disk.remove(folder / name)
        # Its segment is the last one so far, since names are sorted and ".log" comes before ".txnindex".
        elif suffix == TRANSACTION_INDEX_SUFFIX:
            segments[-1].aborted.entries = disk.size(folder / name) // ENTRY.size
    return segments, suspects


def _ends_whole(segment: Segment) -> bool:
    """Whether the file ends with its last batch: a torn tail means that the stop was not so clean."""
    segment.look()
    at = segment.offsets.last.value if segment.offsets.last else 0
    for position, header in segment.walk(at):
        at = position + header.size
    return at == segment.size


def _check_transactions(loading: Loading, segments: list[Segment], suspects: list[Segment]) -> None:
    """Rule 3 for transaction indexes, which are few and small. Those of suspects are always rebuilt: a missing one
    looks as if no transaction was aborted."""
    producers: Producers | None = None
    for at, segment in enumerate(segments):
        if segment not in suspects:
            try:
                segment.aborted.check()
                continue
            except CorruptIndex as error:
                logger.warning("%s; it is rebuilt from the log", error)
        # An abort is only known from the transaction's first batch, which may be in an earlier segment.
        if producers is None:
            producers, _ = _producers_at(loading, segments, segment.base_offset)
        rebuilding.replay(segments[:at], producers, segment.base_offset)
        aborted = rebuilding.replay_segment(segment, producers, 0)
        if aborted or segment.aborted.entries:
            segment.aborted.replace(loading.disk, aborted)


def _recover(loading: Loading, segments: list[Segment], first: int, epochs: Epochs, producers: Producers) -> int:
    """Rule 4: read from the recovery point's segment on, cut at the first batch that does not hold. The log's end.

    A segment can lose bytes without a trace, if the file ends at a batch's end: it does not reach the next one then,
    which goes as well. What is kept is a beginning of what was written.
    """
    end = segments[first].base_offset
    for at in range(first, len(segments)):
        segment = segments[at]
        if segment.size >= LARGE_BYTES:
            logger.info("recovering %s, segment %d of %d", segment.log.path, at - first + 1, len(segments) - first)
        # After a retention of earlier segments nothing else remembers these producers.
        if len(producers):
            loading.snapshots.append(snapshots.restore(loading.disk, loading.folder, producers, segment.base_offset))
        later = segments[at + 1 :]
        size = segment.size
        end, gapless = recover_segment(segment, epochs, producers, later[0].base_offset if later else None)
        if loading.progress is not None:
            loading.progress.segment_done(size)
        if segment.size < size:
            lost = counted(size - segment.size, "byte")
            logger.warning("recovery cut %s by %s: a batch there is damaged or incomplete", segment.log.path, lost)
        elif not later or end == later[0].base_offset or loading.tolerates_gap(gapless):
            # The active segment keeps the room in its files for what is appended next.
            if later:
                segment.close()
            continue
        # What follows the hole was written after what is lost: it must not be served as if nothing were missing.
        if later:
            logger.warning("%s ends at %d: deleting %s after it", segment.log.path, end, counted(len(later), "segment"))
            _remove_segments(loading.disk, later)
            del segments[at + 1 :]
        # Or what was cut could come back behind what is written next.
        segment.log.get().flush()
        loading.disk.sync_folder(loading.folder)
        break
    return end


def recover_segment(segment: Segment, epochs: Epochs, producers: Producers, next_base: int | None) -> tuple[int, bool]:
    """Read every batch, rebuild the indexes, and cut the file at the first invalid batch. `producers` are those at the
    segment's start, and become those at its end.

    Returns the offset behind the last one, and whether no offset is missing up to there.
    """
    segment.begin_rebuild()
    segment.aborted.clear()
    gapless = True
    file, size = segment.log.get(), segment.size
    position, end = 0, segment.base_offset
    # Offsets must fit the indexes, and must not reach into the next segment.
    limit = segment.base_offset + RELATIVE_MAX if next_base is None else next_base - 1
    chunk, chunk_at = b"", 0
    while size - position >= HEADER_SIZE:
        within = position - chunk_at
        if len(chunk) - within < HEADER_SIZE:
            chunk, chunk_at, within = file.read(CHUNK_BYTES, position), position, 0
        # The length is believed only after it was compared with the file: everything else is found by it.
        header = read_header(chunk, within)
        if header.magic != MAGIC or not HEADER_SIZE <= header.size <= size - position:
            break
        if header.base_offset < end or not header.base_offset <= header.last_offset <= limit:
            break
        # A batch that is cut off by the chunk begins the next one; `_holds` reads the rest of a larger one.
        if len(chunk) - within < header.size:
            chunk, chunk_at, within = file.read(CHUNK_BYTES, position), position, 0
        if not _holds(file, chunk, within, position, header):
            break
        segment.index(header, position)
        _note_epoch(epochs, header)
        if header.producer_id >= 0 or header.is_control:
            marker = read_control(chunk[within : within + header.size]) if header.is_control else None
            aborted = producers.replay(header, marker)
            if aborted is not None:
                segment.aborted.append(aborted)
        gapless = gapless and header.base_offset == end
        position += header.size
        end = header.next_offset
    if position < size:
        segment.truncate(position)
    return end, gapless


def _holds(file: File, chunk: bytes, within: int, position: int, header: BatchHeader) -> bool:
    """Whether the batch's checksum matches its bytes; the chunk holds the first of them."""
    crc = crc32c(memoryview(chunk)[within + ATTRIBUTES_AT : within + header.size])
    at, end = position + len(chunk) - within, position + header.size
    while at < end:
        piece = file.read(min(CHUNK_BYTES, end - at), at)
        # The file has become shorter than its size was: it would be read for ever.
        if not piece:
            return False
        crc = crc32c(piece, crc)
        at += len(piece)
    return crc == header.crc


def _note_epoch(epochs: Epochs, header: BatchHeader) -> None:
    # `assign` would drop the epochs above a lower one, which a log that was damaged or adopted may have.
    if header.partition_leader_epoch > epochs.latest:
        epochs.assign(header.partition_leader_epoch, header.base_offset)


def _remove_segments(disk: Disk, segments: list[Segment]) -> None:
    for segment in segments:
        segment.let_go()
        for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
            disk.remove(segment.folder / file_name(segment.base_offset, suffix))


def _remove_stray_snapshots(loading: Loading, segments: list[Segment], end: int, newest: int) -> None:
    """Only the newest and those of segments stay."""
    kept = {segment.base_offset for segment in segments if segment.base_offset <= end} | {newest}
    for offset in rebuilding.snapshot_offsets(loading.names):
        if offset not in kept:
            loading.disk.remove(loading.folder / file_name(offset, SNAPSHOT_SUFFIX))


def _producers_at(loading: Loading, segments: list[Segment], end: int) -> tuple[Producers, int]:
    """Rule 6: the producers at an offset, and where the snapshot is that they come from."""
    offsets = rebuilding.snapshot_offsets(loading.names)
    return rebuilding.producers_at(loading.disk, loading.folder, offsets, segments, end)
