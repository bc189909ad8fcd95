"""Freeing messages: everything that nobody else holds, and nothing that somebody does."""

import gc

from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.schema import WIDE_ELEMENTS, release

PARTITIONS = WIDE_ELEMENTS + 1


def request() -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequestPartition(partition_index=n) for n in range(PARTITIONS)]
        )
        for name in ("a", "b")
    ]
    return OffsetCommitRequest(group_id="g", topics=topics)


def partitions_alive() -> int:
    return sum(type(one) is OffsetCommitRequestPartition for one in gc.get_objects())


def test_all_elements_of_released_messages_are_freed() -> None:
    before = partitions_alive()
    messages = [request(), request()]
    assert partitions_alive() == before + 4 * PARTITIONS
    release(messages)
    assert messages == []
    assert partitions_alive() == before


def test_what_somebody_else_holds_of_a_released_message_is_whole() -> None:
    whole = request()
    held = whole.topics[1].partitions
    release([whole])
    assert whole == request()
    del whole
    assert [partition.partition_index for partition in held] == list(range(PARTITIONS))


def test_the_signature_of_a_message_is_not_written_into_its_docstring() -> None:
    """`dataclass` does that for a class without one, in more time than all else that it does: at the start of every
    command some fifty times."""
    assert OffsetCommitRequest.__doc__ == "OffsetCommitRequest"
