"""Groups and their members for clients that may not see every group or topic: as Apache Kafka 4.3.1 answers."""

import uuid
from types import GeneratorType, SimpleNamespace
from typing import Any

import pytest

from moldau.coordinators.consumer.messages import DescribedConsumerGroup, DescribedConsumerMember
from moldau.errors import ErrorCode
from moldau.handlers.groups.consumer_group_describe import HIDDEN_TOPICS, ConsumerGroupDescribe
from moldau.handlers.groups.consumer_group_heartbeat import ConsumerGroupHeartbeat
from moldau.protocol import apis
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest
from moldau.requests.access import (
    CLUSTER_NAME,
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
)
from moldau.turns import ELEMENTS, turn
from tests.coordinators.groups.scene import subscription
from tests.handlers.asking import answered
from tests.handlers.group_asking import T_ID, Group, play, topic
from tests.handlers.groups.test_groups import versions
from tests.handlers.judged import NO_OPERATIONS, asked_rights, blanked, parts_of
from tests.requests.calling import Denying, call

DENIED, HIDDEN = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
DESCRIBES_AND_CONFIGURES = 1 << 8 | 1 << 10 | 1 << 11
JOINING: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.mark.parametrize("version", versions(apis.SYNC_GROUP))
def test_a_member_without_the_right_gets_no_assignment(version: int) -> None:
    async def scene(group: Group) -> None:
        member, denying = await group.stable(), Denying((READ_GROUP, "*"))
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        answers = []
        for group_id in ("g", "none"):
            request = SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member, **named)
            answers.append(await group.ask(apis.SYNC_GROUP, version, request, authorizer=denying))
        assert answers[0] == answers[1]
        assert (answers[0].error_code, answers[0].assignment, answers[0].protocol_name) == (DENIED, b"", None)
        assert denying.logged == [(READ_GROUP, "g"), (READ_GROUP, "none")]
        assert asked_rights(denying) == parts_of(apis.SYNC_GROUP)

    play(scene)


@pytest.mark.parametrize("named", [{"protocol_type": "consumer"}, {"protocol_name": "range"}, {}])
def test_a_protocol_that_is_missing_is_said_before_rights(named: dict[str, str]) -> None:
    async def scene(group: Group) -> None:
        denying = Denying((READ_GROUP, "*"))
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", **named)
        answer = await group.ask(apis.SYNC_GROUP, 5, request, authorizer=denying)
        assert (answer.error_code, denying.asked) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, [])

    play(scene)


@pytest.mark.parametrize("version", versions(apis.DESCRIBE_GROUPS))
def test_groups_that_the_client_may_not_describe_come_first_without_anything(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.stable()
        await group.load("h", "none")
        await group.join("h", version=4)
        denying = Denying((DESCRIBE_GROUP, "g"), (DESCRIBE_GROUP, "none"))
        request = DescribeGroupsRequest(groups=["h", "g", "none"], include_authorized_operations=version >= 3)
        there, absent, shown = (await group.ask(apis.DESCRIBE_GROUPS, version, request, authorizer=denying)).groups
        assert (there.group_id, there.error_code, there.error_message) == ("g", DENIED, None)
        assert (there.group_state, there.protocol_type, there.protocol_data, there.members) == ("", "", "", [])
        assert there.authorized_operations == NO_OPERATIONS
        assert blanked(there, "g") == blanked(absent, "none")
        assert (shown.group_id, shown.error_code, shown.group_state) == ("h", 0, "Empty")
        assert denying.logged == [(DESCRIBE_GROUP, "g"), (DESCRIBE_GROUP, "none")]
        assert parts_of(apis.DESCRIBE_GROUPS) <= asked_rights(denying)

    play(scene)


@pytest.mark.parametrize("version", range(3, apis.DESCRIBE_GROUPS.high + 1))
def test_a_group_shows_what_the_client_may_do_with_it(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.stable()
        denying = Denying((READ_GROUP, "g"), (DELETE_GROUP, "g"))
        request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
        (described,) = (await group.ask(apis.DESCRIBE_GROUPS, version, request, authorizer=denying)).groups
        assert described.authorized_operations == DESCRIBES_AND_CONFIGURES
        assert denying.logged == [], "these rights are only probed"

    play(scene)


@pytest.mark.parametrize("version", versions(apis.LIST_GROUPS))
def test_groups_that_the_client_may_not_describe_are_not_listed(version: int) -> None:
    async def scene(group: Group) -> None:
        for group_id in ("g", "h", "i"):
            await group.stable(group_id)

        async def listed(denying: Denying) -> tuple[int, list[str]]:
            answer = await group.ask(apis.LIST_GROUPS, version, ListGroupsRequest(), authorizer=denying)
            return answer.error_code, sorted(one.group_id for one in answer.groups)

        some = Denying((DESCRIBE_CLUSTER, CLUSTER_NAME), (DESCRIBE_GROUP, "g"))
        assert await listed(some) == (0, ["h", "i"])
        assert await listed(Denying((DESCRIBE_CLUSTER, CLUSTER_NAME), (DESCRIBE_GROUP, "*"))) == (0, [])
        everything = Denying((DESCRIBE_GROUP, "*"))
        assert await listed(everything) == (0, ["g", "h", "i"])
        assert everything.asked == [(DESCRIBE_CLUSTER, CLUSTER_NAME)], "who may describe the cluster sees all"
        assert some.logged == []
        assert asked_rights(some) == parts_of(apis.LIST_GROUPS)

    play(scene)


@pytest.mark.parametrize("version", versions(apis.DELETE_GROUPS))
def test_groups_that_the_client_may_not_delete_stay_and_come_last(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g", "h", "none")
        for group_id in ("g", "h"):
            await group.join(group_id, version=4)
        denying = Denying((DELETE_GROUP, "g"), (DELETE_GROUP, "none"))
        request = DeleteGroupsRequest(groups_names=["none", "g", "h", "g"])
        results = (await group.ask(apis.DELETE_GROUPS, version, request, authorizer=denying)).results
        assert [(one.group_id, one.error_code) for one in results] == [("h", 0), ("none", DENIED), ("g", DENIED)]
        assert blanked(results[1], "none") == blanked(results[2], "g")
        assert [one.group_id for one in group.coordinator.listed()] == ["g"]
        assert denying.asked == [(DELETE_GROUP, "none"), (DELETE_GROUP, "g"), (DELETE_GROUP, "h")], (
            "once for each group"
        )
        assert denying.logged == denying.asked[:2]
        assert asked_rights(denying) == parts_of(apis.DELETE_GROUPS)

    play(scene)


def beat(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(**{**JOINING, **fields})


@pytest.mark.parametrize("version", versions(apis.CONSUMER_GROUP_HEARTBEAT))
@pytest.mark.parametrize("hidden", ["t", "gone"])
def test_a_member_that_subscribes_to_a_topic_it_may_not_describe_is_refused(version: int, hidden: str) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        denying = Denying((DESCRIBE_TOPIC, hidden))
        request = beat(subscribed_topic_names=["u", hidden, "u"])
        said = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, version, request, authorizer=denying)
        assert (said.error_code, said.error_message) == (HIDDEN, None)
        assert (said.member_id, said.member_epoch, said.heartbeat_interval_ms, said.assignment) == (None, 0, 0, None)
        assert list(group.coordinator.listed()) == []
        assert denying.asked == [(DESCRIBE_TOPIC, "u"), (DESCRIBE_TOPIC, hidden)]
        assert denying.logged == [(DESCRIBE_TOPIC, hidden)]
        assert asked_rights(denying) == parts_of(apis.CONSUMER_GROUP_HEARTBEAT)

    play(scene)


@pytest.mark.parametrize("version", versions(apis.CONSUMER_GROUP_HEARTBEAT))
@pytest.mark.parametrize(
    "fields",
    [{"group_id": ""}, {"rebalance_timeout_ms": -1}, {"server_assignor": "mine"}, {"member_epoch": 7}],
    ids=str,
)
def test_topics_are_judged_before_anything_else_in_a_heartbeat(version: int, fields: dict[str, Any]) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        denying = Denying((DESCRIBE_TOPIC, "*"))
        said = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, version, beat(**fields), authorizer=denying)
        assert said.error_code == HIDDEN
        known = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, version, beat(**fields), authorizer=Denying())
        assert known.error_code not in (0, HIDDEN)

    play(scene)


@pytest.mark.parametrize("version", versions(apis.CONSUMER_GROUP_HEARTBEAT))
def test_a_heartbeat_that_names_no_topics_asks_for_no_right(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        joined = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, version, beat(), authorizer=Denying())
        assert joined.error_code == 0
        denying = Denying((DESCRIBE_TOPIC, "*"))
        for names in (None, []):
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id="m", member_epoch=joined.member_epoch, subscribed_topic_names=names
            )
            said = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, version, request, authorizer=denying)
            assert (said.error_code, denying.asked) == (0, [])

    play(scene)


@pytest.mark.re2
@pytest.mark.parametrize("by", ["itself", "a member of the classic protocol"])
def test_an_expression_matches_no_topic_that_the_client_may_not_describe(by: str) -> None:
    """Also where another member's request is the first after the topics have changed."""

    async def scene(group: Group) -> None:
        group.image = group.image.with_topics({"tt": topic("tt", uuid.UUID(int=80), 1)})
        await group.load("g")
        denying = Denying((DESCRIBE_TOPIC, "tt"), (DESCRIBE_TOPIC, "ttt"))
        request = beat(subscribed_topic_names=None, subscribed_topic_regex="t+")
        joined = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, request, authorizer=denying)
        assert [one.topic_id for one in joined.assignment.topic_partitions] == [T_ID]
        assert denying.logged == []

        async def stays() -> Any:
            nonlocal joined
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id="m", member_epoch=joined.member_epoch, topic_partitions=[]
            )
            joined = await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, request, authorizer=denying)
            return joined.assignment

        group.image = group.image.with_topics({"ttt": topic("ttt", uuid.UUID(int=81), 1)})
        if by != "itself":
            protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription("t"))]
            joining = JoinGroupRequest(
                group_id="g", session_timeout_ms=6000, rebalance_timeout_ms=9000, protocol_type="consumer",
                protocols=protocols,
            )  # fmt: skip
            assert (await group.ask(apis.JOIN_GROUP, 3, joining, authorizer=denying)).error_code == 0
        assert await stays() is None or {one.topic_id for one in joined.assignment.topic_partitions} <= {T_ID}
        live = group.coordinator._runtime.machine(group.coordinator.partition_of("g")).consumer.live["g"]
        assert live.expressions == {"t+": ("t",)}
        denying.deny()
        group.image = group.image.with_topics({})
        await stays()
        assert live.expressions == {"t+": ("t", "tt", "ttt")}

    play(scene)


def test_very_many_topics_of_a_heartbeat_are_judged_in_turns() -> None:
    async def scene(group: Group) -> None:
        denying = Denying()
        request = beat(subscribed_topic_names=[f"t{number}" for number in range(3 * ELEMENTS)])
        asked = call(apis.CONSUMER_GROUP_HEARTBEAT, 1, authorizer=denying)
        answer: Any = turn(ConsumerGroupHeartbeat(group.coordinator)(request, asked))
        assert isinstance(answer, GeneratorType)
        assert len(denying.asked) <= ELEMENTS + 1
        await answered(answer)
        assert len(denying.asked) == 3 * ELEMENTS

    play(scene)


def describe(*group_ids: str, **fields: Any) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(group_ids), **fields)


async def consuming(group: Group, group_id: str = "g", name: str = "t") -> None:
    """A group with one member, which has the topic."""
    await group.load(group_id)
    request = beat(group_id=group_id, member_id=f"m-{group_id}", subscribed_topic_names=[name])
    assert (await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, request)).assignment.topic_partitions


@pytest.mark.parametrize("version", versions(apis.CONSUMER_GROUP_DESCRIBE))
def test_consumer_groups_that_the_client_may_not_describe_come_first_without_anything(version: int) -> None:
    async def scene(group: Group) -> None:
        await consuming(group)
        await consuming(group, "h")
        await group.load("none")
        denying = Denying((DESCRIBE_GROUP, "g"), (DESCRIBE_GROUP, "none"), (DESCRIBE_GROUP, "not-ours"))
        request = describe("h", "", "g", "none", "not-ours", include_authorized_operations=True)
        said = (await group.ask(apis.CONSUMER_GROUP_DESCRIBE, version, request, authorizer=denying)).groups
        *refused, nameless, shown = said
        assert [one.group_id for one in refused] == ["g", "none", "not-ours"]
        assert (refused[0].error_code, refused[0].error_message) == (DENIED, None)
        assert (refused[0].group_state, refused[0].members) == ("", [])
        assert refused[0].authorized_operations == NO_OPERATIONS
        assert blanked(refused[0], "g") == blanked(refused[1], "none") == blanked(refused[2], "not-ours")
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
        assert (shown.group_id, shown.error_code, len(shown.members)) == ("h", 0, 1)
        assert denying.logged == [(DESCRIBE_GROUP, "g"), (DESCRIBE_GROUP, "none"), (DESCRIBE_GROUP, "not-ours")]

    play(scene)


@pytest.mark.parametrize("version", versions(apis.CONSUMER_GROUP_DESCRIBE))
def test_a_consumer_group_with_a_topic_that_the_client_may_not_describe_shows_nothing(version: int) -> None:
    async def scene(group: Group) -> None:
        group.image = group.image.with_topics({"u": topic("u", uuid.UUID(int=79), 1)})
        await consuming(group)
        await consuming(group, "h", "u")
        denying = Denying((DESCRIBE_TOPIC, "t"))
        request = describe("g", "h")
        hidden, shown = (await group.ask(apis.CONSUMER_GROUP_DESCRIBE, version, request, authorizer=denying)).groups
        assert (hidden.group_id, hidden.error_code, hidden.members) == ("g", HIDDEN, [])
        assert hidden.error_message == HIDDEN_TOPICS
        assert (hidden.group_state, hidden.group_epoch, hidden.assignor_name) == ("", 0, "")
        assert (shown.group_id, shown.error_code, len(shown.members)) == ("h", 0, 1)
        assert denying.asked[1] == (DESCRIBE_TOPIC, "t") and denying.asked.count((DESCRIBE_TOPIC, "u")) == 1
        assert denying.logged == [(DESCRIBE_TOPIC, "t")]
        assert asked_rights(denying) == parts_of(apis.CONSUMER_GROUP_DESCRIBE)

    play(scene)


@pytest.mark.parametrize("has", ["assigned", "target"])
def test_topics_that_a_member_has_or_will_have_count(has: str) -> None:
    async def scene(group: Group) -> None:
        own = {"assigned": {}, "target": {}, has: {T_ID: {0}}}
        member = DescribedConsumerMember("m", None, None, 1, "c", "/h", ("t",), "", is_classic=False, **own)
        described = DescribedConsumerGroup("Stable", 1, 1, "uniform", [member])
        coordinator: Any = SimpleNamespace(
            settings=group.coordinator.settings, describe_consumers=lambda group_id: described
        )
        handler = ConsumerGroupDescribe(coordinator, lambda: group.image)
        asked = call(apis.CONSUMER_GROUP_DESCRIBE, 1, authorizer=Denying((DESCRIBE_TOPIC, "t")))
        assert (await answered(handler(describe("g"), asked))).groups[0].error_code == HIDDEN

    play(scene)


@pytest.mark.parametrize("version", versions(apis.CONSUMER_GROUP_DESCRIBE))
def test_a_consumer_group_shows_what_the_client_may_do_with_it(version: int) -> None:
    async def scene(group: Group) -> None:
        await consuming(group)
        request = describe("g", include_authorized_operations=True)
        denying = Denying((READ_GROUP, "g"), (DELETE_GROUP, "g"))
        for authorizer, operations in ((denying, DESCRIBES_AND_CONFIGURES), (None, 3400)):
            (said,) = (await group.ask(apis.CONSUMER_GROUP_DESCRIBE, version, request, authorizer=authorizer)).groups
            assert said.authorized_operations == operations
        assert denying.logged == []

    play(scene)
