"""Commits of one offset, by nobody in particular, in a transaction or not."""

import uuid

from moldau.coordinators.decision import Ticket
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.names import TopicPartition
from tests.coordinators.groups.scene import TOPIC_ID, Stage

TP = TopicPartition("t", 0)


def commit(
    offset: int, group: str = "g", metadata: str = "", topic: uuid.UUID = TOPIC_ID, tp: TopicPartition = TP
) -> OffsetsToCommit:
    return OffsetsToCommit(
        group_id=group,
        member_id="",
        instance_id=None,
        generation=-1,
        retention_ms=-1,
        offsets=[NewOffset(tp, offset, -1, metadata, topic)],
    )


def commit_in_transaction(offset: int, topic: uuid.UUID = TOPIC_ID) -> TransactionalOffsetCommit:
    """Of producer 1, epoch 0."""
    return TransactionalOffsetCommit(
        group_id="g",
        producer_id=1,
        epoch=0,
        member_id="",
        instance_id=None,
        generation=-1,
        offsets=[NewOffset(TP, offset, -1, "", topic)],
    )


def decide(stage: Stage, ask: OffsetsToCommit | TransactionalOffsetCommit) -> Ticket:
    ticket = stage.ticket()
    if isinstance(ask, OffsetsToCommit):
        stage.carry_out(stage.shard.commit(ask, ticket, stage.now))
    else:
        stage.carry_out(stage.shard.commit_in_transaction(ask, None, ticket, stage.now))
    return ticket
