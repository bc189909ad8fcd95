"""DescribeWaiting (API key 30003, ours): request and response; how far groups are behind in partitions that another
broker leads."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, INT64, UUID, message


@message
class CommittedPartition:
    partition: int = INT32()
    committed_offset: int = INT64()


@message
class CommittedTopic:
    topic_id: uuid.UUID = UUID()
    partitions: list[CommittedPartition] = ARRAY(CommittedPartition)


@message
class DescribeWaitingRequest:
    broker_id: int = INT32()
    """The one that is asked."""
    topics: list[CommittedTopic] = ARRAY(CommittedTopic)


@message
class WaitingPartition:
    error_code: int = INT16()
    high_watermark: int = INT64()
    is_waiting: bool = BOOL()
    """Whether there is a record at or behind the committed offset."""
    timestamp_ms: int = INT64()
    """Its timestamp; -1 if it has none, -2 if it could not be told."""
    log_start_offset: int = INT64(since=1)


@message
class DescribeWaitingResponse:
    throttle_time_ms: int = INT32()
    partitions: list[WaitingPartition] = ARRAY(WaitingPartition)
    """Of the first partitions that were asked for, in their order."""
