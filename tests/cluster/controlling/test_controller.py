"""What the controller decides, with Kafka's codes: an image and a wish in, a topic or a refusal out."""

import uuid
from collections.abc import Iterator, Mapping, Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moldau.cluster.controlling import controller
from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.config import broker_config
from moldau.errors import ErrorCode

CONFIG = broker_config({"num.partitions": "2"})[0]
THREE = {
    number: BrokerImage(number, (Endpoint("PLAINTEXT", "PLAINTEXT", f"host{number}", 9092),)) for number in (1, 2, 3)
}


def ids() -> Iterator[uuid.UUID]:
    number = 0
    while True:
        number += 1
        yield uuid.UUID(int=number)


def topic(name: str, partitions: int = 1, replicas: Sequence[int] = (1,), number: int = 99) -> TopicImage:
    part = PartitionImage(replicas[0], 0, tuple(replicas), tuple(replicas))
    return TopicImage(name, uuid.UUID(int=number), (part,) * partitions, {})


def image(*topics: TopicImage, brokers: Mapping[int, BrokerImage] = THREE) -> Image:
    return Image("cluster", 1, brokers).with_topics({one.name: one for one in topics})


def create(cluster: Image, *wanted: NewTopic) -> dict[str, TopicImage | Refusal]:
    new = ids()
    return dict(controller.create_topics(cluster, CONFIG, wanted, lambda: next(new)))


def code_of(result: object) -> ErrorCode:
    return result.code if isinstance(result, Refusal) else ErrorCode.NONE


def test_a_topic_gets_the_defaults_where_nothing_is_said() -> None:
    made = create(image(), NewTopic("a"))["a"]
    assert isinstance(made, TopicImage)
    assert made.id == uuid.UUID(int=1)
    assert [part.replicas for part in made.partitions] == [(1,), (2,)]


def test_replicas_go_round_the_brokers_and_the_first_leads() -> None:
    made = create(image(), NewTopic("a", 4, 2))["a"]
    assert isinstance(made, TopicImage)
    assert [part.replicas for part in made.partitions] == [(1, 2), (2, 3), (3, 1), (1, 3)]
    assert [part.leader for part in made.partitions] == [1, 2, 3, 1]
    assert all(part.isr == part.replicas and part.leader_epoch == 0 for part in made.partitions)


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 249])
def test_a_name_of_plain_characters_is_taken(name: str) -> None:
    assert controller.name_refusal(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a\0", "../a", "a:b", "１"])
def test_no_other_name_is(name: str) -> None:
    assert code_of(create(image(), NewTopic(name))[name]) is ErrorCode.INVALID_TOPIC_EXCEPTION


@given(st.text())
def test_no_name_that_is_taken_leads_out_of_its_folder(name: str) -> None:
    if controller.name_refusal(name) is None:
        assert "/" not in name
        assert name not in ("", ".", "..")
        assert name.isascii()


WISHES = [
    (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
    (NewTopic("there", 0), ErrorCode.TOPIC_ALREADY_EXISTS),
    (NewTopic("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (NewTopic("new", 0), ErrorCode.INVALID_PARTITIONS),
    (NewTopic("new", -2), ErrorCode.INVALID_PARTITIONS),
    (NewTopic("new", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (NewTopic("new", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (NewTopic("new", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
    (NewTopic("new", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (NewTopic("new", 9_999), ErrorCode.NONE),
    (NewTopic("new", 10_000), ErrorCode.POLICY_VIOLATION),
    (NewTopic("new", 1_000_000), ErrorCode.POLICY_VIOLATION),
    (NewTopic("new", assignments=[(0, [1, 2]), (1, [3, 1])]), ErrorCode.NONE),
    (NewTopic("new", assignments=[(1, [1]), (0, [2])]), ErrorCode.NONE),
    (NewTopic("new", 1, assignments=[(0, [1])]), ErrorCode.INVALID_REQUEST),
    (NewTopic("new", -1, 1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
    (NewTopic("new", assignments=[(0, [5])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(0, [-1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(0, [1]), (2, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(-1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(0, [1]), (0, [2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", assignments=[(0, [1]), (1, [1, 2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("new", configs=[("retention.ms", "5")]), ErrorCode.NONE),
    (NewTopic("new", configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
    (NewTopic("new", configs=[("retention.ms", "x")]), ErrorCode.INVALID_CONFIG),
    (NewTopic("new", 0, configs=[("nothing", "x")]), ErrorCode.INVALID_CONFIG),
    (NewTopic("a b", 0, configs=[("nothing", "x")]), ErrorCode.INVALID_TOPIC_EXCEPTION),
]


@pytest.mark.parametrize(("wish", "code"), WISHES)
def test_a_new_topic_is_refused_with_kafkas_code(wish: NewTopic, code: ErrorCode) -> None:
    result = create(image(topic("there"), topic("a.b")), wish)[wish.name]
    assert code_of(result) is code
    if isinstance(result, Refusal):
        assert result.message
        assert len(result.message) < 400


def test_a_topic_named_twice_is_refused_once_and_the_others_are_made() -> None:
    made = controller.create_topics(
        image(), CONFIG, [NewTopic("a"), NewTopic("b"), NewTopic("a", 3)], lambda: uuid.UUID(int=7)
    )
    assert [(name, code_of(result)) for name, result in made] == [
        ("b", ErrorCode.NONE),
        ("a", ErrorCode.INVALID_REQUEST),
    ]


def test_two_new_topics_may_not_collide_either() -> None:
    made = create(image(), NewTopic("a.b"), NewTopic("a_b"))
    assert code_of(made["a.b"]) is ErrorCode.NONE
    assert code_of(made["a_b"]) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_partitions_of_one_request_are_bounded_together() -> None:
    made = create(image(), NewTopic("a", 6_000), NewTopic("b", 6_000))
    assert {code_of(result) for result in made.values()} == {ErrorCode.POLICY_VIOLATION}


A, B = topic("a", number=1), topic("b", number=2)
NOBODY = uuid.UUID(int=77)
Wish = tuple[str | None, uuid.UUID | None]


@pytest.mark.parametrize(
    ("wanted", "answers"),
    [
        ([("a", None)], [("a", None, ErrorCode.NONE)]),
        ([(None, A.id), ("b", None)], [(None, A.id, ErrorCode.NONE), ("b", None, ErrorCode.NONE)]),
        ([("c", None)], [("c", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([("a b", None)], [("a b", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([("", None)], [("", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([(None, NOBODY)], [(None, NOBODY, ErrorCode.UNKNOWN_TOPIC_ID)]),
        ([(None, None)], [(None, None, ErrorCode.INVALID_REQUEST)]),
        ([(None, None)] * 2, [(None, None, ErrorCode.INVALID_REQUEST)] * 2),
        ([("a", A.id)], [("a", A.id, ErrorCode.INVALID_REQUEST)]),
        ([("a", None), ("a", None)], [("a", None, ErrorCode.INVALID_REQUEST)]),
        ([(None, A.id), (None, A.id)], [(None, A.id, ErrorCode.INVALID_REQUEST)]),
        ([("a", None), (None, A.id)], [("a", A.id, ErrorCode.INVALID_REQUEST)]),
        ([("c", None), ("c", None)], [("c", None, ErrorCode.INVALID_REQUEST)]),
        ([(None, NOBODY)] * 3, [(None, NOBODY, ErrorCode.INVALID_REQUEST)]),
    ],
)
def test_topics_are_deleted_by_name_or_by_id(
    wanted: list[Wish], answers: list[tuple[str | None, uuid.UUID | None, ErrorCode]]
) -> None:
    results = controller.delete_topics(image(A, B), wanted)
    assert [(name, topic_id, code_of(result)) for name, topic_id, result in results] == answers


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (MorePartitions("t", 5), ErrorCode.NONE),
        (MorePartitions("t", 4, [(3, 1)]), ErrorCode.NONE),
        (MorePartitions("u", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("a b", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("t", 3), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("t", 1, [(1, 2)]), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("t", 1_000_000), ErrorCode.POLICY_VIOLATION),
        (MorePartitions("t", 5, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 4, [(1, 2), (1, 2)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 4, [(1, 9)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 4, [()]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 4, [(1, 1)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 4, [(1,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_are_added_or_refused_with_kafkas_code(wish: MorePartitions, code: ErrorCode) -> None:
    ((name, result),) = controller.create_partitions(image(topic("t", 3, (1, 2))), [wish])
    assert (name, code_of(result)) == (wish.name, code)
    if isinstance(result, TopicImage):
        assert len(result.partitions) == wish.total
        assert all(len(part.replicas) == 2 for part in result.partitions)


def test_new_partitions_get_as_many_replicas_as_those_that_move_will_have() -> None:
    moving = topic("t", 1, (3, 1, 2))
    part = moving.partitions[0]._replace(adding_replicas=(3,), removing_replicas=(1,))
    ((_, result),) = controller.create_partitions(image(moving._replace(partitions=(part,))), [MorePartitions("t", 2)])
    assert isinstance(result, TopicImage)
    assert [len(one.replicas) for one in result.partitions] == [3, 2]


def test_a_topic_that_shall_grow_twice_is_refused_once() -> None:
    results = controller.create_partitions(image(topic("t")), [MorePartitions("t", 2), MorePartitions("t", 3)])
    assert [(name, code_of(result)) for name, result in results] == [("t", ErrorCode.INVALID_REQUEST)]


def test_partitions_cannot_be_added_where_brokers_are_missing() -> None:
    cluster = image(topic("t", 1, (1, 2)), brokers={1: THREE[1]})
    ((_, result),) = controller.create_partitions(cluster, [MorePartitions("t", 2)])
    assert code_of(result) is ErrorCode.INVALID_REPLICATION_FACTOR
