"""OffsetCommit (key 8), OffsetFetch (9), OffsetDelete (47): what a group has read, in all versions.

Topics come by name, and by id in OffsetCommit 10 and OffsetFetch 10. Offsets are taken for partitions that exist;
what was committed is given out whether they still do or not. A group nobody knows has committed nothing, which is no
error: offset -1. From OffsetFetch 7 on a client may ask for stable offsets: UNSTABLE_OFFSET_COMMIT instead of those
that a transaction is about to change (KIP-447). OffsetCommit 2 to 4 may ask for a retention of their own. A commit for
a group that is not there is ILLEGAL_GENERATION before version 9, GROUP_ID_NOT_FOUND since. In answers, partitions that
are not there come first, as Kafka puts them.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from moldau.cluster.image import Image, TopicImage
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.committed import OffsetsOfGroup
from moldau.coordinators.offsets.messages import NewOffset, OffsetCommit
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.groups import answer
from moldau.handlers.repetitions import Repetitions
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.protocol.upgrades import downgrade_offset_fetch, upgrade_offset_fetch
from moldau.requests.session import Call
from moldau.turns import Steps

COMMIT_BY_ID = 10
COMMIT_GROUP_NOT_FOUND = 9
COMMIT_KNOWS_EPOCHS = 9
FETCH_BY_ID = 10

Place: TypeAlias = str | uuid.UUID
"""A topic's name or id, whichever the version has."""
Pending: TypeAlias = frozenset[TopicPartition]
NONE_PENDING: Pending = frozenset()
Errors: TypeAlias = dict[str, list[tuple[int, ErrorCode]]]
"""Topic -> partition and error, in the order in which the answer has them."""


class OffsetHandlers:
    def __init__(self, coordinator: GroupCoordinator, image: Callable[[], Image]):
        self._coordinator = coordinator
        self._image = image

    # -- OffsetCommit

    def commit(
        self, request: OffsetCommitRequest, call: Call
    ) -> Steps[Steps[OffsetCommitResponse] | Awaitable[Steps[OffsetCommitResponse]]]:
        by_id = call.version >= COMMIT_BY_ID
        answers: dict[tuple[Place, int], list[tuple[int, ErrorCode]]] = {}
        places: list[tuple[Place, int, int]] = []
        offsets: list[NewOffset] = []
        for number, asked in enumerate(request.topics):
            place: Place = asked.topic_id if by_id else asked.name
            topic = self._topic(asked, by_id)
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None:
                answers.setdefault((place, 0), [])
            yield
            for p in asked.partitions:
                yield
                if topic is None or not 0 <= p.partition_index < len(topic.partitions):
                    answers.setdefault((place, 0), []).append((p.partition_index, unknown))
                    continue
                partition = TopicPartition(topic.name, p.partition_index)
                places.append((place, number, p.partition_index))
                offsets.append(
                    NewOffset(
                        partition, p.committed_offset, p.committed_leader_epoch, p.committed_metadata or "", topic.id
                    )
                )

        def respond(committed: list[ErrorCode]) -> Steps[OffsetCommitResponse]:
            apart = not answers  # a topic that is named twice is answered twice, unless something is not there
            for (place, number, index), error in zip(places, committed, strict=True):
                if error is ErrorCode.GROUP_ID_NOT_FOUND and call.version < COMMIT_GROUP_NOT_FOUND:
                    error = ErrorCode.ILLEGAL_GENERATION
                answers.setdefault((place, number if apart else 0), []).append((index, error))
                yield
            response = OffsetCommitResponse()
            for (place, _), found in answers.items():
                response.topics.append((yield from _committed(place, found)))
            return response

        if not offsets:
            return respond([])
        ask = OffsetCommit(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            retention_ms=request.retention_time_ms,
            offsets=offsets,
            knows_epochs=call.version >= COMMIT_KNOWS_EPOCHS,
        )
        return answer(self._coordinator.commit(ask), respond)

    def _topic(self, asked: OffsetCommitRequestTopic | OffsetFetchRequestTopics, by_id: bool) -> TopicImage | None:
        image = self._image()
        return image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name)

    # -- OffsetFetch

    def fetch(self, request: OffsetFetchRequest, call: Call) -> Steps[OffsetFetchResponse]:
        upgrade_offset_fetch(request, call.version)
        by_id = call.version >= FETCH_BY_ID
        stable = request.require_stable
        response, named = OffsetFetchResponse(), Repetitions()
        for group in request.groups:
            response.groups.append((yield from self._fetch_group(group, by_id, stable, named)))
        downgrade_offset_fetch(request, response, call.version)
        return response

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
        """Ids that nobody has come last, as Kafka puts them."""
        return sorted(asked, key=lambda topic: self._topic(topic, by_id) is None) if by_id else asked

    def _all(self, offsets: OffsetsOfGroup, unstable: Pending, by_id: bool) -> Steps[list[OffsetFetchResponseTopics]]:
        """Everything the group has committed; topics that are gone have no id and are left out where ids count."""
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
        unstable: Pending,
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
            fetched.partitions.append(_fetched(p, offsets.get(tp), problem))
            yield
        return fetched

    # -- OffsetDelete

    def delete(
        self, request: OffsetDeleteRequest, call: Call
    ) -> Steps[Steps[OffsetDeleteResponse] | Awaitable[Steps[OffsetDeleteResponse]]]:
        image = self._image()
        errors: Errors = {}
        partitions: list[TopicPartition] = []
        for asked in request.topics:
            for p in asked.partitions:
                partition = TopicPartition(asked.name, p.partition_index)
                if image.partition(partition) is None:
                    errors.setdefault(asked.name, []).append((p.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                else:
                    partitions.append(partition)
                yield

        def respond(deleted: tuple[ErrorCode, list[ErrorCode]]) -> Steps[OffsetDeleteResponse]:
            whole, each = deleted
            if whole is not ErrorCode.NONE:
                return OffsetDeleteResponse(error_code=whole)
            for partition, error in zip(partitions, each, strict=True):
                errors.setdefault(partition.topic, []).append((partition.partition, error))
                yield
            response = OffsetDeleteResponse()
            for name, found in errors.items():
                response.topics.append((yield from _deleted(name, found)))
            return response

        return answer(self._coordinator.delete_offsets(request.group_id, partitions), respond)


def _committed(place: Place, found: list[tuple[int, ErrorCode]]) -> Steps[OffsetCommitResponseTopic]:
    topic = OffsetCommitResponseTopic()
    if isinstance(place, uuid.UUID):
        topic.topic_id = place
    else:
        topic.name = place
    yield
    for index, error in found:
        topic.partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=error))
        yield
    return topic


def _deleted(name: str, found: list[tuple[int, ErrorCode]]) -> Steps[OffsetDeleteResponseTopic]:
    topic = OffsetDeleteResponseTopic(name=name)
    yield
    for index, error in found:
        topic.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
        yield
    return topic


def _stability(partition: TopicPartition, unstable: Pending) -> ErrorCode:
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
