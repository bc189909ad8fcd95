"""OffsetDelete (key 47), all versions: an administrator deletes offsets of a group (KIP-496).

In answers, partitions of topics that the client may not read, or that do not exist, come first, as in Kafka. A group
that does not exist is the answer for the whole request, whichever topics it names.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from moldau.cluster.state.image import Image
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode
from moldau.handlers.responding import respond_when_ready
from moldau.names import TopicPartition
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.requests.access import READ_TOPIC
from moldau.requests.session import Call
from moldau.turns import Steps

Errors: TypeAlias = dict[str, list[tuple[int, ErrorCode]]]
"""Topic -> partition and error, in the order of the answer."""


class OffsetDelete:
    def __init__(self, coordinator: GroupCoordinator, image: Callable[[], Image]):
        self._coordinator = coordinator
        self._image = image

    def __call__(
        self, request: OffsetDeleteRequest, call: Call
    ) -> Steps[Steps[OffsetDeleteResponse] | Awaitable[Steps[OffsetDeleteResponse]]]:
        image = self._image()
        errors: Errors = {}
        partitions: list[TopicPartition] = []
        for asked in request.topics:
            readable = call.may(READ_TOPIC, asked.name)
            yield
            for p in asked.partitions:
                partition = TopicPartition(asked.name, p.partition_index)
                if not readable:
                    errors.setdefault(asked.name, []).append((p.partition_index, READ_TOPIC.denied))
                elif image.partition(partition) is None:
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
            for name, partition_errors in errors.items():
                response.topics.append((yield from _deleted(name, partition_errors)))
            return response

        return respond_when_ready(self._coordinator.delete_offsets(request.group_id, partitions), respond)


def _deleted(name: str, errors: list[tuple[int, ErrorCode]]) -> Steps[OffsetDeleteResponseTopic]:
    topic = OffsetDeleteResponseTopic(name=name)
    yield
    for index, error in errors:
        topic.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
        yield
    return topic
