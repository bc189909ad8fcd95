"""Asks leaders where leader epochs end in their logs (OffsetForLeaderEpoch, KIP-320). Pure: requests and answers only."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moldau.names import TopicPartition
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

CONSUMER = -1
"""The replica id of a client that is not a broker."""


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


def epoch_ends_request(wanted: Mapping[TopicPartition, tuple[int, int]]) -> OffsetForLeaderEpochRequest:
    """Ask one leader about some of its partitions: the epoch that is asked for, and the epoch that it leads in."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, (epoch, leader_epoch) in wanted.items():
        topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic)).partitions.append(
            OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=leader_epoch, leader_epoch=epoch)
        )
    return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))


def epoch_ends(reply: Any) -> Iterator[tuple[TopicPartition, int, EpochEnd]]:
    """The partitions of a reply: error code and answer of each."""
    for topic in reply.topics:
        for part in topic.partitions:
            yield (
                TopicPartition(topic.topic, part.partition),
                part.error_code,
                EpochEnd(part.leader_epoch, part.end_offset),
            )
