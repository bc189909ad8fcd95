"""MirrorAppend (API key 30010, ours): request and response; batches of another cluster's partitions for their
mirrors."""

from moldau.protocol.primitives import Detached
from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, RECORDS, STRING, message


@message
class MirroredPartition:
    """`log_end_offset`: the mirror's, as the sender knows it; -1 only asks for it. `source_start_offset`: the log start
    of the mirrored partition."""

    index: int = INT32()
    current_leader_epoch: int = INT32(default=-1)
    log_end_offset: int = INT64(default=-1)
    source_start_offset: int = INT64(default=-1)
    records: memoryview | bytes | Detached | None = RECORDS(nullable=0)


@message
class MirroredTopic:
    """`source`: the value that the topic's setting `mirror.source` must have."""

    name: str = STRING()
    source: str = STRING()
    partitions: list[MirroredPartition] = ARRAY(MirroredPartition)


@message
class MirrorAppendRequest:
    timeout_ms: int = INT32(default=30_000)
    """How long the batches may take until they are committed."""
    topics: list[MirroredTopic] = ARRAY(MirroredTopic)


@message
class MirrorPartitionResult:
    """The offsets of the mirror after the append, or beside OFFSET_OUT_OF_RANGE; else -1 beside an error."""

    index: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0, default=None)
    log_start_offset: int = INT64(default=-1)
    log_end_offset: int = INT64(default=-1)


@message
class MirrorTopicResult:
    name: str = STRING()
    partitions: list[MirrorPartitionResult] = ARRAY(MirrorPartitionResult)


@message
class MirrorAppendResponse:
    throttle_time_ms: int = INT32()
    topics: list[MirrorTopicResult] = ARRAY(MirrorTopicResult)
