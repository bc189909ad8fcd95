"""AlterReplicaLogDirs (key 34, versions 1 and 2): partitions move to other log folders of this broker (KIP-113).

The answer says whether the move begins; DescribeLogDirs shows how far it is. A path must be written as in `log.dirs`,
else it is LOG_DIR_NOT_FOUND; while any log folder is offline, nothing moves (KAFKA_STORAGE_ERROR). A request for the
folder that the partition is in ends its move. As in Kafka, the choice is kept also where the answer is an error: a
partition that comes to this broker later is made in that folder. If a request names a partition several times, the last
counts.
"""

from functools import partial

from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from moldau.replication.replicas import Replicas
from moldau.requests.session import Call
from moldau.turns import Steps


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
        topics: dict[str, AlterReplicaLogDirTopicResult] = {}
        for tp, path in wanted.items():
            error = self._ask(tp, path)
            result = topics.setdefault(tp.topic, AlterReplicaLogDirTopicResult(topic_name=tp.topic))
            result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=tp.partition, error_code=error))
            yield
        return AlterReplicaLogDirsResponse(results=list(topics.values()))

    def _ask(self, tp: TopicPartition, path: str) -> ErrorCode:
        return self._replicas.moves.ask(tp, path, partial(self._replicas.absence, tp.topic, None, tp.partition))
