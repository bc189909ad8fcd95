"""What a log folder has to hold, told by what was done to it: lists, numbers, and nothing that could be wrong.

A `Partition` keeps every batch that was appended, byte for byte, and how much of it must survive: `flushed` is the
offset below which a completed flush covers everything, `start_kept` the log start that a completed checkpoint wrote
down. What an operation under way may or may not have done by the time of a crash is told before it begins: `pending`
are batches of which a beginning may be there, `start_max` is how far the log's start may have moved.
"""

import uuid
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.config import TopicConfig
from moldau.names import TopicPartition
from moldau.records.rows import Record

PRODUCER_BATCHES = 5


class Written(NamedTuple):
    """One batch as it stands in the log."""

    base: int
    last: int
    epoch: int
    data: bytes
    records: tuple[Record, ...]
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    transactional: bool = False
    commits: bool | None = None
    """Of a marker; None for a batch of records."""


class Sent(NamedTuple):
    """What a broker has to remember of a batch of an idempotent producer."""

    sequence: int
    records: int
    base: int


class Aborted(NamedTuple):
    producer_id: int
    first: int
    last: int
    stable: int


@dataclass
class ProducerState:
    """One producer, as replaying the log gives it."""

    epoch: int
    batches: list[Sent] = field(default_factory=list)
    last_offset: int = -1
    transaction_start: int = -1

    @property
    def next_sequence(self) -> int:
        return self.batches[-1].sequence + self.batches[-1].records if self.batches else 0


@dataclass
class Replayed:
    """What the batches below an offset add up to."""

    producers: dict[int, ProducerState] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)

    def is_aborted(self, producer_id: int, base: int) -> bool:
        """Whether a batch belongs to a transaction that was aborted."""
        return any(one.producer_id == producer_id and one.first <= base <= one.last for one in self.aborted)

    @property
    def first_unstable(self) -> int | None:
        starts = [p.transaction_start for p in self.producers.values() if p.transaction_start >= 0]
        return min(starts) if starts else None

    def add(self, batch: Written) -> None:
        if batch.producer_id < 0:
            return
        producer = self.producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            start = producer.transaction_start if producer is not None else -1
            producer = self.producers[batch.producer_id] = ProducerState(batch.producer_epoch, transaction_start=start)
        producer.last_offset = batch.last
        if batch.commits is not None:
            first, producer.transaction_start = producer.transaction_start, -1
            if first >= 0 and not batch.commits:
                unstable = self.first_unstable
                stable = batch.last + 1 if unstable is None else unstable
                self.aborted.append(Aborted(batch.producer_id, first, batch.last, stable))
            return
        producer.batches.append(Sent(batch.sequence, batch.last - batch.base + 1, batch.base))
        del producer.batches[:-PRODUCER_BATCHES]
        if batch.transactional and producer.transaction_start < 0:
            producer.transaction_start = batch.base


class Cleaning(NamedTuple):
    """A compaction that was begun, and may have taken records away below an offset."""

    now_ms: int
    below: int


class Partition:
    """One life of one partition, from its creation to its deletion."""

    def __init__(self, tp: TopicPartition, topic_id: uuid.UUID, config: TopicConfig):
        self.tp = tp
        self.topic_id = topic_id
        self.config = config
        self.batches: list[Written] = []
        self.end = 0
        self.flushed = 0
        self.flushed_before = 0
        """While a truncation is under way: up to where everything was flushed when it began."""
        self.start = 0
        self.start_kept = 0
        self.start_max = 0
        self.start_seen = 0
        """The largest start there ever was, in memory at least."""
        self.pending: list[Written] = []
        self.cleanings: list[Cleaning] = []
        self.cut_producers: set[int] = set()
        """Producers with a batch that was truncated: a cleaning before that kept this batch, and not an earlier one."""

    @property
    def compacted(self) -> int:
        """Below it a compaction may have taken records away."""
        return max((cleaning.below for cleaning in self.cleanings), default=0)

    def may_be_forgotten(self, offset: int) -> bool:
        """Whether a tombstone's time has passed: a cleaning gave it its horizon, a later one was behind that."""
        seen = [cleaning.now_ms for cleaning in self.cleanings if cleaning.below > offset]
        return bool(seen) and seen[-1] - seen[0] >= self.config.delete_retention_ms

    @property
    def start_bound(self) -> int:
        """The largest start there ever was, or may be by now."""
        return max(self.start_seen, self.start, self.start_max)

    @property
    def possible(self) -> Iterator[Written]:
        """What may be in the log, in order."""
        yield from self.batches
        yield from self.pending

    def replayed(self, end: int) -> Replayed:
        state = Replayed()
        for batch in self.possible:
            if batch.last < end:
                state.add(batch)
        return state

    def appended(self) -> None:
        """The pending batches are there."""
        self.batches += self.pending
        self.end = self.pending[-1].last + 1
        self.pending = []

    def truncated(self, end: int) -> None:
        """What was at or behind an offset is gone."""
        self.cut_producers |= {batch.producer_id for batch in self.batches if batch.last >= end}
        self.batches = [batch for batch in self.batches if batch.last < end]
        self.end, self.start, self.start_kept = end, min(self.start, end), min(self.start_kept, end)
        self.flushed, self.flushed_before = min(self.flushed, end), 0

    def found(self, start: int, end: int, first: int, known: Container[int]) -> None:
        """This is what a crash left: it is what there is from now on. `first`: the offset of the first segment;
        `known`: the producers. The log may have lost all of the others, with their open transactions: the next batch
        of one of them is the first."""
        producers = self.replayed(end).producers.items()
        forgotten = {number for number, state in producers if state.last_offset < first and number not in known}
        self.batches = [batch for batch in self.possible if batch.last < end and batch.producer_id not in forgotten]
        self.end = end
        self.pending = []
        self.flushed_before = 0
        self.start_seen = self.start_bound
        self.start = self.start_max = start


class Model:
    """All partitions that exist, and what is known of how the folder was left."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.deleted: dict[uuid.UUID, TopicPartition] = {}
        """Topics whose deletion is decided, and may have to be finished."""
        self.clean: bool | None = None
        """Whether the next start must find the folder cleanly closed; None where it may be either."""
