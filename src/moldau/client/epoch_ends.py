"""What clients ask leaders about truncated logs: where leader epochs end there (OffsetForLeaderEpoch, KIP-320). Pure.

A position is an offset and the leader epoch of the record before it. The record is in the leader's log if the epoch
ends there at or behind the offset; otherwise the log was truncated, and others may have been written in its place.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from moldau.client.failures import check
from moldau.errors import ErrorCode, LogTruncated
from moldau.names import TopicPartition
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

CONSUMER = -1
"""The replica id of a client that is not a broker."""
AHEAD_S_MAX = 5.0
"""Metadata that are older than the position are asked for again for this long. Then the position is of another log: its
topic was deleted and created again."""
READ_AGAIN = "while it was read; read it again"


class EpochEnd(NamedTuple):
    """A leader's answer: the newest epoch in its log that is not above the one asked for, and the offset where it ends.
    Both are -1 if the leader has not reached the epoch asked for, or knows none."""

    epoch: int
    end_offset: int

    @property
    def is_known(self) -> bool:
        return self.epoch >= 0 and self.end_offset >= 0

    def holds(self, offset: int, epoch: int) -> bool:
        """Whether the leader has the record before `offset` with this epoch, if it was asked for the epoch."""
        return self.is_known and self.epoch >= epoch and self.end_offset >= offset

    def first_lost(self, offset: int) -> int | None:
        """If the leader lacks the record before `offset`: the first offset that is known to differ; None if unknown."""
        return min(self.end_offset, offset - 1) if self.is_known else None


def epoch_ends_request(wanted: Mapping[TopicPartition, tuple[int, int]]) -> OffsetForLeaderEpochRequest:
    """Ask one leader about some of its partitions: the epoch that is asked for, and the epoch that it leads in."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, (epoch, leader_epoch) in wanted.items():
        topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic)).partitions.append(
            OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=leader_epoch, leader_epoch=epoch)
        )
    return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))


def epoch_ends(reply: Any, asked: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, int, EpochEnd]]:
    """Error code and answer of each partition that was asked about; one that a reply leaves out has to be asked about
    again."""
    answers = {TopicPartition(topic.topic, part.partition): part for topic in reply.topics for part in topic.partitions}
    for tp in asked:
        part = answers.get(tp)
        if part is None:
            yield tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, EpochEnd(-1, -1)
        else:
            yield tp, part.error_code, EpochEnd(part.leader_epoch, part.end_offset)


class FetchPosition:
    """The position of whoever reads one partition from leader after leader, and the leader whose log is known to hold
    what was read. Before the first record no leader needs to be asked, unless the position came from elsewhere."""

    __slots__ = ("epoch", "leader_epoch", "offset", "topic_id", "tp")

    def __init__(self, tp: TopicPartition, offset: int, epoch: int | None = None):
        self.tp = tp
        self.offset = offset
        self.epoch = epoch
        self.leader_epoch: int | None = None
        self.topic_id: uuid.UUID | None = None

    def leads_to(self, topic_id: uuid.UUID | None) -> None:
        """The topic of this name has this id now, if it is known. Raises `LogTruncated` if that is another topic than
        the one that was read so far."""
        self.topic_id = self.topic_id or topic_id
        if topic_id is not None and topic_id != self.topic_id:
            raise LogTruncated(self.tp, self.offset, None, READ_AGAIN, is_new_topic=True)

    def request(self, leader_epoch: int, can_ask: bool) -> OffsetForLeaderEpochRequest | None:
        """What to ask the leader of this epoch before anything is read from it; None if it is to be believed. If
        metadata are older than what was read, the leader that they name has to say that it is not the leader."""
        if leader_epoch == self.leader_epoch or self.epoch is None or leader_epoch < 0 or not can_ask:
            self.leader_epoch = leader_epoch
            return None
        newest = max(leader_epoch, self.epoch, self.leader_epoch or 0)
        return epoch_ends_request({self.tp: (self.epoch, newest)})

    def answered(self, reply: Any, leader_epoch: int) -> None:
        """Take the leader's answer. Raises `KafkaError`: `LogTruncated` if it lacks what was read."""
        assert self.epoch is not None
        for tp, code, end in epoch_ends(reply, [self.tp]):
            check(code, f"comparing what was read of {tp} with its leader")
            if not end.holds(self.offset, self.epoch):
                raise LogTruncated(tp, self.offset, end.first_lost(self.offset), READ_AGAIN)
        self.leader_epoch = leader_epoch

    def read(self, after: int, epoch: int) -> None:
        """Records up to `after` (excluded) were read; the last of them has this epoch."""
        self.offset, self.epoch = after, epoch if epoch >= 0 else None
