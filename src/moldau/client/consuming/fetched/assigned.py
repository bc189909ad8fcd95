"""One assigned partition: its position, the fetched replies that wait to be read, and the rows of the one being read.

`position` is the offset of the next record to hand out; `fetch_from` is the offset that the next Fetch asks for. Both
move forward; `start` and `go_back` set them, and drop what was fetched. `epochs` has the leader epochs of what was
fetched, so that a position can be compared with the log of another leader (`truncation.py`). No I/O, no clock, no lock:
the `Poller` holds its lock around every call.
"""

import uuid
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from moldau.client.cluster_view import ClusterView
from moldau.client.consuming.fetched.epochs import RecordEpochs
from moldau.client.consuming.fetched.record import Record, RecordOrigin
from moldau.client.consuming.fetched.reply_memory import HeldReply
from moldau.client.given_positions import NO_EPOCH
from moldau.errors import KafkaError, NoSuchPartition
from moldau.names import TopicPartition
from moldau.records.arena import Arena
from moldau.records.batch import batches
from moldau.records.rows import lists
from moldau.records.sections import FETCHED_INFLATED_MAX


def no_such_partition(tp: TopicPartition, view: ClusterView) -> NoSuchPartition:
    """The error that names what is missing."""
    topic = view.topics.get(tp.topic)
    if topic is None:
        return NoSuchPartition(f"topic {tp.topic} does not exist")
    return NoSuchPartition(f"topic {tp.topic} has no partition {tp.partition}, only 0 to {len(topic.partitions) - 1}")


class Chunk(NamedTuple):
    """One partition's part of a reply: whole batches, the offset after them, and producer id and first offset of each
    aborted transaction."""

    records: memoryview
    after: int
    aborted: list[tuple[int, int]]
    reply: HeldReply


class Assigned:
    """One assigned partition. `position` is None until the start position has been found."""

    __slots__ = (
        "_ahead_since_s",
        "_another_since_s",
        "_arena",
        "_at",
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
        "topic_id",
        "tp",
        "unknown_since_s",
    )

    def __init__(self, place: RecordOrigin, position: int | None = None, arena: Arena | None = None):
        self.tp = place.tp
        self.place = place
        self.out_of_range = False
        self.paused = False
        self.end_offset = -1
        self.leader_epoch = NO_EPOCH
        """The epoch of the leader whose log has the records up to `fetch_from`; `NO_EPOCH` before the first look."""
        self.topic_id: uuid.UUID | None = None
        """The topic that the position is of; None before the first look."""
        self.replica: int | None = None
        """The follower to read from (KIP-392), until `replica_until_s`; None for the leader."""
        self.replica_until_s = 0.0
        self.acknowledged = -1
        """The offset that the application has committed itself; an automatic commit does not go back behind it."""
        self.unknown_since_s: float | None = None
        self.chunks: deque[Chunk] = deque()
        self._open: Chunk | None = None
        self._ahead_since_s: float | None = None
        self._another_since_s: float | None = None
        self._arena = arena or Arena()
        self._move(position, RecordEpochs())

    @property
    def epochs(self) -> RecordEpochs:
        """The leader epochs of what was fetched."""
        return self.place.epochs

    def start(self, position: int, epoch: int | None = None) -> None:
        """Continue at this position; `epoch` is the leader epoch of the record before it, if known. Forgets what
        the application acknowledged, and what was known of the log."""
        self._move(position, RecordEpochs.before(position, epoch))
        self.out_of_range, self.acknowledged = False, -1
        self._forget_log()

    def lose_position(self, *, out_of_range: bool) -> None:
        """Continue where it is yet to be found: with `out_of_range` as a reset says, else at the group's commit."""
        self._move(None, RecordEpochs())
        self.out_of_range, self.acknowledged = out_of_range, -1
        self._forget_log()

    def _forget_log(self) -> None:
        self.leader_epoch, self._ahead_since_s = NO_EPOCH, None
        self.topic_id, self._another_since_s = None, None

    def go_back(self, position: int) -> None:
        """Fetch the records from `position` on again. Nothing is left out: a present position that is lower, because
        the log was truncated meanwhile, stays."""
        if self.position is not None:
            back = min(position, self.position)
            self._move(back, self.epochs.until(back))

    def _move(self, position: int | None, epochs: RecordEpochs) -> None:
        for chunk in (*self.chunks, self._open):
            if chunk is not None:
                chunk.reply.part_read()
        self.position = position
        self.fetch_from = position
        self.place = self.place.with_epochs(epochs)
        self.chunks.clear()
        self._open = None
        self._lists: Iterator[list[Record]] = iter(())
        self._rows: list[Record] = []
        self._at = 0

    @property
    def is_believed(self) -> bool:
        """Whether the position comes from elsewhere, such as a commit, and no log was asked about it yet."""
        return (
            self.leader_epoch == NO_EPOCH
            and self.fetch_from is not None
            and self.epochs.of(self.fetch_from - 1) is not None
        )

    def is_ahead_for(self, most_s: float, now_s: float) -> bool:
        """Whether the position has been newer than the metadata for so long; call it only while it is."""
        if self._ahead_since_s is None:
            self._ahead_since_s = now_s
        return now_s - self._ahead_since_s >= most_s

    def another_topic_s(self, topic_id: uuid.UUID | None, now_s: float) -> float | None:
        """For how many seconds another topic has had the name, because it was deleted and created again since the
        position was found; None if it is the same. `topic_id` is that which metadata name now, None if it is unknown.
        Metadata of a broker that lags behind name a former topic for a moment."""
        if self.topic_id is None:
            self.topic_id = topic_id
        if topic_id is None or topic_id == self.topic_id:
            self._another_since_s = None
            return None
        if self._another_since_s is None:
            self._another_since_s = now_s
        return now_s - self._another_since_s

    def is_unchecked(self, leader_epoch: int) -> bool:
        """Whether what was fetched has to be compared with the log of the leader of this epoch first. Without a known
        epoch of its own there is nothing to compare."""
        if leader_epoch <= self.leader_epoch or self.fetch_from is None:
            return False
        if self.epochs.of(self.fetch_from - 1) is not None:
            return True
        self.leader_epoch = leader_epoch
        return False

    @property
    def has_records(self) -> bool:
        """Whether fetched batches wait to be read; they may turn out to hold no record."""
        return self._open is not None or bool(self.chunks)

    def received(self, records: memoryview, aborted: list[tuple[int, int]], reply: HeldReply) -> bool:
        """Keep the batches of a reply for reading; False if the reply has no whole batch that is new."""
        assert self.fetch_from is not None
        after, epochs, epoch = self.fetch_from, list[tuple[int, int]](), None
        for _, header in batches(records):
            if header.partition_leader_epoch != epoch:
                epoch = header.partition_leader_epoch
                epochs.append((after, epoch))  # what compaction removed before a batch may have been of other epochs
            after = header.last_offset + 1
        if after <= self.fetch_from:
            return False
        for begin in epochs:
            self.epochs.note(*begin)
        reply.parts += 1
        reply.size += len(records)
        self.chunks.append(Chunk(records, after, aborted, reply))
        self.fetch_from = self.epochs.end = after
        return True

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
            if self.position is not None:
                self.go_back(self.position)
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
            self._lists = lists(
                self._open.records, Record, self.place, start, aborted=aborted, arena=self._arena,
                inflated_max=FETCHED_INFLATED_MAX,
            )  # fmt: skip
        return True
