"""Calls that take several names refuse one, whose letters would be names."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.client.administration.admin import Admin, AsyncAdmin
from moldau.client.partitions import names_of
from moldau.errors import ConfigError
from moldau.names import TopicPartition

Call = Callable[[AsyncAdmin, Any], Awaitable[Any]]
TAKE_SEVERAL: dict[str, Call] = {
    "create_topics": lambda admin, given: admin.create_topics(given),
    "delete_topics": lambda admin, given: admin.delete_topics(given),
    "describe_groups": lambda admin, given: admin.describe_groups(given),
    "delete_groups": lambda admin, given: admin.delete_groups(given),
    "list_groups, states": lambda admin, given: admin.list_groups(states=given),
    "list_groups, types": lambda admin, given: admin.list_groups(types=given),
    "describe_log_dirs": lambda admin, given: admin.describe_log_dirs(topics=given),
    "describe_eligible_leaders": lambda admin, given: admin.describe_eligible_leaders(given),
    "describe_user_scram_credentials": lambda admin, given: admin.describe_user_scram_credentials(given),
    "create_delegation_token": lambda admin, given: admin.create_delegation_token(renewers=given),
    "describe_delegation_tokens": lambda admin, given: admin.describe_delegation_tokens(given),
    "elect_leaders": lambda admin, given: admin.elect_leaders(given),
    "list_reassignments": lambda admin, given: admin.list_reassignments(given),
    "delete_group_offsets": lambda admin, given: admin.delete_group_offsets("group", given),
    "transactions.list": lambda admin, given: admin.transactions.list(states=given),
}


@pytest.mark.parametrize(
    "given", ["abc", b"abc", 3, [3], [{}]], ids=["text", "bytes", "number", "list of numbers", "list of dicts"]
)
@pytest.mark.parametrize("name", TAKE_SEVERAL)
def test_what_is_no_list_of_names_is_refused(bootstrap: str, name: str, given: object) -> None:
    async def call() -> None:
        async with AsyncAdmin(bootstrap) as admin:
            with pytest.raises(ConfigError):
                await TAKE_SEVERAL[name](admin, given)

    asyncio.run(call())


def test_a_text_does_not_delete_the_topics_that_its_letters_name(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topics(["x", "y", "z"])
        with pytest.raises(ConfigError, match=r"delete_topics takes a list of topics, such as .*, not 'xyz'"):
            admin.delete_topics("xyz")
        assert {"x", "y", "z"} <= set(admin.list_topics())
        admin.delete_topics(["x", "y", "z"])


def test_an_election_that_does_not_exist_is_refused(bootstrap: str) -> None:
    with Admin(bootstrap) as admin, pytest.raises(ConfigError, match="election='x' is not one of preferred, unclean"):
        admin.elect_leaders([TopicPartition("x", 0)], election="x")  # type: ignore[arg-type]


def test_names_are_taken_once_in_their_order() -> None:
    assert names_of(("b", "a", "b"), "call") == ["b", "a"]
