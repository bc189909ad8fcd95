"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where a leader epoch ended, so that a reader sees whether it was cut.

A consumer that learns of a new leader epoch asks this before it reads on (KIP-320): kafka-python 3 does not read at all
without it. The answer is the largest known epoch at or below the one asked for and the offset where it ended; -1 and -1
for an epoch that this leader has not reached.
"""

from moldau.handlers.context import Context
from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from moldau.replication.partitions import Partitions
from moldau.turns import Steps


class OffsetForLeaderEpoch:
    def __init__(self, partitions: Partitions):
        self._partitions = partitions

    def __call__(self, request: OffsetForLeaderEpochRequest, context: Context) -> Steps[OffsetForLeaderEpochResponse]:
        response = OffsetForLeaderEpochResponse()
        for asked in request.topics:
            result = OffsetForLeaderTopicResult(topic=asked.topic)
            for part in asked.partitions:
                result.partitions.append(self._one(asked.topic, part))
                yield
            response.topics.append(result)
            yield
        return response

    def _one(self, topic: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
        hosted = self._partitions.find(topic, None, part.partition)
        if hosted is None:
            absence = self._partitions.absence(topic, None, part.partition)
            return EpochEndOffset(error_code=absence, partition=part.partition)
        if code := hosted.leadership_error(part.current_leader_epoch):
            return EpochEndOffset(error_code=code, partition=part.partition)
        epoch, end_offset = hosted.end_of_epoch(part.leader_epoch)
        return EpochEndOffset(partition=part.partition, leader_epoch=epoch, end_offset=end_offset)
