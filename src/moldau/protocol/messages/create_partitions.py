"""CreatePartitions (API key 37): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, STRING, message


@message
class CreatePartitionsAssignment:
    broker_ids: list[int] = ARRAY(INT32)


@message
class CreatePartitionsTopic:
    name: str = STRING()
    count: int = INT32()
    assignments: list[CreatePartitionsAssignment] | None = ARRAY(CreatePartitionsAssignment, nullable=0)


@message
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = ARRAY(CreatePartitionsTopic)
    timeout_ms: int = INT32()
    validate_only: bool = BOOL()


@message
class CreatePartitionsTopicResult:
    name: str = STRING()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)


@message
class CreatePartitionsResponse:
    throttle_time_ms: int = INT32()
    results: list[CreatePartitionsTopicResult] = ARRAY(CreatePartitionsTopicResult)
