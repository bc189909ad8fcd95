"""OffsetFetch (key 9), all versions: the committed offsets of groups.

Version 10 names topics by id, earlier ones by name. Offsets are returned even if their partitions no longer exist. A
group that does not exist has committed nothing, which is not an error: its offsets are -1. From version 7 on a client
can ask for stable offsets: it gets UNSTABLE_OFFSET_COMMIT instead of an offset that an open transaction may change
(KIP-447).
"""

from collections.abc import Callable
from typing import TypeAlias

from moldau.cluster.state.image import Image, TopicImage
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.committed import OffsetsOfGroup
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.repetitions import Repetitions
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.protocol.primitives import ZERO_UUID
from moldau.protocol.upgrades import downgrade_offset_fetch, upgrade_offset_fetch
from moldau.requests.session import Call
from moldau.turns import Steps

BY_ID = 10
PendingPartitions: TypeAlias = frozenset[TopicPartition]
NONE_PENDING: PendingPartitions = frozenset()


class OffsetFetch:
    def __init__(self, coordinator: GroupCoordinator, image: Callable[[], Image]):
        self._coordinator = coordinator
        self._image = image

    def __call__(self, request: OffsetFetchRequest, call: Call) -> Steps[OffsetFetchResponse]:
        upgrade_offset_fetch(request, call.version)
        by_id = call.version >= BY_ID
        stable = request.require_stable
        response, named = OffsetFetchResponse(), Repetitions()
        for group in request.groups:
            response.groups.append((yield from self._fetch_group(group, by_id, stable, named)))
        downgrade_offset_fetch(request, response, call.version)
        return response

    def _topic(self, asked: OffsetFetchRequestTopics, by_id: bool) -> TopicImage | None:
        image = self._image()
        return image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name)

    def _fetch_group(
        self, asked: OffsetFetchRequestGroup, by_id: bool, stable: bool, named: Repetitions
    ) -> Steps[OffsetFetchResponseGroup]:
        yield
        if named.exceed(asked.group_id):
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=ErrorCode.INVALID_REQUEST)
        try:
            refused = self._coordinator.check_fetch(asked.group_id, asked.member_id, asked.member_epoch)
            offsets = self._coordinator.offsets(asked.group_id).copy()  # one commit is seen whole or not at all
            unstable = self._coordinator.pending(asked.group_id) if stable else NONE_PENDING
        except KafkaError as error:
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)
        if refused is not ErrorCode.NONE:
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=refused)
        if asked.topics is None:
            topics = yield from self._all(offsets, unstable, by_id)
            return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)
        group, repeated = OffsetFetchResponseGroup(group_id=asked.group_id), Repetitions()
        for topic in self._known_first(asked.topics, by_id):
            group.topics.append((yield from self._some(offsets, unstable, topic, by_id, repeated)))
        return group

    def _known_first(self, asked: list[OffsetFetchRequestTopics], by_id: bool) -> list[OffsetFetchRequestTopics]:
        """Unknown topic ids come last, as in Kafka."""
        return sorted(asked, key=lambda topic: self._topic(topic, by_id) is None) if by_id else asked

    def _all(
        self, offsets: OffsetsOfGroup, unstable: PendingPartitions, by_id: bool
    ) -> Steps[list[OffsetFetchResponseTopics]]:
        """All offsets of the group. Deleted topics have no id, so requests by id leave them out."""
        image = self._image()
        topics: dict[str, OffsetFetchResponseTopics] = {}
        for partition, value in offsets.pairs():
            yield
            topic = image.topics.get(partition.topic)
            if by_id and topic is None:
                continue
            if partition.topic not in topics:
                topics[partition.topic] = OffsetFetchResponseTopics(name=partition.topic)
                if topic is not None:
                    topics[partition.topic].topic_id = topic.id
            fetched = _fetched(partition.partition, value, _stability(partition, unstable))
            topics[partition.topic].partitions.append(fetched)
        return list(topics.values())

    def _some(
        self,
        offsets: OffsetsOfGroup,
        unstable: PendingPartitions,
        asked: OffsetFetchRequestTopics,
        by_id: bool,
        named: Repetitions,
    ) -> Steps[OffsetFetchResponseTopics]:
        topic = self._topic(asked, by_id)
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.NONE
        name = topic.name if topic is not None else asked.name
        fetched = OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id)
        yield
        for p in asked.partition_indexes:
            tp = TopicPartition(name, p)
            if not error and named.exceed(tp):
                problem = ErrorCode.INVALID_REQUEST
            else:
                problem = error or _stability(tp, unstable)
            value = offsets.get(tp)
            if by_id and value is not None and value.topic_id not in (ZERO_UUID, asked.topic_id):
                value = None  # of an earlier topic of that name
            fetched.partitions.append(_fetched(p, value, problem))
            yield
        return fetched


def _stability(partition: TopicPartition, unstable: PendingPartitions) -> ErrorCode:
    return ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable and partition in unstable else ErrorCode.NONE


def _fetched(index: int, value: OffsetCommitValue | None, error: ErrorCode) -> OffsetFetchResponsePartitions:
    if value is None or error:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=error)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )
