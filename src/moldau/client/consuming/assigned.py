"""One assigned partition: its position, the fetched replies that wait to be read, and the rows of the one being read.

`position` is the offset of the next record to hand out; `fetch_from` is the offset that the next Fetch asks for. Both
move forward until the application seeks, and `move` then drops what was fetched. No I/O, no clock, no lock: the
`Poller` holds its lock around every call.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from moldau.client.cluster_view import ClusterView
from moldau.client.consuming.record import Place, Record
from moldau.client.consuming.reply_memory import Reply
from moldau.errors import ErrorCode, KafkaError, MoldauError, UnknownTopicOrPartition
from moldau.names import TopicPartition
from moldau.records.arena import Arena
from moldau.records.rows import lists

NO_EPOCH = -1


class NotAssigned(MoldauError, LookupError):
    """The consumer was asked about a partition that it does not read."""


class NoSuchPartition(UnknownTopicOrPartition):
    """An assigned or subscribed topic or partition does not exist, and has not for longer than a new one takes to
    appear."""

    def __init__(self, sentence: str):
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)

    @property
    def retriable(self) -> bool:
        return False


def no_such_partition(tp: TopicPartition, view: ClusterView) -> NoSuchPartition:
    """The error that names what is missing."""
    topic = view.topics.get(tp.topic)
    if topic is None:
        return NoSuchPartition(f"topic {tp.topic} does not exist")
    return NoSuchPartition(f"topic {tp.topic} has no partition {tp.partition}, only 0 to {len(topic.partitions) - 1}")


class Chunk(NamedTuple):
    """One partition's part of a reply: whole batches, the offset after them, producer id and first offset of each
    aborted transaction, and where leader epochs begin, as (first offset, epoch)."""

    records: memoryview
    after: int
    aborted: list[tuple[int, int]]
    epochs: list[tuple[int, int]]
    reply: Reply


class Assigned:
    """One assigned partition. `position` is None until the start position has been found."""

    __slots__ = (
        "_arena",
        "_at",
        "_epoch",
        "_lists",
        "_open",
        "_rows",
        "acknowledged",
        "chunks",
        "end_offset",
        "fetch_from",
        "leader_epoch",
        "out_of_range",
        "paused",
        "place",
        "position",
        "replica",
        "replica_until_s",
        "tp",
        "unknown_since_s",
    )

    def __init__(self, place: Place, position: int | None = None, arena: Arena | None = None):
        self.tp = place.tp
        self.place = place
        self.out_of_range = False
        self.paused = False
        self.end_offset = -1
        self.leader_epoch = NO_EPOCH
        """The epoch of the leader that the position was last checked with."""
        self.replica: int | None = None
        """The follower to read from (KIP-392), until `replica_until_s`; None for the leader."""
        self.replica_until_s = 0.0
        self.acknowledged = -1
        """The offset that the application has committed itself; an automatic commit does not go back behind it."""
        self.unknown_since_s: float | None = None
        self.chunks: deque[Chunk] = deque()
        self._open: Chunk | None = None
        self._arena = arena or Arena()
        self.move(position)

    def move(self, position: int | None, epoch: int = NO_EPOCH) -> None:
        """Continue at this position; fetched records are dropped. `epoch` is that of the record before it, if known."""
        for chunk in (*self.chunks, self._open):
            if chunk is not None:
                chunk.reply.part_read()
        self.position = position
        self.fetch_from = position
        self.chunks.clear()
        self._open = None
        self._lists: Iterator[list[Record]] = iter(())
        self._rows: list[Record] = []
        self._at = 0
        self._epoch = epoch

    @property
    def epoch(self) -> int:
        """The leader epoch of the record before the position; `NO_EPOCH` if none was read."""
        assert self.position is not None
        if self._open is not None:
            for first_offset, epoch in reversed(self._open.epochs):
                if first_offset < self.position:
                    return epoch
        return self._epoch

    @property
    def has_records(self) -> bool:
        """Whether fetched batches wait to be read; they may turn out to hold no record."""
        return self._open is not None or bool(self.chunks)

    def received(self, chunk: Chunk) -> None:
        """Keep a reply's batches for reading."""
        chunk.reply.parts += 1
        self.chunks.append(chunk)
        self.fetch_from = chunk.after

    def take(self, most: int) -> list[Record]:
        """The next rows, and none if no fetched reply has any left; the position moves behind them.

        Raises `KafkaError(CORRUPT_MESSAGE)` if the batch at the position cannot be read. The position stays there, and
        the batch is fetched anew.
        """
        taken: list[Record] = []
        try:
            while len(taken) < most and self._next_rows():
                rows = self._rows[self._at : self._at + most - len(taken)]
                self._at += len(rows)
                self.position = rows[-1][0] + 1
                taken = taken + rows if taken else rows
        except KafkaError:
            self.move(self.position, self.epoch)
            if not taken:
                raise
        return taken

    @property
    def chunk(self) -> Chunk | None:
        """The fetched reply that has the record at the position; None if there is none."""
        if self._open is None and self.chunks:
            self._open = self.chunks.popleft()
        return self._open

    def pass_chunk(self) -> None:
        """Move the position behind the records of `chunk`, and free its memory."""
        assert self._open is not None and self.position is not None
        self._lists, self._rows, self._at = iter(()), [], 0
        self._close()

    def _close(self) -> None:
        assert self._open is not None and self.position is not None
        self.position = max(self.position, self._open.after)
        self._epoch = self.epoch
        self._open.reply.part_read()
        self._open = None

    def _next_rows(self) -> bool:
        """Open the next batch unless the open one has rows left; False if there is none."""
        while self._at >= len(self._rows):
            rows = next(self._lists, None)
            if rows is not None:
                self._rows, self._at = rows, 0
                continue
            if self._open is not None:
                self._close()
            if not self.chunks:
                return False
            self._open = self.chunks.popleft()
            start, aborted = self.position or 0, self._open.aborted
            self._lists = lists(self._open.records, Record, self.place, start, aborted=aborted, arena=self._arena)
        return True
