"""AssignReplicasToDirs as values: which partitions are in which log folder, and the outcome for each. Pure."""

from collections.abc import Sequence

from moldau.cluster.controlling.assigned_directories import InDirectory
from moldau.error_codes import ErrorCode, error_of
from moldau.errors import KafkaError
from moldau.names import long_id, short_id
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsDirectoryResult,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsPartitionResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopic,
    AssignReplicasToDirsTopicResult,
)


def to_request(broker_id: int, broker_epoch: int, placed: Sequence[InDirectory]) -> AssignReplicasToDirsRequest:
    directories: dict[str, AssignReplicasToDirsDirectory] = {}
    topics: dict[tuple[str, object], AssignReplicasToDirsTopic] = {}
    for topic_id, number, directory in placed:
        if directory not in directories:
            directories[directory] = AssignReplicasToDirsDirectory(id=long_id(directory))
        if (directory, topic_id) not in topics:
            topics[directory, topic_id] = AssignReplicasToDirsTopic(topic_id=topic_id)
            directories[directory].topics.append(topics[directory, topic_id])
        topics[directory, topic_id].partitions.append(AssignReplicasToDirsPartition(partition_index=number))
    return AssignReplicasToDirsRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, directories=list(directories.values())
    )


def from_request(request: AssignReplicasToDirsRequest) -> list[InDirectory]:
    return [
        InDirectory(topic.topic_id, part.partition_index, short_id(directory.id))
        for directory in request.directories
        for topic in directory.topics
        for part in topic.partitions
    ]


def to_response(request: AssignReplicasToDirsRequest, errors: Sequence[ErrorCode]) -> AssignReplicasToDirsResponse:
    """The outcomes in the order of `from_request`."""
    left = iter(errors)
    return AssignReplicasToDirsResponse(
        directories=[
            AssignReplicasToDirsDirectoryResult(
                id=directory.id,
                topics=[
                    AssignReplicasToDirsTopicResult(
                        topic_id=topic.topic_id,
                        partitions=[
                            AssignReplicasToDirsPartitionResult(
                                partition_index=part.partition_index, error_code=next(left)
                            )
                            for part in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


def outcomes(response: AssignReplicasToDirsResponse, placed: Sequence[InDirectory]) -> list[ErrorCode]:
    """The outcome for each of them; UNKNOWN_SERVER_ERROR where the response lacks it. Raises `KafkaError` if the whole
    request was refused."""
    if response.error_code:
        raise KafkaError(error_of(response.error_code))
    said = {
        (topic.topic_id, part.partition_index, short_id(directory.id)): error_of(part.error_code)
        for directory in response.directories
        for topic in directory.topics
        for part in topic.partitions
    }
    return [said.get((one.topic_id, one.number, one.directory), ErrorCode.UNKNOWN_SERVER_ERROR) for one in placed]
