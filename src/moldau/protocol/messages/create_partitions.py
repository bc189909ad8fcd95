"""CreatePartitions (API key 37): what is asked and what is answered, in all versions."""

from dataclasses import dataclass

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, STRING


@dataclass(slots=True, kw_only=True)
class CreatePartitionsAssignment:
    broker_ids: list[int] = ARRAY(INT32)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopic:
    name: str = STRING()
    count: int = INT32()
    assignments: list[CreatePartitionsAssignment] | None = ARRAY(CreatePartitionsAssignment, nullable=0)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = ARRAY(CreatePartitionsTopic)
    timeout_ms: int = INT32()
    validate_only: bool = BOOL()


@dataclass(slots=True, kw_only=True)
class CreatePartitionsTopicResult:
    name: str = STRING()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)


@dataclass(slots=True, kw_only=True)
class CreatePartitionsResponse:
    throttle_time_ms: int = INT32()
    results: list[CreatePartitionsTopicResult] = ARRAY(CreatePartitionsTopicResult)
