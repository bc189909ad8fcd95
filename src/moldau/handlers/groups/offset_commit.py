"""OffsetCommit (key 8), all versions: a group's members commit what they have consumed.

Version 10 names topics by id, earlier ones by name. Only partitions that exist, of topics that the client may read, are
accepted; in answers the others come first, as in Kafka. Versions 2 to 4 can set a retention of their own. A commit for
a group that does not exist is ILLEGAL_GENERATION before version 9, and GROUP_ID_NOT_FOUND since.
"""

import uuid
from collections.abc import Awaitable

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.messages import OffsetsToCommit
from moldau.errors import ErrorCode
from moldau.handlers.groups.committing import Place, asked_offsets
from moldau.handlers.responding import respond_when_ready
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


class OffsetCommit:
    def __init__(self, coordinator: GroupCoordinator, metadata: MetadataCache):
        self._coordinator = coordinator
        self._metadata = metadata

    def __call__(
        self, request: OffsetCommitRequest, call: Call
    ) -> Steps[Steps[OffsetCommitResponse] | Awaitable[Steps[OffsetCommitResponse]]]:
        asked = yield from asked_offsets(request.topics, self._metadata.image, call.version >= BY_ID, call)

        def add(topic: OffsetCommitResponseTopic, index: int, error: ErrorCode) -> None:
            if error is ErrorCode.GROUP_ID_NOT_FOUND and call.version < GROUP_NOT_FOUND:
                error = ErrorCode.ILLEGAL_GENERATION
            topic.partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=error))

        def respond(committed: list[ErrorCode]) -> Steps[OffsetCommitResponse]:
            return OffsetCommitResponse(topics=(yield from asked.answered(committed, _topic, add)))

        # No partition is accepted: there is nothing to ask the coordinator.
        if not asked.offsets:
            return respond([])
        ask = OffsetsToCommit(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            retention_ms=request.retention_time_ms,
            offsets=asked.offsets,
            knows_epochs=call.version >= KNOWS_EPOCHS,
        )
        return respond_when_ready(self._coordinator.commit(ask), respond)


def _topic(place: Place) -> OffsetCommitResponseTopic:
    if isinstance(place, uuid.UUID):
        return OffsetCommitResponseTopic(topic_id=place)
    return OffsetCommitResponseTopic(name=place)
