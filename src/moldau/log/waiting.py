"""When the first record at or behind an offset was written: how long a consumer group has let it wait.

A search runs on its log's thread and is a generator, as in `times`: it yields None after a turn, or a callable that is
too slow for the loop, and returns the record's timestamp. Batches whose records no consumer is handed are passed over:
markers, batches that compaction has emptied, those of aborted transactions. Most answers are in a header; a batch whose
records may be far apart in time is read.
"""

from collections.abc import Generator
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from moldau.log import lookup
from moldau.log.committed import CommittedReading
from moldau.log.segment import Segment
from moldau.log.serving import Serving
from moldau.log.times import INT64_MAX, SearchCondition, first_in
from moldau.log.walking import LocatedBatch
from moldau.names import Offset
from moldau.records.batch import DELETE_HORIZON_BIT, BatchHeader
from moldau.records.lag import BatchSpan
from moldau.records.validation import MAX_INFLATED_MAX
from moldau.runtime import Step

FAR_APART_MS: Final = 100
"""The records of a batch that took longer to fill are looked at one by one."""
PASSED_MAX: Final = 256
"""Batches that are passed over in one search. Behind so many the next one's time is the answer, whatever it holds."""
TURN: Final = 16
"""Batches that are looked up in one turn."""

WaitingSearch: TypeAlias = Generator[Step, Any, int | None]


class WaitedForLog(Protocol):
    """The part of a log that a search looks at."""

    segments: tuple[Segment, ...]
    log_start_offset: Offset
    committed: CommittedReading
    serving: Serving


def waiting_since(log: WaitedForLog, offset: int, end: int) -> WaitingSearch:
    """The timestamp of the first record with offset <= its offset < end, in ms; -1 if it has none; None if no such
    record is left. Raises `KafkaError` (KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE)."""
    offset = max(offset, log.log_start_offset)
    for passed in range(PASSED_MAX + 1):
        with log.serving.guard():
            found = _find(log.segments, offset)
            if found is None or found[1].header.base_offset >= end:
                return None
            segment, (position, header) = found
            if passed < PASSED_MAX and _is_hidden(log, header):
                offset = header.next_offset
                if passed % TURN == TURN - 1:
                    yield None
                continue
            if _is_told_by_header(header, offset) or passed == PASSED_MAX:
                return _span(header).timestamp_at(offset)
            try:
                since = yield partial(_read, segment, position, header, offset)
            except OSError:
                if not segment.deleted:
                    raise
                continue  # its file was gone: look again
            if since is not None:
                return int(since)
        offset = header.next_offset  # compaction has taken the rest of that batch
    return None


def _find(segments: tuple[Segment, ...], offset: int) -> tuple[Segment, LocatedBatch] | None:
    for segment in segments[lookup.segment_at(segments, offset) :]:
        batch = segment.find(offset)
        if batch is not None:
            return segment, batch
    return None


def _is_hidden(log: WaitedForLog, header: BatchHeader) -> bool:
    if header.is_control or not header.count:
        return True
    if not (header.is_transactional and log.committed.has_aborted):
        return False
    aborted = log.committed.aborted_between(header.base_offset, header.next_offset)
    return any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in aborted
    )


def _is_told_by_header(header: BatchHeader, offset: int) -> bool:
    # Compaction took records, perhaps all from the offset on.
    if header.count != header.last_offset_delta + 1 and offset > header.base_offset:
        return False
    if header.log_append_time or header.count == 1 == header.last_offset_delta + 1:
        return True
    if header.attributes & DELETE_HORIZON_BIT:  # its first timestamp is none of a record
        return False
    return header.max_timestamp - header.base_timestamp <= FAR_APART_MS


def _span(header: BatchHeader) -> BatchSpan:
    return BatchSpan(
        header.base_offset,
        header.last_offset,
        header.base_timestamp,
        header.max_timestamp,
        same_time=header.log_append_time or bool(header.attributes & DELETE_HORIZON_BIT),
    )


def _read(segment: Segment, position: int, header: BatchHeader, offset: int) -> int | None:
    """The timestamp of the first record at or behind an offset in that batch; None if it has no such record. Reads and
    inflates. Raises `KafkaError` (CORRUPT_MESSAGE), `OSError`."""
    batch = segment.log.get().read(header.size, position)
    wanted = SearchCondition(-INT64_MAX, INT64_MAX, offset)
    first = first_in(batch, wanted, max(MAX_INFLATED_MAX, segment.config.max_message_bytes))
    return None if first is None else first.timestamp_ms
