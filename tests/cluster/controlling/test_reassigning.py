"""Which reassignments the controller takes, with Kafka's codes, and what a partition becomes."""

import uuid
from collections.abc import Sequence

import pytest

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.reassigning import reassigned
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.reassignment import is_under_way
from moldau.errors import ErrorCode
from moldau.names import TopicPartition

AT_REST = PartitionImage(1, 0, (1, 2), (1, 2), directories=("folder-1", "folder-2"))
TP = TopicPartition("t", 0)


def image(part: PartitionImage = AT_REST, up: Sequence[int] = (1, 2, 3, 4)) -> Image:
    brokers = {number: BrokerImage(number, ()) for number in up}
    return Image("cluster", 1, brokers).with_topics({"t": TopicImage("t", uuid.UUID(int=9), (part,), {})})


def asked(
    cluster: Image, replicas: Sequence[int] | None, tp: TopicPartition = TP, *, keeps_factor: bool = False
) -> PartitionImage | ErrorCode:
    result = reassigned(cluster, tp, replicas, lambda _: 1, keeps_factor=keeps_factor)
    return result.code if isinstance(result, Refusal) else result


def taken(cluster: Image, *replicas: int, keeps_factor: bool = False) -> PartitionImage:
    part = asked(cluster, replicas, keeps_factor=keeps_factor)
    assert isinstance(part, PartitionImage)
    return part


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([9, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, -1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_plan_names_each_of_its_brokers_once_and_they_run(replicas: list[int] | None, code: ErrorCode) -> None:
    assert asked(image(), replicas) is code


@pytest.mark.parametrize("tp", [TopicPartition("t", 7), TopicPartition("none", 0)])
@pytest.mark.parametrize("replicas", [[1], [], None])
def test_an_unknown_partition_is_said_first(tp: TopicPartition, replicas: list[int] | None) -> None:
    assert asked(image(), replicas, tp) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_goes_to_other_brokers_and_is_led_as_before_until_they_are_in_sync() -> None:
    part = taken(image(), 3, 2)
    assert (part.replicas, part.adding_replicas, part.removing_replicas) == ((3, 2, 1), (3,), (1,))
    assert (part.leader, part.leader_epoch, part.isr) == (1, 0, (1, 2))
    assert [part.directory_of(broker) for broker in (1, 2, 3)] == ["folder-1", "folder-2", ""]


def test_another_order_is_there_at_once() -> None:
    part = taken(image(), 2, 1)
    assert part.replicas == (2, 1)
    assert not is_under_way(part)


def test_a_second_plan_replaces_the_first_which_can_be_cancelled() -> None:
    begun = taken(image(), 3, 2)
    again = taken(image(begun), 4, 2)
    assert (again.replicas, again.adding_replicas, again.removing_replicas) == ((4, 2, 1), (4,), (1,))
    back = asked(image(again), None)
    assert isinstance(back, PartitionImage)
    assert (back.replicas, is_under_way(back)) == ((2, 1), False)


def test_a_broker_that_is_down_stays_in_a_plan_and_joins_none() -> None:
    cluster = image(up=(1, 3))
    assert taken(cluster, 3, 1, 2).adding_replicas == (3,)
    assert asked(cluster, [1, 4]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_replication_factor_from_before_a_move_stays_if_it_has_to() -> None:
    assert asked(image(), [1, 2, 3], keeps_factor=True) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert taken(image(), 3, 1, keeps_factor=True).replicas == (3, 1, 2)
    grown = taken(image(), 1, 2, 3)
    assert asked(image(grown), [1, 2, 4], keeps_factor=True) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert taken(image(grown), 1, 4, keeps_factor=True).adding_replicas == (4,)


def test_a_plan_is_not_cancelled_if_only_an_unclean_election_could_find_a_leader_then() -> None:
    begun = taken(image(), 3, 4)._replace(leader=3, isr=(3,))
    assert asked(image(begun), None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert asked(image(begun), [2, 4]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
