"""AlterReplicaLogDirs (key 34, versions 1 and 2): a partition stays in the log folder that it is in.

A request for the folder that the partition is already in succeeds, as in Kafka (KIP-113). A request for another log
folder is refused as INVALID_REQUEST: this broker does not move partitions between folders while it runs. The response
has no field for a message, so a log line has the reason. If a request names a partition several times, the last counts.
"""

import logging

from moldau.errors import ErrorCode
from moldau.names import TopicPartition, counted
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from moldau.replication.replicas import Replicas
from moldau.requests.session import Call
from moldau.turns import Steps

logger = logging.getLogger(__name__)


class AlterReplicaLogDirs:
    def __init__(self, replicas: Replicas):
        self._replicas = replicas

    def __call__(self, request: AlterReplicaLogDirsRequest, call: Call) -> Steps[AlterReplicaLogDirsResponse]:
        wanted: dict[TopicPartition, str] = {}
        for folder in request.dirs:
            for topic in folder.topics:
                yield
                for number in topic.partitions:
                    wanted[TopicPartition(topic.name, number)] = folder.path
                    yield
        served = self._replicas.log_dirs
        topics: dict[str, AlterReplicaLogDirTopicResult] = {}
        moves = 0
        for tp, path in wanted.items():
            error = self._error(tp, path, served.get(path))
            moves += error is ErrorCode.INVALID_REQUEST
            result = topics.setdefault(tp.topic, AlterReplicaLogDirTopicResult(topic_name=tp.topic))
            result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=tp.partition, error_code=error))
            yield
        if moves:
            logger.warning(
                "%s asked to move %s to other log folders, which is refused: this broker does not move partitions "
                "while it runs",
                call.client_host,
                counted(moves, "partition"),
            )
        return AlterReplicaLogDirsResponse(results=list(topics.values()))

    def _error(self, tp: TopicPartition, path: str, is_served: bool | None) -> ErrorCode:
        """`is_served` is None for a path that is not in log.dirs."""
        if is_served is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not is_served:
            return ErrorCode.KAFKA_STORAGE_ERROR
        now = self._replicas.log_dir_of(tp)
        if now is None:
            return self._replicas.absence(tp.topic, None, tp.partition)
        return ErrorCode.NONE if now == path else ErrorCode.INVALID_REQUEST
