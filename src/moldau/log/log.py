"""One partition's log: append, read, roll, and the segments in between.

Invariants: the log assigns every offset, and none twice unless its end was truncated; segments are in order and the
last one is active; `log_start_offset` is at or below every offset that is served, `log_end_offset` is the next one to
be assigned; the recovery point is never above what was flushed. A batch is appended whole or not at all.

Parts of a log: `serving` (online or offline), `committed` (reading with read_committed), `by_time` (look-up by time),
`flushing`. What makes and changes it from outside: `opening`, `replicated` (appends what a leader wrote),
`truncation`, `compaction`.

All methods run on one thread, the loop's, except `flush` and `close`, which block and may run in an executor, and those
that a truncation calls there. Nothing here knows leaders, requests or watermarks beyond the numbers it is handed.
"""

import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log import failures, lookup, retention
from moldau.log.appended import Appended, not_appended
from moldau.log.committed import CommittedReading
from moldau.log.deletion import doom
from moldau.log.epochs import Epochs
from moldau.log.file_names import SNAPSHOT_SUFFIX, file_name
from moldau.log.flushing import Flushing
from moldau.log.producers import rebuilding, snapshots
from moldau.log.producers.producers import Producers
from moldau.log.recovering.recovery import LoadedLog
from moldau.log.segment import Segment
from moldau.log.services import LogServices
from moldau.log.serving import Serving
from moldau.log.slicing import slice_of
from moldau.log.times import TimeSearches
from moldau.names import Offset, TopicPartition, counted
from moldau.records.batch import Marker, encode_marker, read_header
from moldau.records.validation import LOG_APPEND_TIME, Checked, assign_offsets
from moldau.replies import FileSlice

_NONE: Final = ErrorCode.NONE

logger = logging.getLogger(__name__)


class Log:
    """One partition on disk. `config` may be replaced at any time. `cleaning`: its segments are being rewritten, by the
    cleaner or by a truncation, and nothing else may touch them."""

    __slots__ = (
        "_active", "_config", "_snapshot_offset", "_stamps", "by_time", "cleaning", "committed", "epochs", "files",
        "flushing", "folder", "log_end_offset", "log_start_offset", "producers", "segments", "services", "serving",
        "topic_id", "tp",
    )  # fmt: skip

    def __init__(
        self,
        folder: Path,
        tp: TopicPartition,
        topic_id: uuid.UUID,
        config: TopicConfig,
        services: LogServices,
        loaded: LoadedLog,
    ):
        self.folder = folder
        self.tp = tp
        self.topic_id = topic_id
        self.cleaning = False
        self.serving = Serving(folder, tp, services.on_failure)
        self.log_start_offset = Offset(loaded.log_start_offset)
        self.log_end_offset = Offset(loaded.log_end_offset)
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._snapshot_offset = loaded.snapshot_offset
        self.services = services
        self.files = services.files
        self.segments: tuple[Segment, ...] = tuple(loaded.segments)
        self._active = loaded.segments[-1]
        self.by_time = TimeSearches(self)
        self.committed = CommittedReading(self)
        self.flushing = Flushing(folder, services, loaded)
        self.config = config

    @property
    def offline(self) -> bool:
        return self.serving.offline

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self._stamps = config.message_timestamp_type == LOG_APPEND_TIME
        for segment in self.segments:
            segment.config = config

    @property
    def active_segment(self) -> Segment:
        return self._active

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def recovery_point(self) -> int:
        """Everything below it is on the disk for good."""
        return self.flushing.recovery_point

    @property
    def shows_its_start(self) -> bool:
        """Whether the log starts with its first segment, and would after a power loss: nothing that was deleted in
        front of it may come back."""
        start = self.log_start_offset
        return start <= self.segments[0].base_offset and not (start and self.flushing.unsynced_names)

    @property
    def unflushed_records(self) -> int:
        """Records behind the recovery point, for `flush.messages`."""
        return self.log_end_offset - self.recovery_point

    def append(self, data: memoryview, checked: Checked, leader_epoch: int, now_ms: int) -> Appended:
        """Append one checked batch, whose offsets are written into `data`. Errors of the producer's state are answered
        in the result; raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        if self.serving.offline:
            raise self.serving.storage_error()
        _, _, header, max_timestamp, size, _, rewritten = checked
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            duplicate_or_error = self.producers.check(header)
            if duplicate_or_error is not None:
                return not_appended(duplicate_or_error, self.log_start_offset, leader_epoch)
        base = self.log_end_offset
        if rewritten is not None:
            data = memoryview(rewritten)
        elif size != len(data):
            data = data[:size]
        if size > self._config.segment_bytes:
            return not_appended(ErrorCode.RECORD_LIST_TOO_LARGE, -1)
        last = base + header.last_offset_delta
        stamp_ms = None
        if self._stamps:
            max_timestamp = stamp_ms = now_ms
        assign_offsets(data, base, leader_epoch, stamp_ms, max_timestamp)
        try:
            segment = self._active
            if segment.is_full(size, last, max_timestamp, now_ms):
                segment = self.roll(now_ms)
            segment.append(data, last, max_timestamp)
        except OSError as error:
            raise self.serving.fail(error) from error
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base)
        self.log_end_offset = last + 1  # type: ignore[assignment]  # an Offset, without the call
        if is_idempotent:
            self.producers.appended(header, base, max_timestamp)
        stood = (base, last, -1 if stamp_ms is None else stamp_ms, self.log_start_offset, _NONE, False, leader_epoch)
        return tuple.__new__(Appended, stood)

    def append_marker(
        self, producer_id: int, epoch: int, marker: Marker, transaction_version: int, leader_epoch: int, now_ms: int
    ) -> Appended:
        """Append the control batch that ends a transaction. Errors of the producer's state are answered in the result;
        raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        error = self.producers.check_marker(producer_id, epoch, marker.coordinator_epoch, transaction_version)
        if error is not None:
            return not_appended(error, self.log_start_offset)
        batch = encode_marker(producer_id, epoch, marker.commits, marker.coordinator_epoch, now_ms)
        header = read_header(batch)
        checked = Checked(_NONE, None, header, now_ms, len(batch))
        offset = self.log_end_offset
        with self.serving.guard():
            if self._active.is_full(len(batch), offset, now_ms, now_ms):
                self.roll(now_ms)
            index = self._active.aborted
            entries, aborted = index.entries, self.producers.aborted_by(producer_id, marker, offset)
            if aborted is not None:  # noted first, so that whatever flush takes the marker takes this as well
                index.append(aborted)
                self.note_aborted()
        try:
            appended = self.append(memoryview(batch), checked, leader_epoch, now_ms)
        except KafkaError:
            index.entries = entries  # the marker comes again, and its entry in this one's place
            raise
        if not appended.error:
            self.producers.ended(header, marker, offset, now_ms, transaction_version)
        return appended

    def note_aborted(self) -> None:
        """The active segment's transaction index has a new entry, and perhaps a new file."""
        self.committed.has_aborted = self.flushing.unsynced_names = True

    def truncated(self, segments: Sequence[Segment], end_offset: Offset) -> None:
        """A truncation has left these segments, whose batches end at `end_offset`. Blocks. Raises `OSError`."""
        self.segments, self._active = tuple(segments), segments[-1]
        self.log_start_offset, self.log_end_offset = min(self.log_start_offset, end_offset), end_offset
        self.committed.refresh()
        before, disk = self.producers, self.files.disk
        self.producers, self._snapshot_offset = rebuilding.producers_in(disk, self.folder, self.segments, end_offset)
        self.producers.keep_unstable(before, end_offset)

    def emptied(self, offset: Offset, now_ms: int) -> None:
        """A truncation has left one segment, without a batch: go on at `offset`, which may be behind the log's end.
        Raises `OSError`."""
        self.epochs.truncate_from_end(0)
        self.producers, self._snapshot_offset = Producers(), -1
        self.log_start_offset = self.log_end_offset = offset
        self.roll(now_ms)
        # The empty segment was begun again only if it has this offset as its base; else it is now in front of it.
        if len(self.segments) > 1:
            emptied, self.segments = self.segments[0], self.segments[1:]
            self.remove_later(doom(emptied, self.files.disk), now_ms)
            self.files.disk.sync_folder(self.folder)

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and begin a new one at the log's end; an empty one is begun again. Raises
        `OSError`."""
        old, end = self._active, self.log_end_offset
        jitter = min(self._config.segment_jitter_ms, self._config.segment_ms)
        jitter_ms = self.services.runtime.random.below(jitter) if jitter > 0 else 0
        if not old.size and old.base_offset == end:
            old.let_go()
            kept = self.segments[:-1]
        else:
            old.close()
            kept = self.segments
            self._snapshot()
        self._active = Segment.create(self.folder, end, self._config, self.files, now_ms, jitter_ms)
        self.segments = (*kept, self._active)
        self.flushing.unsynced_names = True
        return self._active

    def _snapshot(self) -> None:
        """Write down the producers as they are at the log's end. A flush takes it along: of those whose batches
        retention took nothing else is left."""
        end = self.log_end_offset
        self.producers.end_offset = end
        if self._snapshot_offset != end:
            snapshots.write(self.files.disk, self.folder, self.producers, end)
            self._snapshot_offset = end
            if len(self.producers):
                self.flushing.snapshots.append(self.folder / file_name(end, SNAPSHOT_SUFFIX))
                self.flushing.unsynced_names = True

    def read(self, offset: int, max_bytes: int, up_to: int, min_one: bool = True) -> FileSlice | None:
        """A slice of one segment's file that begins with the batch that holds `offset` and ends below the offset
        `up_to`, after at most `max_bytes`; its last batch may be cut. None if nothing is to be read. `min_one`: the
        first batch is returned whole, even if it is larger than `max_bytes`.

        Raises `KafkaError`: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE."""
        if self.serving.offline:
            raise self.serving.storage_error()
        end = self.log_end_offset
        if offset > end or offset < self.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= up_to or offset == end or (max_bytes <= 0 and not min_one):
            return None
        try:
            # The segment: mostly the active one.
            segments = self.segments
            segment = self._active
            number = len(segments) - 1
            if offset < segment.base_offset:
                number = lookup.segment_at(segments, offset)
                segment = segments[number]
            # The batch: the first one of a later segment, if compaction has removed the rest of this segment.
            batch = segment.find(offset)
            while batch is None:
                with self.serving.guard():
                    lookup.check_end(segment, offset)
                number += 1
                if number == len(segments):
                    return None
                segment = segments[number]
                batch = segment.find(offset)
            position, header = batch
            # Where the reader has to stop: at the segment's end, or in front of the batch that holds `up_to`.
            limit = segment.size
            if up_to < end:
                limit = lookup.position_of(segment, up_to)
                if header.base_offset >= up_to or limit <= position:
                    return None
            first_size = header.size
            if first_size > max_bytes:
                if not min_one:
                    return None
                max_bytes = first_size
            is_cut = limit - position > max_bytes
            if not is_cut:
                max_bytes = limit - position
            tail = end if not is_cut and limit == segment.size and segment is self._active else None
            return slice_of(segment, position, max_bytes, is_cut, tail, self.serving.fail)
        except OSError as error:
            raise self.serving.fail(error) from error

    def read_batches(self, offset: int, max_bytes: int) -> bytes:
        """The bytes of whole batches from `offset` on, at least one; none at the log's end. Raises as `read` does."""
        piece = self.read(offset, max_bytes, self.log_end_offset)
        return b"" if piece is None else piece.file.read(piece.length, piece.offset)

    def epoch_of_batch(self, offset: int) -> int:
        """The leader epoch in the header of the batch that holds an offset, known even where `epochs` was truncated."""
        with self.serving.guard():
            return lookup.epoch_of_batch(self.segments, offset)

    def delete_records_before(self, offset: int) -> Offset:
        """Move the log's start to `offset`, if that is ahead; returns where it is. Segments go with the next retention.
        Raises `KafkaError` (OFFSET_OUT_OF_RANGE) beyond the log's end."""
        if self.serving.offline:
            raise self.serving.storage_error()
        if not 0 <= offset <= self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self._move_start(offset)
        return self.log_start_offset

    def _move_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = Offset(offset)
            self.epochs.truncate_from_start(offset)

    def retain(self, now_ms: int, high_watermark: int) -> Sequence[Segment]:
        """Delete the segments that have had their time; their files go later. Returns them. Not while it is cleaned."""
        with self.serving.guard():
            if self.cleaning:  # or truncated: a thread changes its segments
                return []
            count, why = retention.deletable(
                self.segments, self._config, now_ms, self.log_start_offset, self.log_end_offset, high_watermark
            )
            ahead = retention.held_up_by(self.segments[count:], self._config, now_ms)
            if ahead is not None:
                failures.kept_by_its_time(self.tp, ahead.base_offset, ahead.largest_timestamp())
            if not count:
                return []
            if count == len(self.segments):
                self.roll(now_ms)
            self.flushing.force_snapshots()  # or nothing is left of producers and transactions that are in them alone
            gone, self.segments = self.segments[:count], self.segments[count:]
            self._move_start(self.segments[0].base_offset)
            for segment in gone:
                self.remove_later(doom(segment, self.files.disk), now_ms)
            self.flushing.unsynced_names = True
        self.committed.refresh()
        deleted = counted(count, "segment")
        logger.info("%s: %s deleted (%s), the log starts at %d", self.tp, deleted, why, self.log_start_offset)
        return gone

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """Put one segment in the place of several neighbours, whose files the cleaner then renames."""
        if self.serving.offline:
            raise self.serving.storage_error()
        new.config = self._config
        first = self.segments.index(old[0])
        behind = first + len(old)
        assert self.segments[first:behind] == tuple(old), "only neighbours are replaced"
        self.segments = (*self.segments[:first], new, *self.segments[behind:])

    def take_state_of(self, other: "Log") -> None:
        """This log has all batches of another one: take over its start, and what it knows of leader epochs and
        producers, some of whose batches may be gone. Both refer to the same producers from now on. Raises
        `OSError`."""
        self.epochs = Epochs(other.epochs.starts)
        self.epochs.dirty = True
        self.producers, self._snapshot_offset = other.producers, -1
        self._move_start(other.log_start_offset)
        self._snapshot()

    def take_over(self, other: "Log") -> None:
        """This log, just opened, takes the place of another one with the same batches."""
        self.config, self.producers = other.config, other.producers
        self._move_start(other.log_start_offset)

    def remove_later(self, paths: Sequence[Path], now_ms: int) -> None:
        """These files are no longer part of the log."""
        for path in paths:
            self.services.doomed.add(path, now_ms + self._config.file_delete_delay_ms)

    def flush_overdue(self) -> bool:
        """Whether a flush is due by `flush.ms`."""
        return self.recovery_point < self.log_end_offset and self.flushing.age_ms() >= self._config.flush_ms

    @property
    def has_closed_unflushed(self) -> bool:
        """Whether a segment was closed since the last flush."""
        return self._active.base_offset > self.recovery_point

    def flush_closed(self) -> None:
        """Flush the closed segments only, as records of the active one may wait for the next `flush`."""
        with self.flushing.lock, self.serving.guard():
            segments = self.segments
            self.flushing.force(segments, int(segments[-1].base_offset), self.epochs, with_active=False)

    def flush(self, closing: bool = False) -> None:
        """Force everything appended so far to the disk and move the recovery point. Blocks; may run in another
        thread."""
        with self.flushing.lock, self.serving.guard():
            end = int(self.log_end_offset)
            segments = self.segments  # read after the end, so that it holds all records below that
            if closing or self.flushing.is_wanted(end, self.epochs):
                self.flushing.force(segments, end, self.epochs, closing=closing)
                self.flushing.done_ms = self.flushing.elapsed_ms()

    def close(self) -> None:
        """Flush, complete the indexes, write down the producers. Nothing is appended after it."""
        if not self.offline:
            self.write_out()
            self.flush(closing=True)
            self.abandon()

    def write_out(self) -> None:
        """The first half of `close`: the caller then flushes the whole file system and calls `close_flushed`."""
        with self.serving.guard():
            self._active.close()
            self._snapshot()
            self.flushing.write_out(self.epochs)

    def close_flushed(self) -> bool:
        """The second half of `close`: all that `write_out` left is flushed. False if it takes one more flush."""
        with self.flushing.lock, self.serving.guard():
            done = self.flushing.was_forced(self.segments, int(self.log_end_offset), self.epochs)
        if done:
            self.abandon()
        return done

    def abandon(self) -> None:
        """Let go of all files; every call from now on is refused."""
        self.serving.offline = True
        for segment in self.segments:
            segment.deleted = True
            segment.let_go()
