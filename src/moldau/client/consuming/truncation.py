"""Log truncation (KIP-320): after a change of leader, is the record before the position still in the log?

A new leader may lack records that the consumer has read, if an out-of-sync replica was elected. The leader epoch of the
last record read tells: the leader answers where that epoch ends in its log.
"""

import logging
import threading

from moldau.client.consuming.assigned import Assigned
from moldau.client.failures import STALE_METADATA, check, error_of
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import OFFSET_FOR_LEADER_EPOCH
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

logger = logging.getLogger(__name__)

CONSUMER = -1
"""The replica id of a client that is not a broker."""


class LogTruncated(KafkaError):
    """Records that this consumer has read are no longer in the log. `position` is the offset it would have read next,
    `offset` the first one that is lost, or None if the leader does not know. Seek to go on."""

    def __init__(self, tp: TopicPartition, position: int, offset: int | None):
        lost = "an unknown offset" if offset is None else f"offset {offset}"
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{tp} was truncated at {lost}, before position {position}, and auto_offset_reset is none",
        )
        self.topic_partition = tp
        self.position = position
        self.offset = offset


async def validated(router: Router, state: Assigned, lock: threading.Lock, resets: bool) -> None:
    """Compare the position with the log of the partition's present leader.

    After a truncation the position moves to the first lost offset; where that is unknown it has to be found as after
    any offset out of range. Raises `LogTruncated` instead unless `resets`, and `KafkaError` if the leader does not
    answer.
    """
    tp, position = state.tp, state.position
    if position is None:
        return
    read_epoch = state.epoch
    leader = await router.leader(tp)
    leader_epoch = router.view.leader_epoch(tp)
    link = await router.broker(leader)
    partition = OffsetForLeaderPartition(
        partition=tp.partition, current_leader_epoch=leader_epoch, leader_epoch=read_epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER, topics=[OffsetForLeaderTopic(topic=tp.topic, partitions=[partition])]
    )
    reply = await link.call(OFFSET_FOR_LEADER_EPOCH, request, router.request_timeout_ms)
    answer = reply.topics[0].partitions[0]
    if error_of(answer.error_code) in STALE_METADATA:
        router.stale(tp.topic)
    check(answer.error_code, f"comparing the position in {tp} with its leader")
    known = answer.leader_epoch >= 0 and answer.end_offset >= 0
    with lock:
        if state.position is None or state.position < position:  # the application has moved it back meanwhile
            return
        if known and answer.end_offset >= position:
            state.leader_epoch = leader_epoch
            return
        if not resets:
            raise LogTruncated(tp, position, answer.end_offset if known else None)
        state.leader_epoch = leader_epoch
        if known:
            logger.warning(
                "%s was truncated: going on at offset %d instead of %d, with records written since",
                tp,
                answer.end_offset,
                position,
            )
            state.move(answer.end_offset, answer.leader_epoch)
        else:
            state.out_of_range = True
            state.move(None)
