"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: what a request must have, and what is said of what it lacks."""

import uuid
from typing import Any

import pytest

from moldau.cluster.state.image import Image
from moldau.config import GroupConfig
from moldau.coordinators.consumer.messages import ConsumerGroupSettings
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.errors import ErrorCode
from moldau.handlers.groups.consumer_group_describe import ConsumerGroupDescribe
from moldau.handlers.groups.consumer_group_heartbeat import ConsumerGroupHeartbeat
from moldau.handlers.repetitions import NAMED_MAX
from moldau.protocol import apis, codec
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from moldau.runtime import Runtime
from tests.coordinators.fake_log import PARTITIONS, FakeLog, LoopClock, in_virtual_time
from tests.handlers.asking import answered
from tests.requests.calling import call

JOINING: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
OWN = [TopicPartitions(topic_id=uuid.UUID(int=1), partitions=[0])]
ONE_MEMBER = ConsumerGroupSettings(max_size=1)


def answers(*asked: tuple[apis.Api, int, Any], settings: ConsumerGroupSettings | None = None) -> list[Any]:
    """What a coordinator that leads every group says to these requests, as the wire carries it."""

    async def scene() -> list[Any]:
        own = GroupCoordinatorSettings(consumer=settings or ConsumerGroupSettings())
        groups = GroupCoordinator(own, FakeLog(), Runtime(clock=LoopClock()), PARTITIONS)
        heartbeat, description = ConsumerGroupHeartbeat(groups), ConsumerGroupDescribe(groups, lambda: image)
        said = []
        groups.lead(groups.partition_of("g"), 0)
        await groups.loaded("g")
        for api, version, request in asked:
            handler: Any = heartbeat if api is apis.CONSUMER_GROUP_HEARTBEAT else description
            response = handler(request, call(api, version))
            whole = codec.write_reply(api, version, 1, await answered(response))
            said.append(codec.read_reply(api, version, memoryview(whole)[4:]))
        await groups.stop()
        return said

    image = Image("cluster")
    return in_virtual_time(scene())


def beat(version: int = 1, **fields: Any) -> tuple[apis.Api, int, Any]:
    return apis.CONSUMER_GROUP_HEARTBEAT, version, ConsumerGroupHeartbeatRequest(**{**JOINING, **fields})


def describe(*group_ids: str, version: int = 1) -> tuple[apis.Api, int, Any]:
    return apis.CONSUMER_GROUP_DESCRIBE, version, ConsumerGroupDescribeRequest(group_ids=list(group_ids))


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (1, {"member_id": ""}),
        (0, {"member_id": "", "member_epoch": 1}),
        (0, {"member_id": "", "member_epoch": -1}),
        (0, {"group_id": ""}),
        (0, {"instance_id": ""}),
        (0, {"rack_id": ""}),
        (1, {"member_epoch": -3}),
        (1, {"member_epoch": -2}),
        (1, {"rebalance_timeout_ms": -1}),
        (1, {"topic_partitions": None}),
        (1, {"topic_partitions": OWN}),
        (0, {"subscribed_topic_names": None}),
        (1, {"member_id": "m" * 32_768}),
        (1, {"subscribed_topic_regex": "x" * 32_768}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(version: int, fields: dict[str, Any]) -> None:
    (said,) = answers(beat(version, **fields))
    assert said.error_code == ErrorCode.INVALID_REQUEST
    assert said.error_message.endswith(".")
    assert (said.member_id, said.member_epoch, said.assignment) == (None, 0, None)


def test_before_version_1_the_coordinator_makes_ids_that_are_missing() -> None:
    first, second, named = answers(beat(0, member_id=""), beat(0, member_id=""), beat(0, member_id="own"))
    assert first.error_code == second.error_code == named.error_code == ErrorCode.NONE
    assert len({first.member_id, second.member_id, ""}) == 3
    assert named.member_id == "own"


def test_an_assignor_nobody_has_is_refused() -> None:
    (said,) = answers(beat(server_assignor="mine"))
    assert said.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    (known,) = answers(beat(server_assignor="range"))
    assert known.error_code == ErrorCode.NONE
    (left_out,) = answers(beat(server_assignor="range"), settings=ConsumerGroupSettings(assignors=("uniform",)))
    assert left_out.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_group_takes_no_more_members_than_it_may_have() -> None:
    said = answers(
        beat(member_id="a"), beat(member_id="b"), beat(member_id="a"), settings=ConsumerGroupSettings(max_size=1)
    )
    assert [one.error_code for one in said] == [0, ErrorCode.GROUP_MAX_SIZE_REACHED, 0]


def test_members_hear_the_interval_of_their_heartbeats() -> None:
    (said,) = answers(
        beat(), settings=ConsumerGroupSettings(of_group=lambda _: GroupConfig(consumer_heartbeat_interval_ms=123))
    )
    assert said.heartbeat_interval_ms == 123


def test_who_is_told_of_as_what_it_is() -> None:
    _, said = answers(beat(instance_id="i", rack_id="r"), describe("g", "", "other"))
    (nameless, group, other) = said.groups
    assert (nameless.error_code, other.error_code) == (ErrorCode.INVALID_GROUP_ID, ErrorCode.NOT_COORDINATOR)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable",
        2,
        2,
        "uniform",
    )
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
    assert (member.client_id, member.client_host, member.member_type) == ("asker", "/127.0.0.1", 1)


def test_a_group_is_described_as_often_as_kafka_does_it_up_to_a_bound() -> None:
    _, said = answers(beat(), describe(*["g"] * (NAMED_MAX + 1)))
    *described, refused = said.groups
    assert all(len(one.members) == 1 for one in described)
    assert (refused.group_id, refused.error_code, refused.members) == ("g", ErrorCode.INVALID_REQUEST, [])


def test_a_broker_without_the_newer_protocol_says_so() -> None:
    beaten, described = answers(beat(), describe("g"), settings=ConsumerGroupSettings(enabled=False))
    assert beaten.error_code == described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
