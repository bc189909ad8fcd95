"""Finding a record by its time, in steps: nothing here holds the loop for long, however large a batch or a log is.

A search runs on its log's own thread and is a generator. It yields

    None         its turn is over: other work goes first, then it continues
    a callable   work that reads, inflates or scans too much for the loop: its result is sent back, or its exception is
                 thrown in. It may run in any thread, because it uses a file and nothing else of the log; it holds no
                 file descriptor while it waits to run

and returns the record found. Only segments that can hold the answer are searched. Since timestamps need not rise, the
time index is what bounds the rest: a batch that reaches a time for the first time lies between the entries of the
offset index around the time index's first entry that does. If no index can tell (the record of that entry was deleted
from the front), `columns.seek` scans all headers from there on.

Between two steps the log may go on: segments are deleted, compacted, closed. `Replaced` then asks for a new search.
`TimeSearches` are those of one log.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.log.files import LazyFile
from moldau.log.indexes import IndexEntry
from moldau.log.segment import NO_TIMESTAMP, Segment
from moldau.log.serving import Serving
from moldau.log.walking import SCAN_BYTES, LocatedBatch
from moldau.names import Offset
from moldau.records import columns, compression
from moldau.records.batch import HEADER_SIZE, BatchHeader, crc_holds, read_header
from moldau.records.sections import section_of
from moldau.records.validation import INLINE_BYTES, MAX_INFLATED_MAX, needs_executor
from moldau.runtime import Step

INT64_MAX: Final = (1 << 63) - 1
SEGMENTS_A_TURN: Final = 64
"""Segments that are opened, as happens once to each, before the loop gets a turn."""
READS_ON_LOOP: Final = 8
"""Pieces of `SCAN_BYTES` whose headers are scanned on the loop."""
COMPRESSED_ON_LOOP: Final = INLINE_BYTES // 4
"""Larger batches mostly inflate to more than the loop's limit, so they go to the executor at once."""
READ_BYTES, READS_ELSEWHERE = 1 << 20, 256
"""Pieces scanned in one visit to the executor, before another search gets it."""


class TimestampOffset(NamedTuple):
    timestamp_ms: int
    offset: Offset


TimestampSearch: TypeAlias = Generator[Step, Any, TimestampOffset | None]


class SearchedLog(Protocol):
    """The part of a log that a search looks at."""

    segments: tuple[Segment, ...]
    log_start_offset: Offset
    serving: Serving


class Replaced(Exception):
    """The searched segment is no longer part of the log."""


class SearchCondition(NamedTuple):
    """The search's condition: a timestamp in [earliest, latest], at or after an offset."""

    earliest: int
    latest: int
    start_offset: int


class TimeSearches:
    """The searches of one log. A search begins again if records are deleted, cut off or compacted meanwhile; it raises
    `KafkaError` (KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE)."""

    __slots__ = ("_log", "_rising", "_segments")

    def __init__(self, log: SearchedLog) -> None:
        self._log = log
        self._segments: Sequence[Segment] = ()
        self._rising: list[int] = []
        """The largest timestamp up to and including each closed segment of `_segments`: they never decrease, so a
        binary search finds the first segment that reaches a time."""

    def first_since(self, timestamp_ms: int) -> TimestampSearch:
        """Search for the first record at or after a time, among those at or after the log's start; None if no record
        qualifies."""
        return self._search(lambda: self._first_since(timestamp_ms))

    def first_of_largest(self) -> TimestampSearch:
        """Search for the first record that has the largest timestamp of all; None if no record has a timestamp or, as
        in Kafka, if compaction has emptied the batch that had it."""
        return self._search(lambda: _first_of_largest(self._log.segments))

    def _search(self, begin: Callable[[], TimestampSearch]) -> TimestampSearch:
        """Carry a search through."""
        log = self._log
        while True:
            start = log.log_start_offset
            with log.serving.guard(), suppress(Replaced):
                answer = yield from begin()
                if start == log.log_start_offset:
                    return answer

    def _first_since(self, timestamp_ms: int) -> TimestampSearch:
        segments = self._log.segments
        wanted = SearchCondition(timestamp_ms, INT64_MAX, self._log.log_start_offset)
        first = yield from self._first_reaching(segments, timestamp_ms)
        for number, segment in enumerate(segments[first:], 1):
            if segment.largest_timestamp() >= timestamp_ms:
                answer = yield from _first_from(segment, _start_of(segment, wanted), wanted)
                if answer is not None:
                    return answer
            if number % SEGMENTS_A_TURN == 0:
                yield from _elsewhere(None, segment)
        return None

    def _first_reaching(self, segments: Sequence[Segment], timestamp_ms: int) -> Generator[Step, Any, int]:
        """The index of the first segment with a timestamp at or after `timestamp_ms`; of the last segment if none has
        one."""
        if segments is not self._segments:
            known = len(self._rising)
            rising = self._rising[:] if segments[:known] == self._segments[:known] else []
            for number in range(len(rising), len(segments) - 1):
                largest = segments[number].largest_timestamp()
                rising.append(max(largest, rising[-1]) if rising else largest)
                if number % SEGMENTS_A_TURN == SEGMENTS_A_TURN - 1:
                    yield from _elsewhere(None, segments[number])
            self._segments, self._rising = segments, rising
        return bisect_left(self._rising, timestamp_ms)


def _first_of_largest(segments: Sequence[Segment]) -> TimestampSearch:
    largest = NO_TIMESTAMP
    for number, segment in enumerate(segments, 1):
        segment.look()
        if segment.size:
            largest = max(largest, segment.max_timestamp)
        if number % SEGMENTS_A_TURN == 0:
            yield from _elsewhere(None, segment)
    for segment in segments if largest >= 0 else ():
        if segment.max_timestamp == largest:
            start = segment.walk_start(segment.max_timestamp_offset)
            answer = yield from _first_from(segment, start, SearchCondition(largest, largest, 0))
            if answer is not None:
                return answer
    return None


def _start_of(segment: Segment, wanted: SearchCondition) -> int:
    """A position in a segment that reaches the time; no batch before that position does."""
    before, reaching = _around(segment, wanted.earliest)
    if not all(segment.has_time(entry) for entry in (before, reaching) if entry is not None):
        segment.rebuild_indexes()
        before, reaching = _around(segment, wanted.earliest)
    if reaching is not None:
        offset = reaching.value - 1
    else:  # after the last entry, if the index file is complete
        offset = 0 if before is None else before.value
    return segment.walk_start(max(segment.base_offset + offset, wanted.start_offset))


def _around(segment: Segment, timestamp_ms: int) -> tuple[IndexEntry | None, IndexEntry | None]:
    """The last entry of the time index before a time, and the first one that reaches it."""
    return segment.times.floor(timestamp_ms - 1), segment.times.ceiling(timestamp_ms)


def _first_from(segment: Segment, position: int, wanted: SearchCondition) -> TimestampSearch:
    """The first wanted record in a segment, from the batch at `position` on."""
    while True:
        batch = yield from _seek(segment, position, wanted)
        if batch is None:
            return None
        at, header = batch
        answer = _told_by_header(header, wanted)
        if answer is None:
            answer = yield from _look_into(segment, at, header, wanted)
        if answer is not None:
            return answer
        position = at + header.size


def _seek(segment: Segment, position: int, wanted: SearchCondition) -> Generator[Step, Any, LocatedBatch | None]:
    """The first batch from `position` on whose header allows a wanted record in it."""
    end = segment.size
    batch, position = _pass_over(segment.log, position, end, wanted, SCAN_BYTES, READS_ON_LOOP)
    while batch is None and end - position >= HEADER_SIZE:
        work = partial(_pass_over, segment.log, position, end, wanted, READ_BYTES, READS_ELSEWHERE)
        batch, position = yield from _elsewhere(work, segment)
    return batch


def _pass_over(
    log: LazyFile, position: int, end: int, wanted: SearchCondition, read_bytes: int, reads: int
) -> tuple[LocatedBatch | None, int]:
    """The batch found within this many reads, or None and where to continue. Raises `KafkaError` (CORRUPT_MESSAGE)."""
    file, size = log.get(), read_bytes
    while reads > 0 and end - position >= HEADER_SIZE:
        reads -= 1
        chunk = file.read(min(size, end - position), position)
        is_there, at = columns.seek(chunk, *wanted)
        if is_there:
            return LocatedBatch(position + at, read_header(chunk, at)), position
        if at < 0 or len(chunk) < HEADER_SIZE:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no batch starts where one should, near byte {position}")
        size = SCAN_BYTES if at - len(chunk) > SCAN_BYTES else read_bytes  # large batches: read only their headers
        position += at
    return None, position


def _told_by_header(header: BatchHeader, wanted: SearchCondition) -> TimestampOffset | None:
    """The record, if the header alone determines it; None if the records must be looked at."""
    if header.count == header.last_offset_delta + 1 and (header.count == 1 or header.log_append_time):
        return TimestampOffset(header.max_timestamp, Offset(max(header.base_offset, wanted.start_offset)))
    return None


def _look_into(segment: Segment, position: int, header: BatchHeader, wanted: SearchCondition) -> TimestampSearch:
    """The first wanted record of one batch: on the loop if that is little work."""
    inflated_max = max(MAX_INFLATED_MAX, segment.config.max_message_bytes)
    if header.size <= (INLINE_BYTES if header.codec == compression.NONE else COMPRESSED_ON_LOOP):
        batch = segment.log.get().read(header.size, position)
        if not needs_executor(batch):
            return first_in(batch, wanted, INLINE_BYTES)
        work = partial(first_in, batch, wanted, inflated_max)
    else:
        work = partial(_first_at, segment.log, position, header.size, wanted, inflated_max)
    answer = yield from _elsewhere(work, segment)
    assert answer is None or isinstance(answer, TimestampOffset)
    return answer


def _first_at(
    log: LazyFile, position: int, size: int, wanted: SearchCondition, inflated_max: int
) -> TimestampOffset | None:
    return first_in(log.get().read(size, position), wanted, inflated_max)


def first_in(batch: bytes, wanted: SearchCondition, inflated_max: int) -> TimestampOffset | None:
    """The first wanted record of one batch. Raises `KafkaError` (CORRUPT_MESSAGE)."""
    header = read_header(batch)
    if not crc_holds(batch):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is damaged")
    section = section_of(memoryview(batch), 0, header, wanted.start_offset, inflated_max=inflated_max)
    first = columns.first_timed(section, wanted.earliest, wanted.latest)
    return None if first is None else TimestampOffset(first[0], Offset(first[1]))


def _elsewhere(step: Step, segment: Segment) -> Generator[Step, Any, Any]:
    """Take a step; raises `Replaced` if the searched segment was removed meanwhile."""
    try:
        result = yield step
    except OSError:
        if segment.deleted:  # its file was gone
            raise Replaced from None
        raise
    if segment.deleted:
        raise Replaced
    return result
