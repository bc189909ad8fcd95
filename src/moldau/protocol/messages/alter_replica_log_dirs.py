"""AlterReplicaLogDirs (API key 34): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, message


@message
class AlterReplicaLogDirTopic:
    name: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class AlterReplicaLogDir:
    path: str = STRING()
    topics: list[AlterReplicaLogDirTopic] = ARRAY(AlterReplicaLogDirTopic)


@message
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = ARRAY(AlterReplicaLogDir)


@message
class AlterReplicaLogDirPartitionResult:
    partition_index: int = INT32()
    error_code: int = INT16()


@message
class AlterReplicaLogDirTopicResult:
    topic_name: str = STRING()
    partitions: list[AlterReplicaLogDirPartitionResult] = ARRAY(AlterReplicaLogDirPartitionResult)


@message
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = INT32()
    results: list[AlterReplicaLogDirTopicResult] = ARRAY(AlterReplicaLogDirTopicResult)
