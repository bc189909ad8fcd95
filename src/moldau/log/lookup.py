"""Finding an offset in a list of segments: the search and the short scan behind it. Times are found by `times`.

A log with many segments is searched, not walked. Nothing here changes a segment except for the indexes that it opens;
all of it may raise `OSError`.
"""

from bisect import bisect_right
from collections.abc import Sequence

from moldau.errors import ErrorCode, KafkaError
from moldau.log.segment import Segment
from moldau.log.transaction_index import AbortedTxn


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def segment_at(segments: Sequence[Segment], offset: int) -> int:
    """The position of the segment that holds an offset, or would."""
    return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)


def position_of(segment: Segment, up_to: int) -> int:
    """Where in a segment the batch of an offset begins; its end if the offset is behind it."""
    batch = segment.find(up_to)
    return segment.size if batch is None else batch.position


def check_end(segment: Segment, offset: int) -> None:
    """A segment has no batch at or behind an offset that belongs into it: compaction has taken them, or one is damaged.
    Raises `KafkaError` (CORRUPT_MESSAGE) unless its batches follow each other up to its end."""
    entry = segment.offsets.floor(offset - segment.base_offset)
    end = 0 if entry is None else entry.value
    for position, header in segment.walk(end):
        end = position + header.size
    if end < segment.size:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no batch begins at byte {end} of {segment.log.path}")


def epoch_of_batch(segments: Sequence[Segment], offset: int) -> int:
    """The leader epoch in the batch that holds an offset, or in the first one behind it; -1 if there is none."""
    for segment in segments[segment_at(segments, offset) :]:
        batch = segment.find(offset)
        if batch is not None:
            return batch.header.partition_leader_epoch
    return -1


def end_of_slice(segments: Sequence[Segment], offset: int, end_position: int, log_end: int) -> int:
    """An offset behind all batches of a slice that was read from `offset` on and ends at a position of its segment's
    file: that of the next index entry, or of the next segment."""
    at = segment_at(segments, offset)
    while segments[at].find(offset) is None and at + 1 < len(segments):
        at += 1
    segment = segments[at]
    entry = segment.offsets.first_from(end_position)
    if not segment.is_right(entry):  # the index was damaged, and is rebuilt
        entry = segment.offsets.first_from(end_position)
    if entry is not None:
        return segment.base_offset + entry.key
    return segments[at + 1].base_offset if at + 1 < len(segments) else log_end


def aborted_between(segments: Sequence[Segment], start: int, end: int) -> list[AbortedTxn]:
    """The aborted transactions with records or a marker in start <= offset < end. `segments`: from the one that holds
    `start` on."""
    transactions: list[AbortedTxn] = []
    for segment in segments:
        if not segment.aborted.entries:
            continue
        for aborted in segment.aborted.from_offset(start):
            if aborted.first_offset < end:
                transactions.append(aborted)
            if aborted.last_stable_offset >= end:
                return transactions
    return transactions
