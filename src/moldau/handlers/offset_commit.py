"""OffsetCommit (key 8), all versions: a group's members commit what they have consumed.

Version 10 names topics by id, earlier ones by name. Only partitions that exist are accepted; in answers the others come
first, as in Kafka. Versions 2 to 4 can set a retention of their own. A commit for a group that does not exist is
ILLEGAL_GENERATION before version 9, and GROUP_ID_NOT_FOUND since.
"""

import uuid
from collections.abc import Awaitable
from typing import TypeAlias

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit
from moldau.errors import ErrorCode
from moldau.handlers.responding import respond_when_ready
from moldau.names import TopicPartition
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.requests.session import Call
from moldau.turns import Steps

BY_ID = 10
GROUP_NOT_FOUND = 9
KNOWS_EPOCHS = 9
Place: TypeAlias = str | uuid.UUID
"""A topic's name or id, depending on the version."""


class OffsetCommit:
    def __init__(self, coordinator: GroupCoordinator, metadata: MetadataCache):
        self._coordinator = coordinator
        self._metadata = metadata

    def __call__(
        self, request: OffsetCommitRequest, call: Call
    ) -> Steps[Steps[OffsetCommitResponse] | Awaitable[Steps[OffsetCommitResponse]]]:
        by_id = call.version >= BY_ID
        image = self._metadata.image
        answers: dict[tuple[Place, int], list[tuple[int, ErrorCode]]] = {}
        places: list[tuple[Place, int, int]] = []
        offsets: list[NewOffset] = []
        for number, asked in enumerate(request.topics):
            place: Place = asked.topic_id if by_id else asked.name
            topic = image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name)
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None:
                answers.setdefault((place, 0), [])
            yield
            for p in asked.partitions:
                yield
                # A partition that does not exist is answered here; the others are committed together.
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
            # A topic that is named twice is answered twice, unless a partition does not exist.
            apart = not answers
            for (place, number, index), error in zip(places, committed, strict=True):
                if error is ErrorCode.GROUP_ID_NOT_FOUND and call.version < GROUP_NOT_FOUND:
                    error = ErrorCode.ILLEGAL_GENERATION
                answers.setdefault((place, number if apart else 0), []).append((index, error))
                yield
            response = OffsetCommitResponse()
            for (place, _), errors in answers.items():
                response.topics.append((yield from _committed(place, errors)))
            return response

        # No partition exists: there is nothing to ask the coordinator.
        if not offsets:
            return respond([])
        ask = OffsetsToCommit(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            retention_ms=request.retention_time_ms,
            offsets=offsets,
            knows_epochs=call.version >= KNOWS_EPOCHS,
        )
        return respond_when_ready(self._coordinator.commit(ask), respond)


def _committed(place: Place, errors: list[tuple[int, ErrorCode]]) -> Steps[OffsetCommitResponseTopic]:
    topic = OffsetCommitResponseTopic()
    if isinstance(place, uuid.UUID):
        topic.topic_id = place
    else:
        topic.name = place
    yield
    for index, error in errors:
        topic.partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=error))
        yield
    return topic
