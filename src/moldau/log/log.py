"""One partition's log: append, read, roll, and the segments in between.

Invariants: the log assigns every offset, and none twice unless its end was truncated; segments are in order and the
last one is active; `log_start_offset` is at or below every offset that is served, `log_end_offset` is the next one to
be assigned; the recovery point is never above what was flushed. A batch is appended whole or not at all.

Other parts: `opening` (makes or recovers a log), `serving` (online or offline), `committed` (reading with
read_committed), `times` (look-up by time), `retention`, `flushing`, `truncation`, `replicated` (what a leader wrote).

All methods run on one thread, the loop's, except `flush`, `close` and `truncate_to`, which block and may run in an
executor. Nothing here knows leaders, requests or watermarks beyond the numbers it is handed.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log import lookup, replicated, retention, times, truncation
from moldau.log.appended import Appended, not_appended
from moldau.log.committed import CommittedReading
from moldau.log.file_names import SNAPSHOT_SUFFIX, file_name
from moldau.log.flushing import Flushing
from moldau.log.producers import rebuilding, snapshots
from moldau.log.producers.producers import Producers
from moldau.log.recovering.recovery import LoadedLog
from moldau.log.segment import RELATIVE_MAX, Segment
from moldau.log.services import LogServices
from moldau.log.serving import Serving
from moldau.names import Offset, TopicPartition, counted
from moldau.records.batch import BatchHeader, Marker, encode_marker, read_header
from moldau.records.validation import LOG_APPEND_TIME, Checked, assign_offsets
from moldau.replies import FileSlice
from moldau.runtime import Buffer

_NONE: Final = ErrorCode.NONE

logger = logging.getLogger(__name__)


class Log:
    """One partition on disk. `config` may be replaced at any time. `cleaning`: its segments are being rewritten, by the
    cleaner or by a truncation, and nothing else may touch them."""

    __slots__ = (
        "_active", "_config", "_doomed", "_flushing", "_runtime", "_snapshot_offset", "_stamps", "_times",
        "_write_log_starts", "_write_recovery_points", "cleaning", "committed", "epochs", "files", "folder",
        "log_end_offset", "log_start_offset", "producers", "segments", "serving", "topic_id", "tp",
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
        self._runtime = services.runtime
        self.files = services.files
        self._doomed = services.doomed
        self._write_recovery_points = services.write_recovery_points
        self._write_log_starts = services.write_log_starts
        self.segments: tuple[Segment, ...] = tuple(loaded.segments)
        self._active = loaded.segments[-1]
        self._times = times.SegmentTimes()
        self.committed = CommittedReading(self)
        self._flushing = Flushing(services.files.disk, folder, loaded, self._runtime.clock.now_ms())
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
        return self._flushing.recovery_point

    @property
    def shows_its_start(self) -> bool:
        """Whether the log starts with its first segment, and would after a power loss: nothing that was deleted in
        front of it may come back."""
        start = self.log_start_offset
        return start <= self.segments[0].base_offset and not (start and self._flushing.unsynced_names)

    @property
    def unflushed_records(self) -> int:
        """Records behind the recovery point, for `flush.messages`."""
        return self.log_end_offset - self.recovery_point

    def append(self, data: memoryview, checked: Checked, leader_epoch: int, now_ms: int) -> Appended:
        """Append one checked batch, whose offsets are written into `data`. Errors of the producer's state are answered
        in the result; raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        if self.serving.offline:
            raise self.serving.storage_error()
        _, _, header, max_timestamp, _, size, _, rewritten = checked
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            found = self.producers.check(header)
            if found is not None:
                return not_appended(found, self.log_start_offset, leader_epoch)
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
        checked = Checked(_NONE, None, header, now_ms, 0, len(batch))
        offset = self.log_end_offset
        with self.serving.guard():
            if self._active.is_full(len(batch), offset, now_ms, now_ms):
                self.roll(now_ms)
            index = self._active.aborted
            entries, aborted = index.entries, self.producers.aborted_by(producer_id, marker, offset)
            if aborted is not None:  # noted first, so that whatever flush takes the marker takes this as well
                index.append(aborted)
                self.committed.has_aborted = self._flushing.unsynced_names = True
        try:
            appended = self.append(memoryview(batch), checked, leader_epoch, now_ms)
        except KafkaError:
            index.entries = entries  # the marker comes again, and its entry in this one's place
            raise
        if not appended.error:
            self.producers.ended(header, marker, offset, now_ms, transaction_version)
        return appended

    def append_replicated(self, data: Buffer, leader_epoch: int, now_ms: int) -> Offset:
        """Append the whole batches at the beginning of `data`, as this partition's leader wrote them: a follower's
        part. Returns the log's new end. `leader_epoch`: that of the leader they were fetched from.

        Raises `KafkaError`: CORRUPT_MESSAGE if any whole batch must not be appended (then none was), and
        KAFKA_STORAGE_ERROR."""
        self.serving.check()
        view = memoryview(data)
        headers = replicated.whole_batches(view, self.log_end_offset, self.epochs.latest, leader_epoch)
        with self.serving.guard():
            while headers:
                count = self._active.fitting(headers, now_ms)
                if not count:  # the next segment takes at least one batch, however large
                    count = max(self.roll(now_ms).fitting(headers, now_ms), 1)
                run, headers = headers[:count], headers[count:]
                size = sum(header.size for header in run)
                self._append_run(view[:size], run)
                view = view[size:]
        return self.log_end_offset

    def _append_run(self, data: memoryview, headers: Sequence[BatchHeader]) -> None:
        """Append batches that fit into the active segment, with one write. Raises `OSError`, and then they are not in
        the log."""
        segment = self._active
        if headers[-1].last_offset - segment.base_offset > RELATIVE_MAX:
            gap = headers[0].base_offset - self.log_end_offset
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a gap of {gap} offsets does not fit into a segment")
        markers = replicated.markers_in(data, headers)
        if any(marker is not None and not marker.commits for marker in markers):
            segment.aborted.prepare()
        segment.append_run(data, headers)
        with self.serving.changing_files():  # the producers would know batches that are not in the log
            if replicated.note(headers, markers, self.epochs, self.producers, segment.aborted):
                self.committed.has_aborted = self._flushing.unsynced_names = True
        self.log_end_offset = Offset(headers[-1].next_offset)

    def truncate_to(self, offset: int, high_watermark: int, now_ms: int) -> Offset:
        """Remove what is at or behind `offset`, whole batches only, so that what is left agrees with a leader whose log
        differs from there on. Returns the log's new end, at or below `offset`: the caller lowers its high watermark to
        that and wakes the requests that wait. A log start within the batch that goes falls to the new end, as in Kafka.

        Leader epochs that began at or behind the new end are forgotten even where no batch goes. The caller keeps the
        cleaner away from this log, and appends and reads nothing meanwhile. Blocks. Raises `KafkaError`:
        OFFSET_OUT_OF_RANGE below the log's start, KAFKA_STORAGE_ERROR.
        """
        self.serving.check()
        if offset < self.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        with self._flushing.lock, self.serving.guard():
            end = self.log_end_offset
            if offset < end:
                self._cut(truncation.place_of(self.segments, offset), now_ms)
            self.epochs.truncate_from_end(min(offset, self.log_end_offset))
        truncation.report(self.tp, end, self.log_end_offset, high_watermark)
        return self.log_end_offset

    def begin_at(self, offset: int, now_ms: int) -> None:
        """Remove everything, and begin anew at `offset`, where the leader's log begins. Otherwise as `truncate_to`."""
        self.serving.check()
        with self._flushing.lock, self.serving.guard():
            logger.info("%s begins anew at offset %d; it ended at %d", self.tp, offset, self.log_end_offset)
            self._cut(truncation.CutPlace(0, 0, Offset(min(self.segments[0].base_offset, offset))), now_ms)
            with self.serving.changing_files():
                truncation.remove_snapshots(self.folder, -1, self.files.disk)
                self.epochs.truncate_from_end(0)
                self.producers, self._snapshot_offset = Producers(), -1
                self.log_start_offset = self.log_end_offset = Offset(offset)
                self.roll(now_ms)
                if len(self.segments) > 1:
                    emptied, self.segments = self.segments[0], self.segments[1:]
                    self.remove_later(truncation.remove_segments([emptied], self.files.disk), now_ms)
            if self._write_log_starts is not None:  # the next start would begin anew at one above the log's end
                self._write_log_starts()

    def _cut(self, place: truncation.CutPlace, now_ms: int) -> None:
        """The steps that `truncation` lists. Raises `OSError`; then nothing was cut."""
        disk, end = self.files.disk, place.end_offset
        disk.list(self.folder)  # fails if no descriptor is left, before anything is changed
        self._flushing.lower(end, self._write_recovery_points)
        with self.serving.changing_files():
            self.remove_later(truncation.remove_segments(self.segments[place.number + 1 :], disk), now_ms)
            cut = self.segments[place.number].cut(place.position, end)
            truncation.remove_snapshots(self.folder, end, disk)
            self.segments = (*self.segments[: place.number], cut)
            self._active = cut
            self.log_start_offset, self.log_end_offset = min(self.log_start_offset, end), end
            self._times = times.SegmentTimes()
            self.committed.refresh()
            earlier = self.producers
            self.producers, self._snapshot_offset = rebuilding.producers_in(disk, self.folder, self.segments, end)
            self.producers.keep_unstable(earlier, end)

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and begin a new one at the log's end; an empty one is begun again. Raises
        `OSError`."""
        old, end = self._active, self.log_end_offset
        jitter = min(self._config.segment_jitter_ms, self._config.segment_ms)
        jitter_ms = self._runtime.random.below(jitter) if jitter > 0 else 0
        if not old.size and old.base_offset == end:
            old.let_go()
            kept = self.segments[:-1]
        else:
            old.close()
            kept = self.segments
            self._snapshot()
        self._active = Segment.create(self.folder, end, self._config, self.files, now_ms, jitter_ms)
        self.segments = (*kept, self._active)
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
            return segment.slice(position, max_bytes, is_cut, tail, self.serving.fail)
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

    def offset_for_time(self, timestamp_ms: int) -> times.Search:
        """Search for the first record at or after a time, among those at or after the log's start."""
        return self._search(lambda: times.first_since(self.segments, self._times, timestamp_ms, self.log_start_offset))

    def offset_of_max_timestamp(self) -> times.Search:
        """Search for the first record that has the largest timestamp of all."""
        return self._search(lambda: times.first_of_largest(self.segments))

    def _search(self, begin: Callable[[], times.Search]) -> times.Search:
        """Carry a search through; it begins again if records are deleted or compacted meanwhile. Raises
        `KafkaError`."""
        while True:
            start = self.log_start_offset
            with self.serving.guard(), suppress(times.Replaced):
                found = yield from begin()
                if start == self.log_start_offset:
                    return found

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
            if not count:
                return []
            if count == len(self.segments):
                self.roll(now_ms)
            self._flushing.force_snapshots()  # or nothing is left of producers and transactions that are in them alone
            gone, self.segments = self.segments[:count], self.segments[count:]
            self._move_start(self.segments[0].base_offset)
            for segment in gone:
                segment.deleted = True
                self.remove_later(segment.doom(), now_ms)
            self._flushing.unsynced_names = True
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

    def remove_later(self, paths: Sequence[Path], now_ms: int) -> None:
        """These files are no longer part of the log."""
        for path in paths:
            self._doomed.add(path, now_ms + self._config.file_delete_delay_ms)

    def flush_overdue(self, now_ms: int) -> bool:
        """Whether a flush is due by `flush.ms`."""
        return self.recovery_point < self.log_end_offset and self._flushing.age_ms(now_ms) >= self._config.flush_ms

    @property
    def has_closed_unflushed(self) -> bool:
        """Whether a segment was closed since the last flush."""
        return self._active.base_offset > self.recovery_point

    def flush_closed(self) -> None:
        """Flush the closed segments only, as records of the active one may wait for the next `flush`."""
        with self._flushing.lock, self.serving.guard():
            segments = self.segments
            self._flushing.force(segments, int(segments[-1].base_offset), self.epochs, with_active=False)

    def flush(self, closing: bool = False) -> None:
        """Force everything appended so far to the disk and move the recovery point. Blocks; may run in another
        thread."""
        with self._flushing.lock, self.serving.guard():
            end = int(self.log_end_offset)
            segments = self.segments  # read after the end, so that it holds all records below that
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
        with self.serving.guard():
            self._active.close()
            self._snapshot()
            self._flushing.write_out(self.epochs)

    def close_flushed(self) -> bool:
        """The second half of `close`: all that `write_out` left is flushed. False if it takes one more flush."""
        with self._flushing.lock, self.serving.guard():
            done = self._flushing.was_forced(self.segments, int(self.log_end_offset), self.epochs)
        if done:
            self.abandon()
        return done

    def abandon(self) -> None:
        """Let go of all files; every call from now on is refused."""
        self.serving.offline = True
        for segment in self.segments:
            segment.deleted = True
            segment.let_go()
