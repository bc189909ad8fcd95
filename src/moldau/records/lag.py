"""How far a consumer group is behind, in records and in seconds. Pure, and free of broker and client: the metrics of a
broker, the console and `moldau top` compute it with the same rule.

Lag in records is the number of offsets between a committed offset and the end that consumers see (the high watermark).
Records that were deleted below the start of the log do not count: no consumer will ever read them. Offsets behind the
start that hold no record do: markers of transactions, and what compaction has removed.

Lag in seconds is the age of the oldest record that the group has yet to read, by that record's own timestamp: a group
that has read everything has 0, however long ago the last record was written, and a group that stopped is one second
further behind each second. The record is the first one at or behind the committed offset; `first_waiting` finds it
among batches, and skips those that no consumer is handed: markers, and batches of transactions that were aborted. A
batch of a transaction that is still open counts: its records wait, too.

A client has no headers to look at: it fetches from the committed offset with isolation read_committed, and takes the
timestamp of the first record that it gets. Without a record below the end the lag is 0 seconds.
"""

from collections.abc import Iterable
from typing import NamedTuple

NOT_KNOWN = -2
"""In place of a timestamp: nobody could tell it."""


class BatchSpan(NamedTuple):
    """A record batch, from its header. `is_hidden`: consumers are handed no record of it. `same_time`: all its records
    have the last timestamp (`message.timestamp.type=LogAppendTime`)."""

    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    is_hidden: bool = False
    same_time: bool = False

    def timestamp_at(self, offset: int) -> int:
        """The timestamp of the record at an offset, as if the records had come at equal intervals. It is exact for the
        first and the last record, and never outside of the batch."""
        if self.same_time or self.first_ms < 0 or offset >= self.last_offset:
            return self.last_ms
        if offset <= self.first_offset:
            return self.first_ms
        share = (offset - self.first_offset) / (self.last_offset - self.first_offset)
        return self.first_ms + int((self.last_ms - self.first_ms) * share)


class WaitingBatch(NamedTuple):
    """The batch with the first record that a group has not read: that record is at `offset` or, if compaction has
    removed it, behind it."""

    span: BatchSpan
    offset: int

    @property
    def waiting_ms(self) -> int:
        return self.span.timestamp_at(self.offset)


def lag_records(committed: int, start: int, end: int) -> int:
    """In a log from `start` to `end`; 0 for a commit beyond the end, which an unclean election or a topic that was made
    anew can leave."""
    return max(end - max(committed, start), 0)


def first_waiting(batches: Iterable[BatchSpan], committed: int, end: int) -> WaitingBatch | None:
    """Among batches in the order of their offsets, the one that holds the first record at or behind `committed` and
    below `end`; None if there is none."""
    for span in batches:
        if span.first_offset >= end:
            return None
        if span.last_offset >= committed and not span.is_hidden:
            return WaitingBatch(span, max(committed, span.first_offset))
    return None


def lag_seconds(now_ms: int, waiting_ms: int | None) -> float:
    """`waiting_ms`: the timestamp of the first record that was not read; None if there is none. 0 for a record without
    a timestamp, or from the future."""
    if waiting_ms is None or waiting_ms < 0:
        return 0.0
    return max(now_ms - waiting_ms, 0) / 1000
