"""ListPartitionReassignments (API key 46): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, message


@message
class ListPartitionReassignmentsTopics:
    name: str = STRING()
    partition_indexes: list[int] = ARRAY(INT32)


@message
class ListPartitionReassignmentsRequest:
    timeout_ms: int = INT32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = ARRAY(
        ListPartitionReassignmentsTopics, nullable=0, default=None
    )


@message
class OngoingPartitionReassignment:
    partition_index: int = INT32()
    replicas: list[int] = ARRAY(INT32)
    adding_replicas: list[int] = ARRAY(INT32)
    removing_replicas: list[int] = ARRAY(INT32)


@message
class OngoingTopicReassignment:
    name: str = STRING()
    partitions: list[OngoingPartitionReassignment] = ARRAY(OngoingPartitionReassignment)


@message
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    topics: list[OngoingTopicReassignment] = ARRAY(OngoingTopicReassignment)
