"""Where a leader epoch ended: asked on a log that three leaders wrote, in every version, over the wire's own bytes."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from harness.logs import TP, append, config, open_log
from moldau.errors import ErrorCode
from moldau.handlers.fetching.offset_for_leader_epoch import OffsetForLeaderEpoch
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.protocol import apis, codec
from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.turns import turn
from tests.requests.calling import call

ME = BrokerId(1)
LEADER_EPOCH = 5


class OnePartition:
    """Stands in for `Partitions`: it hosts the one partition."""

    def __init__(self, replica: Replica):
        self._replica = replica

    def find(self, name: str | None, topic_id: bytes | None, index: int) -> Replica | None:
        return self._replica if (name, index) == TP else None

    def absence(self, name: str | None, topic_id: bytes | None, index: int) -> ErrorCode:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """Epoch 0 wrote offsets 0-9, epoch 2 wrote 10-14, epoch 3 wrote 15-17; epoch 5, which leads, wrote nothing."""
    log = open_log(tmp_path / str(TP))
    for epoch, records in ((0, 10), (2, 5), (3, 3)):
        append(log, records, leader_epoch=epoch)
    made = Replica(TP, uuid.UUID(int=77), log, config(), Leadership(ME), Offset(0), Runtime())
    made.take_roles(PartitionRoles(ME, LeaderEpoch(LEADER_EPOCH), (ME,), (ME,)), 0)
    yield made
    log.close()


def ask(replica: Replica, version: int, epoch: int, current: int = -1, partition: int = 0) -> EpochEndOffset:
    """One partition, the request and the reply each written and read."""
    api = apis.OFFSET_FOR_LEADER_EPOCH
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TP.topic, partitions=[asked])])
    frame = codec.write_request(api, version, 7, "asker", request)[4:]
    header = codec.read_header(frame)
    read = codec.read_request(api, version, frame, header.body)
    reply = turn(OffsetForLeaderEpoch(cast(Replicas, OnePartition(replica)))(read, call(api, version)))
    written = codec.write_reply(api, version, header.correlation_id, reply)
    answer = codec.read_reply(api, version, written[4:])
    (topic,) = answer.topics
    (end,) = topic.partitions
    return cast(EpochEndOffset, end)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "found", "end_offset"),
    [
        (0, 0, 10),  # ended where epoch 2 began
        (1, 0, 10),  # was never there: the one below it
        (2, 2, 15),
        (3, 3, 18),  # the last that wrote: the end of the log
        (4, 3, 18),  # led and wrote nothing
        (5, 5, 18),  # leads
        (6, -1, -1),  # is to come
        (-1, -1, -1),
    ],
)
def test_an_epoch_ended_where_the_next_began(replica: Replica, version: int, epoch: int, found: int, end_offset: int):
    answer = ask(replica, version, epoch)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, found, end_offset)


@pytest.mark.parametrize(
    ("current", "code"),
    [
        (LEADER_EPOCH, ErrorCode.NONE),
        (LEADER_EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (LEADER_EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_believes_in_another_leader_is_told(replica: Replica, current: int, code: ErrorCode):
    assert ask(replica, 4, 0, current).error_code == code


def test_a_leader_that_is_cut_off_does_not_answer(replica: Replica) -> None:
    replica.cut_off(True)
    assert ask(replica, 4, 0, LEADER_EPOCH).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_is_not_there_is_an_error_of_its_own(replica: Replica):
    assert ask(replica, 4, 0, partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
