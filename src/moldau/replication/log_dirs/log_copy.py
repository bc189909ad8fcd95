"""The copy of a replica's log that grows in another log folder: it follows the log as a follower follows its leader.

A step takes the batches behind the copy's end, checks them as those of a leader, and appends them. Nothing is believed
of the copy that can be asked: before each step its last leader epoch is compared with the log, so a copy from before a
restart, or a log that was truncated meanwhile, is cut where the two differ (KIP-101). A copy that lacks the log's
beginning begins anew.
"""

from functools import partial
from typing import Final

from moldau.errors import ErrorCode, KafkaError
from moldau.log import replicated, truncation
from moldau.log.log import Log
from moldau.names import Offset
from moldau.records.batch import HEADER_SIZE, read_header
from moldau.replication.catching_up import truncation_point
from moldau.replication.for_followers import EpochEnd
from moldau.replies import FileSlice
from moldau.runtime import Runtime

EPOCH_MAX: Final = 2**31 - 1
CHANGED: Final = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE)
STEP_BYTES: Final = 1 << 20
TRIES: Final = 5
"""A step reads again if what it read had changed: the log was truncated and has grown anew, or it is damaged."""


class LogCopy:
    """`copy` grows until it has all that is in `source`. Belongs to the loop, which appends to `source`."""

    def __init__(self, source: Log, copy: Log, runtime: Runtime):
        self._source = source
        self.copy = copy
        self._runtime = runtime
        self._failed = 0

    @property
    def lag(self) -> int:
        """The offsets that the copy lacks."""
        return max(self._source.log_end_offset - self.copy.log_end_offset, 0)

    async def step(self, max_bytes: int = STEP_BYTES) -> int:
        """Copy about that many bytes, at least one batch; returns how many, 0 if the copy has everything. Raises
        `KafkaError`: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE if the log is damaged."""
        source, copy = self._source, self.copy
        if copy.log_end_offset < source.log_start_offset or copy.log_start_offset > source.log_start_offset:
            begins_at = await first_base(source, self._runtime)
            if not copy.log_start_offset == copy.log_end_offset == begins_at:
                await self._begin_anew(begins_at)
        while (differs_at := where_it_differs(source, copy)) is not None:
            if differs_at > copy.segments[0].base_offset and differs_at >= copy.log_start_offset:
                now_ms = self._runtime.clock.now_ms()
                await self._runtime.run(partial(truncation.truncate_to, copy, differs_at, 0, now_ms))
            else:
                await self._begin_anew(await first_base(source, self._runtime))
        if copy.log_end_offset == source.log_end_offset:
            return 0
        try:
            begins_at = max(copy.log_end_offset, source.log_start_offset)
            piece = source.read(begins_at, max_bytes, source.log_end_offset)
            return await self._runtime.run(partial(self._append, piece, source.log_end_offset))
        except KafkaError as error:
            self._failed += 1
            if error.code not in CHANGED or self._failed > TRIES:
                raise
            return 1

    async def _begin_anew(self, offset: Offset) -> None:
        await self._runtime.run(partial(truncation.begin_at, self.copy, offset, self._runtime.clock.now_ms()))

    def _append(self, piece: FileSlice | None, source_end: Offset) -> int:
        """Blocks."""
        copy, now_ms = self.copy, self._runtime.clock.now_ms()
        segments = len(copy.segments)
        if piece is None:  # compaction has left nothing from here on
            with copy.serving.guard():
                copy.log_end_offset = source_end
                copy.roll(now_ms)
            return 1
        data = piece.file.read(piece.length, piece.offset)
        replicated.append(copy, data, EPOCH_MAX, now_ms)
        if len(copy.segments) > segments:
            copy.flush_closed()
        self._failed = 0
        return len(data)


def where_it_differs(source: Log, copy: Log) -> Offset | None:
    """Where to cut the copy, which may differ before that as well, -1 for its beginning; None if it is a part of the
    log."""
    end, epoch = copy.log_end_offset, copy.epochs.latest
    if epoch < 0 or source.epochs.latest < 0:  # all that can be compared is where they end
        return source.log_end_offset if end > source.log_end_offset else None
    known, ended_at = source.epochs.end_of(min(epoch, source.epochs.latest), source.log_end_offset)
    if known == epoch and ended_at >= end:
        return None
    point = truncation_point(copy.epochs, end, EpochEnd(known, ended_at))
    is_new = point < end or copy.epochs.starts[-1].start_offset >= end
    return point if is_new else Offset(-1)


async def first_base(log: Log, runtime: Runtime) -> Offset:
    """Where the first batch of a log begins: DeleteRecords may have moved the log's start into it."""
    piece = log.read(log.log_start_offset, 1, log.log_end_offset)
    if piece is None:
        return log.log_start_offset
    data = await runtime.run(partial(piece.file.read, HEADER_SIZE, piece.offset))
    base = Offset(read_header(data).base_offset) if len(data) == HEADER_SIZE else log.log_start_offset
    return min(base, log.log_start_offset)
