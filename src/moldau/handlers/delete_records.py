"""DeleteRecords (key 21), versions 0 to 2: move the start of a log forward.

Offset -1 means the high watermark. An offset above the high watermark is out of range. A topic that is only compacted
refuses (POLICY_VIOLATION), because its older records are part of its state. Internal topics are refused.
"""

from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.replication.replicas import Replicas
from moldau.requests.session import Call
from moldau.turns import Steps

EVERYTHING = -1


class DeleteRecords:
    def __init__(self, replicas: Replicas):
        self._replicas = replicas

    def __call__(self, request: DeleteRecordsRequest, call: Call) -> Steps[DeleteRecordsResponse]:
        asked: dict[str, dict[int, DeleteRecordsPartition]] = {}
        for topic in request.topics:  # if a request names a partition twice, the last offset counts
            asked.setdefault(topic.name, {}).update((part.partition_index, part) for part in topic.partitions)
            yield
        response = DeleteRecordsResponse()
        for name, parts in asked.items():
            result = DeleteRecordsTopicResult(name=name)
            for part in parts.values():
                result.partitions.append(self._one(name, part))
                yield
            response.topics.append(result)
            yield
        return response

    def _one(self, topic: str, part: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        try:
            low_watermark = self._delete(topic, part)
        except KafkaError as error:
            return DeleteRecordsPartitionResult(
                partition_index=part.partition_index, low_watermark=-1, error_code=error.code
            )
        return DeleteRecordsPartitionResult(partition_index=part.partition_index, low_watermark=low_watermark)

    def _delete(self, topic: str, part: DeleteRecordsPartition) -> int:
        replica = self._replicas.find(topic, None, part.partition_index)
        if replica is None:
            raise KafkaError(self._replicas.absence(topic, None, part.partition_index))
        if replica.internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if not replica.config.deletes:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = replica.high_watermark if part.offset == EVERYTHING else part.offset
        return replica.delete_records_before(offset)
