"""ListPartitionReassignments shows what is under way, from the image that the broker serves by."""

import uuid

import pytest

from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.handlers.cluster.reassignments import ListReassignments
from moldau.names import TopicPartition
from moldau.protocol.apis import LIST_PARTITION_REASSIGNMENTS
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from moldau.turns import turn
from tests.requests.calling import call

AT_REST = PartitionImage(1, 0, (1, 2), (1, 2))
MOVING = PartitionImage(1, 0, (3, 2, 1), (1, 2), adding_replicas=(3,), removing_replicas=(1,))
IMAGE = Image("c", 1).with_topics(
    {
        "a": TopicImage("a", uuid.UUID(int=1), (MOVING, AT_REST, MOVING), {}),
        "b": TopicImage("b", uuid.UUID(int=2), (AT_REST,), {}),
        "c": TopicImage("c", uuid.UUID(int=3), (MOVING,), {}),
    }
)
A0, A2, C0 = TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("c", 0)


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (None, [A0, A2, C0]),
        ([], []),
        ([("b", [0])], []),
        ([("a", [2, 1, 2, 9, -1]), ("none", [0])], [A2]),
        ([("c", [0]), ("a", [0]), ("c", [0])], [C0, A0]),
    ],
)
def test_partitions_that_are_on_their_way_are_listed_once(
    wanted: list[tuple[str, list[int]]] | None, shown: list[TopicPartition]
) -> None:
    topics = None
    if wanted is not None:
        topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers) for name, numbers in wanted]
    steps = ListReassignments(lambda: IMAGE)(
        ListPartitionReassignmentsRequest(topics=topics), call(LIST_PARTITION_REASSIGNMENTS, 0)
    )
    reply = turn(steps)
    listed = [(topic.name, one) for topic in reply.topics for one in topic.partitions]
    assert [(name, one.partition_index) for name, one in listed] == shown
    assert {(*one.replicas, *one.adding_replicas, *one.removing_replicas) for _, one in listed} <= {(3, 2, 1, 3, 1)}
    assert reply.error_code == 0
