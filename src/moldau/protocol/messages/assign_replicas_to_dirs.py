"""AssignReplicasToDirs (API key 73): request and response; a broker reports in which log folders its partitions are."""

import uuid

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, UUID, message


@message
class AssignReplicasToDirsPartition:
    partition_index: int = INT32()


@message
class AssignReplicasToDirsTopic:
    topic_id: uuid.UUID = UUID()
    partitions: list[AssignReplicasToDirsPartition] = ARRAY(AssignReplicasToDirsPartition)


@message
class AssignReplicasToDirsDirectory:
    id: uuid.UUID = UUID()
    topics: list[AssignReplicasToDirsTopic] = ARRAY(AssignReplicasToDirsTopic)


@message
class AssignReplicasToDirsRequest:
    broker_id: int = INT32()
    broker_epoch: int = INT64(default=-1)
    directories: list[AssignReplicasToDirsDirectory] = ARRAY(AssignReplicasToDirsDirectory)


@message
class AssignReplicasToDirsPartitionResult:
    partition_index: int = INT32()
    error_code: int = INT16()


@message
class AssignReplicasToDirsTopicResult:
    topic_id: uuid.UUID = UUID()
    partitions: list[AssignReplicasToDirsPartitionResult] = ARRAY(AssignReplicasToDirsPartitionResult)


@message
class AssignReplicasToDirsDirectoryResult:
    id: uuid.UUID = UUID()
    topics: list[AssignReplicasToDirsTopicResult] = ARRAY(AssignReplicasToDirsTopicResult)


@message
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    directories: list[AssignReplicasToDirsDirectoryResult] = ARRAY(AssignReplicasToDirsDirectoryResult)
