"""GetReplicaLogInfo (API key 30002, ours): request and response; the ends of a broker's replicas, for the
controller that looks for the longest log (as in KIP-966)."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, INT64, UUID, message


@message
class WantedLogs:
    topic_id: uuid.UUID = UUID()
    partitions: list[int] = ARRAY(INT32)


@message
class GetReplicaLogInfoRequest:
    broker_id: int = INT32()
    """The one that is asked."""
    topic_partitions: list[WantedLogs] = ARRAY(WantedLogs)


@message
class PartitionLogInfo:
    partition: int = INT32()
    last_written_leader_epoch: int = INT32()
    current_leader_epoch: int = INT32()
    log_end_offset: int = INT64()
    error_code: int = INT16()


@message
class TopicPartitionLogInfo:
    topic_id: uuid.UUID = UUID()
    partition_log_info: list[PartitionLogInfo] = ARRAY(PartitionLogInfo)


@message
class GetReplicaLogInfoResponse:
    throttle_time_ms: int = INT32()
    broker_epoch: int = INT64()
    has_more_data: bool = BOOL()
    """Whether the answer ends before the last one that was asked for."""
    topic_partition_log_info_list: list[TopicPartitionLogInfo] = ARRAY(TopicPartitionLogInfo)
