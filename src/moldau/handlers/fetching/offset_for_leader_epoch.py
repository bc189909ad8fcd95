"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where a leader epoch ended, so that a reader sees whether it was cut.

A consumer that learns of a new leader epoch asks this before it reads on (KIP-320): kafka-python 3 does not read at all
without it. The answer is the largest known epoch at or below the one asked for and the offset where it ended; -1 and -1
for an epoch that this leader has not reached. A client needs DESCRIBE on a topic, or CLUSTER_ACTION.
"""

from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from moldau.replication.lookups import end_of_epoch
from moldau.replication.replicas import Replicas
from moldau.requests.access import CLUSTER_ACTION, DESCRIBE_TOPIC
from moldau.requests.session import Call
from moldau.turns import Steps


class OffsetForLeaderEpoch:
    def __init__(self, replicas: Replicas):
        self._replicas = replicas

    def __call__(self, request: OffsetForLeaderEpochRequest, call: Call) -> Steps[OffsetForLeaderEpochResponse]:
        response = OffsetForLeaderEpochResponse()
        sees_all = call.may(CLUSTER_ACTION, logged=False)
        for asked in request.topics:
            result = OffsetForLeaderTopicResult(topic=asked.topic)
            denied = not (sees_all or call.may(DESCRIBE_TOPIC, asked.topic))
            for part in asked.partitions:
                result.partitions.append(_denied(part) if denied else self._one(asked.topic, part))
                yield
            response.topics.append(result)
            yield
        return response

    def _one(self, topic: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
        replica = self._replicas.find(topic, None, part.partition)
        if replica is None:
            absence = self._replicas.absence(topic, None, part.partition)
            return EpochEndOffset(error_code=absence, partition=part.partition)
        if code := replica.reader_error(part.current_leader_epoch):
            return EpochEndOffset(error_code=code, partition=part.partition)
        epoch, end_offset = end_of_epoch(replica, part.leader_epoch)
        return EpochEndOffset(partition=part.partition, leader_epoch=epoch, end_offset=end_offset)


def _denied(part: OffsetForLeaderPartition) -> EpochEndOffset:
    return EpochEndOffset(error_code=DESCRIBE_TOPIC.denied, partition=part.partition)
