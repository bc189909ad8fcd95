"""What readers of committed records (isolation level read_committed) are told about a log.

They read up to the last stable offset: below it every record is committed and no transaction is open. Records of
aborted transactions are in what they read; the transaction indexes of the segments say which, and readers skip them.
Source: KIP-98.
"""

from typing import Protocol

from moldau.log import lookup
from moldau.log.producers.producers import Producers
from moldau.log.segment import Segment
from moldau.log.serving import Serving
from moldau.log.transaction_index import AbortedTxn
from moldau.names import Offset
from moldau.replies import FileSlice


class LogState(Protocol):
    """The part of a log that committed reading looks at."""

    segments: tuple[Segment, ...]
    producers: Producers
    log_start_offset: Offset
    log_end_offset: Offset
    serving: Serving


class CommittedReading:
    """`has_aborted`: whether any transaction index of the log has an entry, so that most logs are never searched."""

    __slots__ = ("_log", "has_aborted")

    def __init__(self, log: LogState):
        self._log = log
        self.has_aborted = False
        self.refresh()

    def refresh(self) -> None:
        """Segments were removed, cut or opened: see whether an aborted transaction is left."""
        self.has_aborted = any(segment.aborted.entries for segment in self._log.segments)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """The first offset that a reader of committed records may not see, under that high watermark."""
        producers = self._log.producers
        if producers.unsettled:
            return producers.last_stable_offset(high_watermark, self._log.log_start_offset)
        return high_watermark

    def aborted_between(self, start: int, end: int) -> list[AbortedTxn]:
        """The aborted transactions with records or a marker in start <= offset < end, in order of their markers."""
        with self._log.serving.guard():
            if not self.has_aborted:
                return []
            segments = self._log.segments
            return lookup.aborted_between(segments[lookup.segment_at(segments, start) :], start, end)

    def aborted_in(self, offset: int, piece: FileSlice | None) -> list[AbortedTxn]:
        """The aborted transactions in a piece that was just read from `offset` on. As in Kafka, the end of the piece is
        rounded up to the next index entry, so the answer may name transactions behind the piece."""
        if piece is None or not self.has_aborted:
            return []
        with self._log.serving.guard():
            segments, end = self._log.segments, self._log.log_end_offset
            end_offset = lookup.end_of_slice(segments, offset, piece.offset + piece.length, end)
        return self.aborted_between(offset, end_offset)
