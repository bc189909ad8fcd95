"""OffsetForLeaderEpoch (API key 23): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, message


@message
class OffsetForLeaderPartition:
    partition: int = INT32()
    current_leader_epoch: int = INT32(default=-1)
    leader_epoch: int = INT32()


@message
class OffsetForLeaderTopic:
    topic: str = STRING()
    partitions: list[OffsetForLeaderPartition] = ARRAY(OffsetForLeaderPartition)


@message
class OffsetForLeaderEpochRequest:
    replica_id: int = INT32(since=3, default=-2)
    topics: list[OffsetForLeaderTopic] = ARRAY(OffsetForLeaderTopic)


@message
class EpochEndOffset:
    error_code: int = INT16()
    partition: int = INT32()
    leader_epoch: int = INT32(default=-1)
    end_offset: int = INT64(default=-1)


@message
class OffsetForLeaderTopicResult:
    topic: str = STRING()
    partitions: list[EpochEndOffset] = ARRAY(EpochEndOffset)


@message
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = INT32()
    topics: list[OffsetForLeaderTopicResult] = ARRAY(OffsetForLeaderTopicResult)
