"""One partition's log: an append, a read, and the segments in between.

Invariants: offsets are given out here and never twice; segments are in order, the last one is active;
`log_start_offset` is at or below every offset that is served, `log_end_offset` is the next one given out; the recovery
point never passes what was flushed. A batch is appended whole or not at all.

All methods run on one thread, the loop's, but for `open`, `flush` and `close`, which block and may run in an executor.
Nothing here knows of leaders, requests or watermarks beyond the numbers it is handed. An `OSError` while the log is
served takes it offline for good: every call from then on raises `KafkaError(KAFKA_STORAGE_ERROR)`, and no fsync is
tried again. The one exception is a process that has no descriptor left: that call raises the same error, which clients
retry, and changes nothing.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log import checkpoints, failures, lookup, recovery, retention, times
from moldau.log.appended import Appended, not_appended
from moldau.log.compaction.swapping import spliced
from moldau.log.deletion import Doomed
from moldau.log.file_names import SNAPSHOT_SUFFIX, file_name
from moldau.log.files import OpenFiles
from moldau.log.flushing import Flushing
from moldau.log.producers import snapshots
from moldau.log.progress import Progress
from moldau.log.segment import Segment
from moldau.log.transaction_index import AbortedTxn
from moldau.names import LeaderEpoch, Offset, TopicPartition, counted
from moldau.records.batch import Marker, encode_marker, read_header
from moldau.records.validation import LOG_APPEND_TIME, Checked, assign_offsets
from moldau.runtime import FileSlice, Runtime, out_of_descriptors

_NONE: Final = ErrorCode.NONE

logger = logging.getLogger(__name__)


class Log:
    """One partition on disk. `config` may be replaced at any time. `has_aborted`: there were such transactions."""

    __slots__ = (
        "_active", "_config", "_doomed", "_flushing", "_on_failure", "_runtime", "_segments", "_snapshot_offset",
        "_stamps", "_times", "cleaning", "epochs", "files", "folder", "has_aborted", "log_end_offset",
        "log_start_offset", "offline", "producers", "topic_id", "tp",
    )  # fmt: skip

    def __init__(
        self,
        folder: Path,
        tp: TopicPartition,
        config: TopicConfig,
        runtime: Runtime,
        files: OpenFiles,
        doomed: Doomed,
        loaded: recovery.LoadedLog,
    ):
        self.folder = folder
        self.tp = tp
        self.topic_id: uuid.UUID | None = None
        self.offline = False
        self.cleaning = False
        self.log_start_offset = Offset(loaded.log_start_offset)
        self.log_end_offset = Offset(loaded.log_end_offset)
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._snapshot_offset = loaded.snapshot_offset
        self._runtime = runtime
        self.files = files
        self._doomed = doomed
        self._on_failure: Callable[[OSError], object] | None = None
        self._segments: list[Segment] = loaded.segments
        self._active = loaded.segments[-1]
        self._times = times.SegmentTimes()
        self.has_aborted = any(segment.aborted.entries for segment in loaded.segments)
        self._flushing = Flushing(files.disk, folder, loaded, runtime.clock.now_ms())
        self.config = config

    @classmethod
    def open(
        cls,
        folder: Path,
        tp: TopicPartition,
        config: TopicConfig,
        runtime: Runtime,
        *,
        clean: bool,
        topic_id: uuid.UUID,
        recovery_point: int = 0,
        log_start: int = 0,
        files: OpenFiles | None = None,
        doomed: Doomed | None = None,
        on_failure: Callable[[OSError], object] | None = None,
        progress: Progress | None = None,
        gaps_are_losses: bool = False,
        closed_at: int = -1,
    ) -> "Log":
        """The log in a folder, which is made if it is not there. `closed_at`: where it ended when it was closed, by a
        stop that was cut off later; -1 if it was not. Blocks, after an unclean stop for long. Raises `OSError`."""
        disk = runtime.disk
        files = OpenFiles(disk) if files is None else files
        doomed = Doomed(disk) if doomed is None else doomed
        if not disk.exists(folder):
            disk.make_folder(folder)
        if not disk.exists(folder / checkpoints.PARTITION_METADATA):
            checkpoints.write_topic_id(disk, folder, topic_id)
        now_ms = runtime.clock.now_ms()
        loading = recovery.Loading(
            folder, config, files, now_ms, clean, recovery_point, log_start, progress, gaps_are_losses, closed_at
        )
        log = cls(folder, tp, config, runtime, files, doomed, recovery.load(loading))
        log.topic_id = topic_id
        log._on_failure = on_failure
        return log

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self._stamps = config.message_timestamp_type == LOG_APPEND_TIME
        for segment in self._segments:
            segment.config = config

    @property
    def active_segment(self) -> Segment:
        return self._active

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def recovery_point(self) -> int:
        """Everything below it is on the disk for good."""
        return self._flushing.recovery_point

    @property
    def shows_its_start(self) -> bool:
        """Whether the log starts with its first segment, and would after a power loss: nothing that was deleted in
        front of it may come back."""
        start = self.log_start_offset
        return start <= self._segments[0].base_offset and not (start and self._flushing.unsynced_names)

    @property
    def unflushed_records(self) -> int:
        """Records behind the recovery point, for `flush.messages`."""
        return self.log_end_offset - self.recovery_point

    def epoch_at(self, offset: int) -> LeaderEpoch:
        return self.epochs.epoch_at(offset)

    def append(self, data: memoryview, checked: Checked, leader_epoch: int, now_ms: int) -> Appended:
        """Append one checked batch, whose offsets are written into `data`. Errors of the producer's state are answered
        in the result; raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        if self.offline:
            raise self._storage_error()
        header = checked.header
        assert header is not None
        if header.producer_id >= 0:
            found = self.producers.check(header)
            if found is not None:
                return not_appended(found, self.log_start_offset)
        size, base = checked.size, self.log_end_offset
        if checked.rewritten is not None:
            data = memoryview(checked.rewritten)
        elif size != len(data):
            data = data[:size]
        if size > self._config.segment_bytes:
            return not_appended(ErrorCode.RECORD_LIST_TOO_LARGE, -1)
        last = base + header.last_offset_delta
        max_timestamp, stamp_ms = (now_ms, now_ms) if self._stamps else (checked.max_timestamp, None)
        try:
            segment = self._active
            if segment.is_full(size, last, max_timestamp, now_ms):
                segment = self.roll(now_ms)
            assign_offsets(data, base, leader_epoch, stamp_ms, max_timestamp)
            segment.append(data, last, max_timestamp)
        except OSError as error:
            raise self.fail(error) from error
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base)
        self.log_end_offset = last + 1  # type: ignore[assignment]  # an Offset, without the call
        if header.producer_id >= 0:
            self.producers.appended(header, base, max_timestamp)
        stood = (base, last, -1 if stamp_ms is None else stamp_ms, self.log_start_offset, _NONE, False)
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
        checked = Checked(_NONE, None, header, now_ms, 0, len(batch))
        offset = self.log_end_offset
        with self._serving():
            if self._active.is_full(len(batch), offset, now_ms, now_ms):
                self.roll(now_ms)
            index = self._active.aborted
            entries, aborted = index.entries, self.producers.aborted_by(producer_id, marker, offset)
            if aborted is not None:  # noted first, so that whatever flush takes the marker takes this as well
                index.append(aborted)
                self.has_aborted = self._flushing.unsynced_names = True
        try:
            appended = self.append(memoryview(batch), checked, leader_epoch, now_ms)
        except KafkaError:
            index.entries = entries  # the marker comes again, and its entry in this one's place
            raise
        if not appended.error:
            self.producers.ended(header, marker, offset, now_ms)
        return appended

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Up to where readers of committed records may read, under that high watermark."""
        if self.producers.unsettled:
            return self.producers.last_stable_offset(high_watermark, self.log_start_offset)
        return high_watermark

    def aborted_between(self, start: int, end: int) -> list[AbortedTxn]:
        """The aborted transactions with records or a marker in start <= offset < end, in order of their markers."""
        with self._serving():
            if not self.has_aborted:
                return []
            return lookup.aborted_between(self._segments[lookup.segment_at(self._segments, start) :], start, end)

    def aborted_in(self, offset: int, piece: FileSlice | None) -> list[AbortedTxn]:
        """What a reader of committed records needs to know of a piece that was just read from `offset` on. As in Kafka,
        the piece's end is rounded up to the next index entry, so there may be more than in the piece."""
        if piece is None or not self.has_aborted:
            return []
        with self._serving():
            end = lookup.end_of_slice(self._segments, offset, piece.offset + piece.length, self.log_end_offset)
        return self.aborted_between(offset, end)

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and begin a new one at the log's end; an empty one is begun again. Raises
        `OSError`."""
        old, end = self._active, self.log_end_offset
        jitter = min(self._config.segment_jitter_ms, self._config.segment_ms)
        jitter_ms = self._runtime.random.below(jitter) if jitter > 0 else 0
        if not old.size and old.base_offset == end:
            old.let_go()
            kept = self._segments[:-1]
        else:
            old.close()
            kept = self._segments
            self._snapshot()
        self._active = Segment.create(self.folder, end, self._config, self.files, now_ms, jitter_ms)
        self._segments = [*kept, self._active]
        self._flushing.unsynced_names = True
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
                self._flushing.snapshots.append(self.folder / file_name(end, SNAPSHOT_SUFFIX))
                self._flushing.unsynced_names = True

    def read(self, offset: int, max_bytes: int, up_to: int, min_one: bool = True) -> FileSlice | None:
        """A slice from the batch that holds `offset` on, of whole bytes below `up_to`: the first batch whole even if it
        is larger than `max_bytes` (unless not `min_one`), the last one possibly cut. None if there is nothing.
        Raises `KafkaError`: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE."""
        if self.offline:
            raise self._storage_error()
        end = self.log_end_offset
        if offset > end or offset < self.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= up_to or offset == end or (max_bytes <= 0 and not min_one):
            return None
        try:
            segments = self._segments
            segment = self._active
            at = len(segments) - 1
            if offset < segment.base_offset:
                at = lookup.segment_at(segments, offset)
                segment = segments[at]
            found = segment.find(offset)
            while found is None:
                with self._serving():
                    lookup.check_end(segment, offset)
                at += 1
                if at == len(segments):
                    return None
                segment = segments[at]
                found = segment.find(offset)
            position, header = found
            limit = segment.size
            if up_to < end:
                limit = lookup.position_of(segment, up_to)
                if header.base_offset >= up_to or limit <= position:
                    return None
            first = header.size
            if first > max_bytes:
                if not min_one:
                    return None
                max_bytes = first
            is_cut = limit - position > max_bytes
            if not is_cut:
                max_bytes = limit - position
                if limit == segment.size and segment is self._active:
                    segment.mark = (end, limit)
            return segment.slice(position, max_bytes, is_cut, self.fail)
        except OSError as error:
            raise self.fail(error) from error

    def read_batches(self, offset: int, max_bytes: int) -> bytes:
        """The bytes of whole batches from `offset` on, at least one; none at the log's end. Raises as `read` does."""
        piece = self.read(offset, max_bytes, self.log_end_offset)
        return b"" if piece is None else piece.file.read(piece.length, piece.offset)

    def epoch_of_batch(self, offset: int) -> int:
        """The leader epoch that stands in the batch of an offset, also where `epochs` no longer tells."""
        with self._serving():
            return lookup.epoch_of_batch(self._segments, offset)

    def offset_for_time(self, timestamp_ms: int) -> times.Search:
        """Search for the first record at or after a time, among those at or after the log's start."""
        return self._search(lambda: times.first_since(self._segments, self._times, timestamp_ms, self.log_start_offset))

    def offset_of_max_timestamp(self) -> times.Search:
        """Search for the first record that has the largest timestamp of all."""
        return self._search(lambda: times.first_of_largest(self._segments))

    def _search(self, begin: Callable[[], times.Search]) -> times.Search:
        """Carry a search through, anew if records were deleted or compacted meanwhile. Raises `KafkaError`."""
        while True:
            start = self.log_start_offset
            with self._serving(), suppress(times.Replaced):
                found = yield from begin()
                if start == self.log_start_offset:
                    return found

    def delete_records_before(self, offset: int) -> Offset:
        """Move the log's start to `offset`, if that is ahead; returns where it is. Segments go with the next retention.
        Raises `KafkaError` (OFFSET_OUT_OF_RANGE) beyond the log's end."""
        if self.offline:
            raise self._storage_error()
        if not 0 <= offset <= self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self._move_start(offset)
        return self.log_start_offset

    def _move_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = Offset(offset)
            self.epochs.truncate_from_start(offset)

    def retain(self, now_ms: int, high_watermark: int) -> list[Segment]:
        """Delete the segments that have had their time; their files go later. Returns them. Not while it is cleaned."""
        with self._serving():
            count, why = retention.deletable(
                self._segments, self._config, now_ms, self.log_start_offset, self.log_end_offset, high_watermark
            )
            if not count or self.cleaning:
                return []
            if count == len(self._segments):
                self.roll(now_ms)
            self._flushing.force_snapshots()  # or nothing is left of producers and transactions that are in them alone
            gone, self._segments = self._segments[:count], self._segments[count:]
            self._move_start(self._segments[0].base_offset)
            for segment in gone:
                segment.deleted = True
                self.remove_later(segment.doom(), now_ms)
            self._flushing.unsynced_names = True
        self.has_aborted = any(segment.aborted.entries for segment in self._segments)
        deleted = counted(count, "segment")
        logger.info("%s: %s deleted (%s), the log starts at %d", self.tp, deleted, why, self.log_start_offset)
        return gone

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """From now on one segment stands where several stood; their files are the cleaner's to rename."""
        if self.offline:
            raise self._storage_error()
        new.config = self._config
        self._segments = spliced(self._segments, old, new)

    def remove_later(self, paths: Sequence[Path], now_ms: int) -> None:
        """These files are no longer part of the log."""
        for path in paths:
            self._doomed.add(path, now_ms + self._config.file_delete_delay_ms)

    def remove_due(self, now_ms: int) -> int:
        """Remove the files of deleted segments whose time has come; a log in a folder leaves that to it."""
        return self._doomed.remove_due(now_ms)

    def flush_overdue(self, now_ms: int) -> bool:
        """Whether a flush is due by `flush.ms`."""
        return self.recovery_point < self.log_end_offset and self._flushing.age_ms(now_ms) >= self._config.flush_ms

    @property
    def has_closed_unflushed(self) -> bool:
        """Whether a segment was closed since the last flush."""
        return self._active.base_offset > self.recovery_point

    def flush_closed(self) -> None:
        """As `flush`, but for the active segment, whose records may wait."""
        with self._flushing.lock, self._serving():
            segments = self._segments
            self._flushing.force(segments, int(segments[-1].base_offset), self.epochs, with_active=False)

    def flush(self, closing: bool = False) -> None:
        """Force everything appended so far to the disk and move the recovery point. Blocks; may run in another
        thread."""
        with self._flushing.lock, self._serving():
            end = int(self.log_end_offset)
            segments = self._segments  # read after the end, so that it holds all records below that
            if closing or self._flushing.is_wanted(end, self.epochs):
                self._flushing.force(segments, end, self.epochs, closing=closing)
                self._flushing.done_ms = self._runtime.clock.now_ms()

    def close(self) -> None:
        """Flush, complete the indexes, write down the producers. Nothing is appended after it."""
        if not self.offline:
            self.write_out()
            self.flush(closing=True)
            self.abandon()

    def write_out(self) -> None:
        """The first half of `close`: the caller then flushes the whole file system and calls `close_flushed`."""
        with self._serving():
            self._active.close()
            self._snapshot()
            self._flushing.write_out(self.epochs)

    def close_flushed(self) -> bool:
        """The second half of `close`: all that `write_out` left is flushed. False if it takes one more flush."""
        with self._flushing.lock, self._serving():
            done = self._flushing.was_forced(self._segments, int(self.log_end_offset), self.epochs)
        if done:
            self.abandon()
        return done

    def abandon(self) -> None:
        """Let go of all files; every call from now on is refused."""
        self.offline = True
        for segment in self._segments:
            segment.deleted = True
            segment.let_go()

    @contextmanager
    def _serving(self) -> Iterator[None]:
        """Around what touches files, and is not on the path of every request."""
        if self.offline:
            raise self._storage_error()
        try:
            yield
        except OSError as error:
            raise self.fail(error) from error
        except KafkaError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                failures.damaged(self.folder, error)
            raise

    def fail(self, error: OSError) -> KafkaError:
        """Take the log, and by `on_failure` its whole folder, offline; what to answer. One that was let go (its topic
        is deleted) fails alone: its files may be gone under whoever still used it."""
        if self.offline:
            return self._storage_error()
        if out_of_descriptors(error):
            return failures.no_descriptor(self.folder, error)
        self.offline = True
        logger.error("%s is offline: %s", self.folder, error)
        if self._on_failure is not None:
            self._on_failure(error)
        return self._storage_error()

    def _storage_error(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log folder of {self.tp} failed or is closed")
