"""How far the logs of a broker's replicas go: looked up here, asked of another broker, and answered to one.

WantedLog, LogEnd    (topic id, partition) -> (epoch of the last record, offset after it)
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode
from moldau.log.folders.folders import LogFolders
from moldau.names import TopicPartition
from moldau.protocol.messages.get_replica_log_info import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
    WantedLogs,
)

WantedLog: TypeAlias = tuple[uuid.UUID, int]
AT_ONCE: Final = 1000
"""The most logs of one answer, as in Kafka."""


def log_ends(folders: LogFolders, image: Image, wanted: Sequence[WantedLog]) -> dict[WantedLog, LogEnd]:
    """The ends of those of these logs that are here and online."""
    ends = {}
    for topic_id, number in wanted:
        topic = image.topics_by_id.get(topic_id)
        tp = TopicPartition(topic.name, number) if topic is not None else None
        folder = folders.folder_of(tp) if tp is not None else None
        log = folder.logs.get(tp) if folder is not None and tp is not None else None
        if log is not None:
            end = int(log.log_end_offset)
            last = end - 1 if end > log.log_start_offset else end  # where all was deleted, the epoch begins at the end
            ends[topic_id, number] = LogEnd(int(log.epochs.epoch_at(last)) if end else -1, end)
    return ends


def request_for(broker_id: int, wanted: Sequence[WantedLog]) -> GetReplicaLogInfoRequest:
    by_topic: dict[uuid.UUID, list[int]] = {}
    for topic_id, number in wanted:
        by_topic.setdefault(topic_id, []).append(number)
    topics = [WantedLogs(topic_id=topic_id, partitions=numbers) for topic_id, numbers in by_topic.items()]
    return GetReplicaLogInfoRequest(broker_id=broker_id, topic_partitions=topics)


def wanted_in(request: GetReplicaLogInfoRequest) -> list[WantedLog]:
    return [(topic.topic_id, number) for topic in request.topic_partitions for number in topic.partitions]


def answer_with(
    broker_epoch: int, image: Image, wanted: Sequence[WantedLog], ends: Mapping[WantedLog, LogEnd]
) -> GetReplicaLogInfoResponse:
    """The answer about the first `AT_ONCE` of these logs."""
    by_topic: dict[uuid.UUID, list[PartitionLogInfo]] = {}
    for topic_id, number in wanted[:AT_ONCE]:
        topic, end = image.topics_by_id.get(topic_id), ends.get((topic_id, number))
        info = PartitionLogInfo(partition=number, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if end is not None and topic is not None and number < len(topic.partitions):
            info.last_written_leader_epoch, info.log_end_offset = end
            info.current_leader_epoch = topic.partitions[number].leader_epoch
            info.error_code = ErrorCode.NONE
        by_topic.setdefault(topic_id, []).append(info)
    return GetReplicaLogInfoResponse(
        broker_epoch=broker_epoch,
        has_more_data=len(wanted) > AT_ONCE,
        topic_partition_log_info_list=[
            TopicPartitionLogInfo(topic_id=topic_id, partition_log_info=infos) for topic_id, infos in by_topic.items()
        ],
    )


def ends_in(answer: GetReplicaLogInfoResponse, broker_epoch: int) -> dict[WantedLog, LogEnd]:
    """The ends in the answer of a broker; none if it has registered again since that epoch."""
    if answer.broker_epoch != broker_epoch:
        return {}
    return {
        (topic.topic_id, info.partition): LogEnd(info.last_written_leader_epoch, info.log_end_offset)
        for topic in answer.topic_partition_log_info_list
        for info in topic.partition_log_info
        if not info.error_code
    }
