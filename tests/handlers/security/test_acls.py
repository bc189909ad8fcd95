"""DescribeAcls, CreateAcls and DeleteAcls of a whole broker, and what they change for its clients."""

from pathlib import Path
from typing import Any

import pytest

from harness.tiers import sized
from moldau.errors import ErrorCode
from moldau.protocol.apis import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, METADATA
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.living import Living, Wire, run
from tests.handlers.longest_turn import answered_in_turns

ANY, TOPIC, CLUSTER, LITERAL, PREFIXED, ALL, READ, ALTER, DESCRIBE, DENY, ALLOW = 1, 2, 4, 3, 4, 2, 3, 7, 8, 2, 3
MANY = sized(3_000, 4_000, 10_000)
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
GUARDED = {"authorizer_class_name": STANDARD, "super_users": "User:ANONYMOUS"}
NOBODY_IS_SUPER = {"authorizer_class_name": STANDARD, "super_users": ""}


def creation(name: str = "t", principal: str = "User:ann", **other: Any) -> AclCreation:
    values = {
        "resource_type": TOPIC, "resource_name": name, "resource_pattern_type": LITERAL, "principal": principal,
        "host": "*", "operation": READ, "permission_type": ALLOW, **other,
    }  # fmt: skip
    return AclCreation(**values)


async def create(wire: Wire, *creations: AclCreation) -> list[tuple[int, str]]:
    response = await wire.ask(CREATE_ACLS, 3, CreateAclsRequest(creations=list(creations)))
    return [(one.error_code, one.error_message) for one in response.results]


def filtering(**other: Any) -> dict[str, Any]:
    none = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    any_of = dict.fromkeys(("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), ANY)
    return {**none, **any_of, **other}


async def described(wire: Wire, version: int = 3, **other: Any) -> list[tuple[int, str, int, list[str]]]:
    response = await wire.ask(DESCRIBE_ACLS, version, DescribeAclsRequest(**filtering(**other)))
    assert (response.error_code, response.error_message) == (0, "")
    return [
        (one.resource_type, one.resource_name, one.pattern_type, [acl.principal for acl in one.acls])
        for one in response.resources
    ]


def test_acls_are_made_described_and_deleted(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        made = [creation(), creation("t", "User:bob"), creation("p", resource_pattern_type=PREFIXED), creation()]
        assert await create(wire, *made) == [(0, "")] * 4
        literal, prefixed = (TOPIC, "t", LITERAL, ["User:ann", "User:bob"]), (TOPIC, "p", PREFIXED, ["User:ann"])
        for version in (1, 2, 3):
            assert await described(wire, version) == [prefixed, literal]
        assert await described(wire, principal_filter="User:bob") == [(TOPIC, "t", LITERAL, ["User:bob"])]
        assert await described(wire, pattern_type_filter=2, resource_name_filter="pq") == [prefixed]
        filters = [filtering(principal_filter="User:ann"), filtering(resource_name_filter="nothing")]
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**one) for one in filters])
        one, nothing = (await wire.ask(DELETE_ACLS, 3, request)).filter_results
        assert (one.error_code, one.error_message) == (nothing.error_code, nothing.error_message) == (0, None)
        assert [(acl.resource_name, acl.principal, acl.error_code) for acl in one.matching_acls] == [
            ("p", "User:ann", 0), ("t", "User:ann", 0)
        ]  # fmt: skip
        assert nothing.matching_acls == []
        assert await described(wire) == [(TOPIC, "t", LITERAL, ["User:bob"])]

    run(scenario, tmp_path, **GUARDED)


def test_each_creation_is_judged_by_itself(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        wrong = [
            creation(""),
            creation("mine", resource_type=CLUSTER),
            creation(principal="ann"),
            creation(resource_pattern_type=2),
            creation(operation=ANY),
            creation(resource_type=99),
        ]
        results = await create(wire, creation("a"), *wrong, creation("b"))
        assert [code for code, _ in results] == [0, *[ErrorCode.INVALID_REQUEST] * len(wrong), 0]
        assert results[1][1] == "Invalid empty resource name"
        assert [name for _, name, _, _ in await described(wire)] == ["a", "b"]

    run(scenario, tmp_path, **GUARDED)


@pytest.mark.parametrize("api", [DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS], ids=lambda api: api.name)
def test_a_value_that_means_unknown_closes_the_connection(api: Any, tmp_path: Path) -> None:
    requests = {
        DESCRIBE_ACLS: DescribeAclsRequest(**filtering(operation=0)),
        CREATE_ACLS: CreateAclsRequest(creations=[creation(), creation(permission_type=0)]),
        DELETE_ACLS: DeleteAclsRequest(filters=[DeleteAclsFilter(**filtering(pattern_type_filter=0))]),
    }

    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        wire.send(api, 3, requests[api])
        assert await wire.is_closed()

    run(scenario, tmp_path, **GUARDED)


def test_acls_decide_about_the_next_request_and_are_there_after_a_restart(tmp_path: Path) -> None:
    async def topic_error(wire: Wire) -> int:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
        return int((await wire.ask(METADATA, 12, request)).topics[0].error_code)

    async def before(alive: Living) -> None:
        await alive.make("t")
        wire = await alive.dial()
        denied = creation("t", "User:ANONYMOUS", operation=DESCRIBE, permission_type=DENY)
        everything = [
            creation("*", "User:*", operation=ALL),
            creation("kafka-cluster", "User:*", resource_type=CLUSTER, operation=ALL),
        ]
        assert await create(wire, denied, *everything) == [(0, "")] * 3
        assert await topic_error(wire) == 0  # a super user

    async def after(alive: Living) -> None:
        wire = await alive.dial()
        assert await topic_error(wire) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**filtering(permission_type=DENY))])
        assert len((await wire.ask(DELETE_ACLS, 3, request)).filter_results[0].matching_acls) == 1
        assert await topic_error(wire) == 0

    run(before, tmp_path, **GUARDED)
    run(after, tmp_path, **NOBODY_IS_SUPER)


def test_nobody_may_change_acls_where_none_allows_it(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        [(code, _)] = await create(wire, creation())
        assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        response = await wire.ask(DESCRIBE_ACLS, 3, DescribeAclsRequest(**filtering()))
        assert (response.error_code, response.resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])

    run(scenario, tmp_path, **NOBODY_IS_SUPER)


def test_thousands_of_acls_are_made_described_and_deleted_in_turns(tmp_path: Path) -> None:
    creations = [creation(f"t{number}") for number in range(MANY)]
    everything = DeleteAclsRequest(filters=[DeleteAclsFilter(**filtering())])

    async def scenario(alive: Living) -> None:
        made = await answered_in_turns(alive, CREATE_ACLS, CreateAclsRequest(creations=creations))
        assert {one.error_code for one in made.results} == {0}
        known = await answered_in_turns(alive, DESCRIBE_ACLS, DescribeAclsRequest(**filtering()))
        deleted = await answered_in_turns(alive, DELETE_ACLS, everything)
        left = await answered_in_turns(alive, DESCRIBE_ACLS, DescribeAclsRequest(**filtering()))
        assert (len(known.resources), len(left.resources)) == (MANY, 0)
        assert len(deleted.filter_results[0].matching_acls) == MANY

    run(scenario, tmp_path, **GUARDED)
