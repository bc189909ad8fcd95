"""What OffsetCommit and TxnOffsetCommit have in common: their topics by name or by id, and the order of their answers.

Topics that the client may not read, and topics and partitions that do not exist, are refused here; all other offsets go
to the group's coordinator together. In answers refused partitions come first, and a topic that is named twice is
answered twice unless a partition is refused, as in Kafka.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from moldau.cluster.state.image import Image
from moldau.coordinators.offsets.messages import NewOffset
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.requests.access import READ_TOPIC
from moldau.requests.session import Call
from moldau.turns import Steps

Place: TypeAlias = str | uuid.UUID
"""A topic's name or id, depending on the version."""
T = TypeVar("T")
P = TypeVar("P")


class AskedPartition(Protocol):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class AskedTopic(Protocol):
    name: str
    topic_id: uuid.UUID

    @property
    def partitions(self) -> Sequence[AskedPartition]: ...


class AskedOffsets(NamedTuple):
    """The offsets of one request. `offsets` are those of existing partitions, `places` where each stands in the request
    (topic, its position, partition), `refused` the answers for what does not exist or may not be read."""

    offsets: list[NewOffset]
    places: list[tuple[Place, int, int]]
    refused: dict[Place, list[tuple[int, ErrorCode]]]

    def answered(
        self, committed: list[ErrorCode], topic_of: Callable[[Place], T], add: Callable[[T, int, ErrorCode], None]
    ) -> Steps[list[T]]:
        """The answers by topic: `topic_of` makes one for a topic, `add` adds a partition and its error to it.
        `committed` has an error for each of `offsets`."""
        answers: dict[tuple[Place, int], T] = {}
        for place, errors in self.refused.items():
            topic = answers[place, 0] = topic_of(place)
            yield
            for index, error in errors:
                add(topic, index, error)
                yield
        apart = not answers
        for (place, number, index), error in zip(self.places, committed, strict=True):
            key = place, number if apart else 0
            if key not in answers:
                answers[key] = topic_of(place)
            add(answers[key], index, error)
            yield
        return list(answers.values())


def asked_offsets(topics: Sequence[AskedTopic], image: Image, by_id: bool, call: Call) -> Steps[AskedOffsets]:
    """Find the topics of a request in the image. A topic that the client may not read is refused whether it exists or
    not; an unknown id is said to be unknown, since no name belongs to it."""
    asked = AskedOffsets([], [], {})
    for number, wanted in enumerate(topics):
        place: Place = wanted.topic_id if by_id else wanted.name
        topic = image.topics_by_id.get(wanted.topic_id) if by_id else image.topics.get(wanted.name)
        if by_id and topic is None:
            refusal = ErrorCode.UNKNOWN_TOPIC_ID
        elif call.may(READ_TOPIC, wanted.name if topic is None else topic.name):
            refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            topic, refusal = None, READ_TOPIC.denied
        if topic is None:
            asked.refused.setdefault(place, [])
        yield
        for p in wanted.partitions:
            yield
            if topic is None or not 0 <= p.partition_index < len(topic.partitions):
                asked.refused.setdefault(place, []).append((p.partition_index, refusal))
                continue
            partition, note = TopicPartition(topic.name, p.partition_index), p.committed_metadata or ""
            asked.places.append((place, number, p.partition_index))
            asked.offsets.append(NewOffset(partition, p.committed_offset, p.committed_leader_epoch, note, topic.id))
    return asked
