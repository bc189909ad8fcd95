"""What brokers report about the log folders of their partitions, and what the controller makes of it."""

import uuid

import pytest

from moldau.cluster.controlling.assigned_directories import TOPICS_AT_ONCE, InDirectory, assigned, need_election
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.directory_messages import from_request, outcomes, to_request, to_response
from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode, KafkaError
from moldau.metadata_store.steps import in_steps
from moldau.names import short_id
from moldau.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from tests.cluster.several import Members, play

LEFT, RIGHT = (short_id(uuid.UUID(int=number << 64)) for number in (1, 2))
T, U, GONE = (uuid.UUID(int=number) for number in (5, 6, 7))


def topic(name: str, topic_id: uuid.UUID, *replicas: tuple[int, ...]) -> TopicImage:
    return TopicImage(name, topic_id, tuple(PartitionImage(who[0], 0, who, who) for who in replicas), {})


IMAGE = Image("c").with_topics({"t": topic("t", T, (1, 2), (2,), (1,)), "u": topic("u", U, (2,))})


def test_the_folders_of_one_replica_leave_those_of_the_others_alone() -> None:
    found = [InDirectory(T, 0, LEFT), InDirectory(T, 2, RIGHT)]
    [changed], errors = assigned(IMAGE, 1, found)
    assert [part.directories for part in changed.partitions] == [(LEFT, ""), (), (RIGHT,)]
    assert errors == [ErrorCode.NONE] * 2
    again = IMAGE.with_topics({"t": changed})
    assert assigned(again, 1, found) == ([], errors)
    [both], _ = assigned(again, 2, [InDirectory(T, 0, RIGHT)])
    assert both.partitions[0].directories == (LEFT, RIGHT)


def test_what_a_broker_does_not_have_is_refused_for_each_partition() -> None:
    found = [InDirectory(GONE, 0, LEFT), InDirectory(T, 3, LEFT), InDirectory(U, 0, LEFT), InDirectory(T, -1, LEFT)]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert assigned(IMAGE, 1, found) == (
        [], [ErrorCode.UNKNOWN_TOPIC_ID, unknown, ErrorCode.NOT_LEADER_OR_FOLLOWER, unknown]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("leader", "isr", "directory", "expected"),
    [
        (1, (1,), LEFT, False),
        (1, (1,), RIGHT, True),
        (-1, (), LEFT, True),
        (-1, (1,), LEFT, True),
        (-1, (1,), RIGHT, False),
        (2, (2,), RIGHT, False),
    ],
)
def test_leaders_are_elected_when_a_report_brings_a_replica_to_another_folder(
    leader: int, isr: tuple[int, ...], directory: str, expected: bool
) -> None:
    part = PartitionImage(leader, 0, (1, 2), isr, (directory, ""))
    broker = BrokerImage(1, (), None, (LEFT,))
    image = Image("c", brokers={1: broker}).with_topics({"t": TopicImage("t", T, (part,), {})})
    assert need_election(image, 1) is expected
    assert not need_election(image, 2)


def test_a_report_and_its_answer_are_read_as_they_were_meant() -> None:
    found = [InDirectory(T, 0, LEFT), InDirectory(U, 1, LEFT), InDirectory(T, 2, RIGHT), InDirectory(T, 4, LEFT)]
    request = to_request(3, 17, found)
    assert (request.broker_id, request.broker_epoch) == (3, 17)
    assert sorted(from_request(request)) == sorted(found)
    said = {one: ErrorCode(number) for number, one in enumerate(from_request(request))}
    response = to_response(request, list(said.values()))
    assert outcomes(response, found) == [said[one] for one in found]
    assert outcomes(AssignReplicasToDirsResponse(), found[:1]) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    with pytest.raises(KafkaError) as refused:
        outcomes(AssignReplicasToDirsResponse(error_code=ErrorCode.NOT_CONTROLLER), found)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER


def test_the_folders_of_many_topics_are_recorded_in_few_changes() -> None:
    async def scenario(members: Members) -> None:
        member = await members.join(1)
        controller = await members.controller()
        count = 2 * TOPICS_AT_ONCE + 1
        await controller.acting.topics.create([NewTopic(f"t{number}") for number in range(count)])
        before = members.store._zxid
        found = [InDirectory(one.id, 0, LEFT) for one in controller.image.topics.values()]
        errors = await controller.acting.assign_directories(1, member.membership.epoch, found)
        assert errors == [ErrorCode.NONE] * count
        assert members.store._zxid - before == 3
        assert all(one.partitions[0].directories == (LEFT,) for one in controller.image.topics.values())

    play(scenario)


def test_log_folders_are_not_held_together_with_those_of_another_topic() -> None:
    topics = [topic(f"t{number}", uuid.UUID(int=number), (1,)) for number in range(1200)]
    placed = [one._replace(partitions=(one.partitions[0].with_directory(1, LEFT),)) for one in topics]
    steps = [step for old, new in zip(topics, placed, strict=True) for step in layout.topic_changed(old, new, 1)]
    assert [len(together) for together in in_steps(steps)] == [500, 500, 200]
    created = [step.path for step in in_steps(layout.topic_created(placed[0], 1))[0]][:3]
    assert created == ["/config/topics/t0", "/moldau/directories/t0", "/brokers/topics/t0"]


def test_a_broker_of_an_earlier_registration_is_refused() -> None:
    async def scenario(members: Members) -> None:
        member = await members.join(1)
        controller = await members.controller()
        await members.shown(lambda image: 1 in image.brokers)
        for broker, epoch in ((1, member.membership.epoch - 1), (2, 1)):
            with pytest.raises(KafkaError) as refused:
                await controller.acting.assign_directories(broker, epoch, [InDirectory(T, 0, LEFT)])
            assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH

    play(scenario)
