"""DeleteTopics (API key 20): request and response, in all versions."""

import uuid

from moldau.protocol.schema import ARRAY, INT16, INT32, STRING, UUID, message


@message
class DeleteTopicState:
    name: str | None = STRING(since=6, nullable=6, default=None)
    topic_id: uuid.UUID = UUID(since=6)


@message
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = ARRAY(DeleteTopicState, since=6)
    topic_names: list[str] = ARRAY(STRING, until=5)
    timeout_ms: int = INT32()


@message
class DeletableTopicResult:
    name: str | None = STRING(nullable=6)
    topic_id: uuid.UUID = UUID(since=6)
    error_code: int = INT16()
    error_message: str | None = STRING(since=5, nullable=5, default=None)


@message
class DeleteTopicsResponse:
    throttle_time_ms: int = INT32(since=1)
    responses: list[DeletableTopicResult] = ARRAY(DeletableTopicResult)
