"""Finding a place in a list of segments, by offset and by time: the search and the short scan behind it.

A log with many segments is searched, not walked, for an offset and for a time; since timestamps need not rise, a time
is looked for among the largest ones so far. Only the batch that is found is looked into, record by record.
Nothing here changes a segment but for the indexes that it opens; all of it may raise `OSError`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from moldau.log.segment import NO_TIMESTAMP, Segment, TimestampOffset
from moldau.names import Offset
from moldau.records.rows import iterate


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def segment_at(segments: Sequence[Segment], offset: int) -> int:
    """The position of the segment that holds an offset, or would."""
    return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)


def position_of(segment: Segment, up_to: int) -> int:
    """Where in a segment the batch of an offset begins; its end if the offset is behind it."""
    found = segment.find(up_to)
    return segment.size if found is None else found.position


def epoch_of_batch(segments: Sequence[Segment], offset: int) -> int:
    """The leader epoch in the batch that holds an offset, or in the first one behind it; -1 if there is none."""
    for segment in segments[segment_at(segments, offset) :]:
        found = segment.find(offset)
        if found is not None:
            return found.header.partition_leader_epoch
    return -1


def end_of_slice(segments: Sequence[Segment], offset: int, end_position: int, log_end: int) -> int:
    """An offset behind all batches of a slice that was read from `offset` on and ends at a position of its segment's
    file: that of the next index entry, or of the next segment."""
    at = segment_at(segments, offset)
    while segments[at].find(offset) is None and at + 1 < len(segments):
        at += 1
    entry = segments[at].offsets.first_from(end_position)
    if entry is not None:
        return segments[at].base_offset + entry.key
    return segments[at + 1].base_offset if at + 1 < len(segments) else log_end


class SegmentTimes:
    """The largest timestamp up to and including each closed segment, noted anew when the list of segments is another:
    these rise, so that the first segment that reaches a time is searched for, however many there are."""

    __slots__ = ("_rising", "_segments")

    def __init__(self) -> None:
        self._segments: Sequence[Segment] = ()
        self._rising: list[int] = []

    def first_reaching(self, segments: Sequence[Segment], timestamp_ms: int) -> int:
        """Where in the list is the first segment with a timestamp at or after this one; the last one if none is."""
        if segments is not self._segments:
            self._rising = list(accumulate((segment.largest_timestamp() for segment in segments[:-1]), max))
            self._segments = segments
        return bisect_left(self._rising, timestamp_ms)


def first_since(
    segments: Sequence[Segment], times: SegmentTimes, timestamp_ms: int, log_start: int
) -> TimestampOffset | None:
    """The first record at or after a time, among those at or after the log's start; None if there is none."""
    for at in range(times.first_reaching(segments, timestamp_ms), len(segments)):
        if segments[at].largest_timestamp() >= timestamp_ms:
            found = _first_since(segments[at], timestamp_ms, log_start)
            if found is not None:
                return found
    return None


def _first_since(segment: Segment, timestamp_ms: int, start: int) -> TimestampOffset | None:
    before = segment.times.floor(timestamp_ms)
    if before is not None and not segment.has_time(before):
        segment.rebuild_indexes()
        before = segment.times.floor(timestamp_ms)
    offset = segment.base_offset + before.value if before is not None else segment.base_offset
    entry = segment.offsets.floor(max(offset, start) - segment.base_offset)
    for position, header in segment.walk(entry.value if entry is not None else 0):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= start:
            for record in iterate(segment.log.get().read(header.size, position), control=True):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start:
                    return TimestampOffset(record.timestamp_ms, Offset(record.offset))
    return None


def first_of_largest(segments: Sequence[Segment]) -> TimestampOffset | None:
    """The first record that has the largest timestamp of all; None if there is no record with a time, or, as Kafka
    says, if compaction has emptied the batch that had it."""
    largest = NO_TIMESTAMP
    for segment in segments:
        segment.look()
        if segment.size:
            largest = max(largest, segment.max_timestamp)
    for segment in segments if largest >= 0 else ():
        if segment.max_timestamp == largest:
            found = _first_at(segment, largest)
            if found is not None:
                return found
    return None


def _first_at(segment: Segment, timestamp_ms: int) -> TimestampOffset | None:
    """The first record with the largest timestamp of a segment."""
    entry = segment.offsets.floor(segment.max_timestamp_offset - segment.base_offset)
    for position, header in segment.walk(entry.value if entry is not None else 0):
        if header.max_timestamp == timestamp_ms:
            for record in iterate(segment.log.get().read(header.size, position), control=True):
                if record.timestamp_ms == timestamp_ms:
                    return TimestampOffset(record.timestamp_ms, Offset(record.offset))
    return None
