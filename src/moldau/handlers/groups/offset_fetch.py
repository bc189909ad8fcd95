"""OffsetFetch (key 9), all versions: the committed offsets of groups.

Version 10 names topics by id, earlier ones by name. Offsets are returned even if their partitions no longer exist. A
group that does not exist has committed nothing, which is not an error: its offsets are -1. From version 7 on a client
can ask for stable offsets: it gets UNSTABLE_OFFSET_COMMIT instead of an offset that an open transaction may change
(KIP-447). Topics that the client may not describe are refused if the request names them, and come last in answers as
unknown ids do; a request for all offsets leaves them out.
"""

from collections.abc import Callable
from typing import TypeAlias

from moldau.cluster.state.image import Image
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.committed import OffsetsOfGroup
from moldau.coordinators.partitioning import elements_of
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
from moldau.requests.access import DESCRIBE_GROUP, DESCRIBE_TOPIC
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
        stable = request.require_stable
        response, named = OffsetFetchResponse(), Repetitions()
        for group in request.groups:
            response.groups.append((yield from self._fetch_group(group, call, stable, named)))
        downgrade_offset_fetch(request, response, call.version)
        return response

    def _fetch_group(
        self, asked: OffsetFetchRequestGroup, call: Call, stable: bool, named: Repetitions
    ) -> Steps[OffsetFetchResponseGroup]:
        yield
        yield from elements_of(asked.group_id)
        if not call.may(DESCRIBE_GROUP, asked.group_id):
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=DESCRIBE_GROUP.denied)
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
            topics = yield from self._all(offsets, unstable, call)
            return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)
        known: list[OffsetFetchResponseTopics] = []
        last: list[OffsetFetchResponseTopics] = []
        repeated = Repetitions()
        for topic in asked.topics:
            name, refusal = self._named(topic, call)
            fetched = yield from _some(offsets, unstable, topic, name, refusal, repeated)
            (last if refusal else known).append(fetched)
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=known + last)

    def _named(self, asked: OffsetFetchRequestTopics, call: Call) -> tuple[str, ErrorCode]:
        """The topic's name, and the error that refuses the whole topic, if any."""
        name = asked.name
        if call.version >= BY_ID:
            topic = self._image().topics_by_id.get(asked.topic_id)
            if topic is None:
                return name, ErrorCode.UNKNOWN_TOPIC_ID
            name = topic.name
        return name, ErrorCode.NONE if call.may(DESCRIBE_TOPIC, name) else DESCRIBE_TOPIC.denied

    def _all(
        self, offsets: OffsetsOfGroup, unstable: PendingPartitions, call: Call
    ) -> Steps[list[OffsetFetchResponseTopics]]:
        """All offsets of the group that the client may see. Deleted topics have no id, so requests by id leave them
        out."""
        image, by_id = self._image(), call.version >= BY_ID
        topics: dict[str, OffsetFetchResponseTopics | None] = {}
        for partition, value in offsets.pairs():
            yield
            name = partition.topic
            if name not in topics:
                topic = image.topics.get(name)
                left_out = (by_id and topic is None) or not call.may(DESCRIBE_TOPIC, name, logged=False)
                topic_id = ZERO_UUID if topic is None else topic.id
                topics[name] = None if left_out else OffsetFetchResponseTopics(name=name, topic_id=topic_id)
            fetched = topics[name]
            if fetched is not None:
                fetched.partitions.append(_fetched(partition.partition, value, _stability(partition, unstable)))
        return [fetched for fetched in topics.values() if fetched is not None]


def _some(
    offsets: OffsetsOfGroup,
    unstable: PendingPartitions,
    asked: OffsetFetchRequestTopics,
    name: str,
    refusal: ErrorCode,
    named: Repetitions,
) -> Steps[OffsetFetchResponseTopics]:
    fetched = OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id)
    yield
    for p in asked.partition_indexes:
        tp = TopicPartition(name, p)
        if not refusal and named.exceed(tp):
            problem = ErrorCode.INVALID_REQUEST
        else:
            problem = refusal or _stability(tp, unstable)
        value = offsets.get(tp)
        # A request by name has no id, and takes the offset of any topic of that name.
        if value is not None and asked.topic_id != ZERO_UUID and value.topic_id not in (ZERO_UUID, asked.topic_id):
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
