"""ListGroups, DescribeGroups, DeleteGroups and FindCoordinator say what Apache Kafka 4.3.1 said when it was asked."""

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.repetitions import NAMED_MAX
from moldau.protocol import apis
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from tests.coordinators.groups.scene import subscription
from tests.handlers.group_asking import Group, play
from tests.handlers.groups.test_groups import versions

NO_OPERATIONS = -2147483648


@pytest.mark.parametrize("version", versions(apis.LIST_GROUPS))
def test_groups_are_listed_and_filtered(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.stable()
        await group.load("ret")
        await group.join("ret", version=4)

        async def listed(**filters: list[str]) -> list[str]:
            return [
                g.group_id for g in (await group.ask(apis.LIST_GROUPS, version, ListGroupsRequest(**filters))).groups
            ]

        assert sorted(await listed()) == ["g", "ret"]
        [stable] = [
            g for g in (await group.ask(apis.LIST_GROUPS, version, ListGroupsRequest())).groups if g.group_id == "g"
        ]
        assert (stable.protocol_type, stable.group_state, stable.group_type) == (
            "consumer",
            "Stable" if version >= 4 else "",
            "classic" if version >= 5 else "",
        )
        if version >= 4:
            assert await listed(states_filter=["stable", "Nonsense"]) == ["g"]
            assert await listed(states_filter=["Nonsense"]) == []
        if version >= 5:
            assert sorted(await listed(types_filter=["CLASSIC"])) == ["g", "ret"]
            assert await listed(types_filter=["consumer"]) == []

    play(scene)


@pytest.mark.parametrize("version", versions(apis.DESCRIBE_GROUPS))
def test_a_stable_group_is_described_with_all_it_has(version: int) -> None:
    async def scene(group: Group) -> None:
        member = await group.stable()
        await group.load("ret")
        request = DescribeGroupsRequest(groups=["g", "ret", "not-ours"], include_authorized_operations=version >= 3)
        stable, dead, elsewhere = (await group.ask(apis.DESCRIBE_GROUPS, version, request)).groups
        assert (stable.error_code, stable.group_state, stable.protocol_type, stable.protocol_data) == (
            0,
            "Stable",
            "consumer",
            "range",
        )
        assert stable.authorized_operations == (3400 if version >= 3 else NO_OPERATIONS)
        [one] = stable.members
        assert (one.member_id, one.client_id, one.client_host) == (member, "asker", "/127.0.0.1")
        assert (one.member_metadata, one.member_assignment) == (subscription("t"), b"all")
        operations = 3400 if 3 <= version < 6 else NO_OPERATIONS  # since version 6 it is an error
        assert (dead.group_state, dead.members, dead.authorized_operations) == ("Dead", [], operations)
        assert dead.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
        assert dead.error_message == ("Group ret not found." if version >= 6 else None)
        assert elsewhere.error_code == ErrorCode.NOT_COORDINATOR

    play(scene)


def test_a_group_is_described_as_often_as_kafka_does_it_up_to_a_bound() -> None:
    async def scene(group: Group) -> None:
        await group.stable()
        request = DescribeGroupsRequest(groups=["g"] * (NAMED_MAX + 1))
        *described, refused = (await group.ask(apis.DESCRIBE_GROUPS, 6, request)).groups
        assert all(len(one.members) == 1 for one in described)
        assert (refused.group_id, refused.error_code, refused.members) == ("g", ErrorCode.INVALID_REQUEST, [])

    play(scene)


def test_a_group_between_two_assignments_shows_no_metadata() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        await group.join()
        [described] = (await group.ask(apis.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=["g"]))).groups
        assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
        assert (described.members[0].member_metadata, described.members[0].member_assignment) == (b"", b"")

    play(scene)


@pytest.mark.parametrize("version", versions(apis.DELETE_GROUPS))
def test_only_empty_groups_are_deleted(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.stable()
        await group.load("ret", "never")
        await group.join("ret", version=4)
        request = DeleteGroupsRequest(groups_names=["g", "ret", "ret", "never", "not-ours"])
        results = (await group.ask(apis.DELETE_GROUPS, version, request)).results
        assert [(r.group_id, ErrorCode(r.error_code).name) for r in results] == [
            ("g", "NON_EMPTY_GROUP"),
            ("ret", "NONE"),
            ("never", "GROUP_ID_NOT_FOUND"),
            ("not-ours", "NOT_COORDINATOR"),
        ]
        assert {r.error_message for r in results} == {None}, "as Kafka 4.4.0: these codes say everything"

    play(scene)


@pytest.mark.parametrize("version", versions(apis.FIND_COORDINATOR))
def test_the_first_question_makes_the_offsets_topic_and_names_the_broker(version: int) -> None:
    async def scene(group: Group) -> None:
        request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])
        found = await group.ask(apis.FIND_COORDINATOR, version, request)
        if version < 4:
            assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "here", 9092)
            assert found.error_message == ("NONE" if version >= 1 else "")
        else:
            assert [(c.key, c.error_code, c.node_id, c.host, c.port) for c in found.coordinators] == [
                ("g", 0, 1, "here", 9092),
                ("h", 0, 1, "here", 9092),
            ]

    play(scene)


@pytest.mark.parametrize("version", versions(apis.FIND_COORDINATOR))
@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (0, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (2, ErrorCode.INVALID_REQUEST),
        (-7, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_found_is_answered_with_its_error(version: int, key_type: int, error: ErrorCode) -> None:
    async def scene(group: Group) -> None:
        group.creation_error = ErrorCode.INVALID_REPLICATION_FACTOR
        request = FindCoordinatorRequest(key="g", coordinator_keys=["g"], key_type=key_type)
        found = await group.ask(apis.FIND_COORDINATOR, version, request)
        one = found if version < 4 else found.coordinators[0]
        told = error if version >= 1 else ErrorCode.COORDINATOR_NOT_AVAILABLE  # version 0 asks for groups only
        assert (ErrorCode(one.error_code), one.node_id, one.host, one.port) == (told, -1, "", -1)

    play(scene)


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        ("PLAINTEXT", (ErrorCode.NONE, 1, "here", 9092)),
        ("OUTSIDE", (ErrorCode.NONE, 1, "example.org", 19092)),
        ("NOT_ADVERTISED", (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)),
    ],
)
def test_a_coordinator_has_the_address_of_the_clients_listener(
    listener: str, expected: tuple[ErrorCode, int, str, int]
) -> None:
    async def scene(group: Group) -> None:
        request = FindCoordinatorRequest(coordinator_keys=["g"])
        (found,) = (await group.ask(apis.FIND_COORDINATOR, 6, request, listener)).coordinators
        assert (found.error_code, found.node_id, found.host, found.port) == expected

    play(scene)


def test_an_empty_list_of_keys_finds_nothing() -> None:
    async def scene(group: Group) -> None:
        assert (await group.ask(apis.FIND_COORDINATOR, 6, FindCoordinatorRequest())).coordinators == []

    play(scene)
