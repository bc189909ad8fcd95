"""SCRAM credentials by API: what Kafka 4.3.1 answers, and what is in the store then."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.users.credentials import credential_of, user_path
from moldau.errors import ErrorCode
from moldau.metadata_store.store import Set, node_at
from moldau.protocol.apis import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.handlers.living import Living
from tests.handlers.living import run as alive_on

SHA256, SHA512 = 1, 2
NONE, MISSING, TWICE, BAD, UNKNOWN = (
    ErrorCode.NONE,
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.DUPLICATE_RESOURCE,
    ErrorCode.UNACCEPTABLE_CREDENTIAL,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
)


def made(name: str, mechanism: int = SHA256, iterations: int = 4096, salt: bytes = b"salt") -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=b"hashed"
    )


def gone(name: str, mechanism: int = SHA256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


async def alter(alive: Living, *changes: Any) -> list[tuple[str, ErrorCode, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in changes if isinstance(one, ScramCredentialUpsertion)],
    )
    answer = await (await alive.dial()).ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    return [(one.user, ErrorCode(one.error_code), one.error_message) for one in answer.results]


async def described(alive: Living, *names: str) -> dict[str, Any]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
    answer = await (await alive.dial()).ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
    assert (answer.error_code, answer.error_message) == (NONE, "")
    return {
        one.user: one.error_code or {info.mechanism: info.iterations for info in one.credential_infos}
        for one in answer.results
    }


def test_credentials_are_made_changed_told_and_removed(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        assert await described(alive) == {}
        assert await alter(alive, made("alice"), made("bob", SHA512, 16384)) == [
            ("alice", NONE, None),
            ("bob", NONE, None),
        ]
        assert await alter(alive, made("alice", SHA512, 5000)) == [("alice", NONE, None)]
        assert await described(alive) == {"alice": {SHA256: 4096, SHA512: 5000}, "bob": {SHA512: 16384}}
        assert await described(alive, "bob", "carol") == {"bob": {SHA512: 16384}, "carol": MISSING}
        assert await described(alive, "bob", "bob") == {"bob": TWICE}
        assert await described(alive, "") == {"": MISSING}
        assert await alter(alive, gone("alice")) == [("alice", NONE, None)]
        assert await described(alive) == {"alice": {SHA512: 5000}, "bob": {SHA512: 16384}}
        assert await alter(alive, gone("bob", SHA512)) == [("bob", NONE, None)]
        assert await described(alive) == {"alice": {SHA512: 5000}}

    alive_on(scenario, tmp_path)


def test_refusals_are_those_of_kafka_and_leave_the_others_done(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        few, many = made("few", iterations=4095), made("many", iterations=16385)
        answers = await alter(alive, few, made("good"), many, made(""), made("x", 9), gone("y", 0), gone("z"))
        assert answers[0] == ("good", NONE, None), "successes come first"
        assert sorted(answers[1:]) == [
            ("", BAD, "Username must not be empty"),
            ("few", BAD, "Too few iterations"),
            ("many", BAD, "Too many iterations"),
            ("x", UNKNOWN, "Unknown SCRAM mechanism"),
            ("y", UNKNOWN, "Unknown SCRAM mechanism"),
            ("z", MISSING, "Attempt to delete a user credential that does not exist"),
        ]
        twice = "A user credential cannot be altered twice in the same request"
        both = await alter(alive, made("both"), made("both", SHA512), gone("good"), made("good"), made("more"))
        assert both == [("more", NONE, None), ("both", TWICE, twice), ("good", TWICE, twice)]
        missing = "Attempt to delete a user credential that does not exist"
        assert await alter(alive, gone("a"), gone("a", SHA512)) == [("a", MISSING, missing)]
        assert await alter(alive, gone("a"), made("a", iterations=1)) == [("a", MISSING, missing)]
        assert await alter(alive, gone("good"), gone("good", SHA512)) == [("good", TWICE, twice)]
        assert await described(alive) == {"good": {SHA256: 4096}, "more": {SHA256: 4096}}
        assert await alter(alive, made("s", salt=b"s" * 1025), made("n" * 1025)) == [
            ("s", BAD, "The salt must not be longer than 1024 bytes"),
            ("n" * 1025, BAD, "Username must not be longer than 1024 bytes"),
        ]

    alive_on(scenario, tmp_path)


@pytest.mark.parametrize("name", ["a/b", "..", "~*+ %", "jürgen", "<default>"])
def test_a_user_may_have_any_name(name: str, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        assert await alter(alive, made(name)) == [(name, NONE, None)]
        assert await described(alive) == {name: {SHA256: 4096}}

    alive_on(scenario, tmp_path)


def test_the_node_is_kafka_s_and_keeps_what_else_is_in_it(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alter(alive, made("alice"))
        cluster = alive.broker.cluster
        node = await cluster.store.read(node_at("/config/users/alice"))
        document = json.loads(node.data)
        text = document["config"]["SCRAM-SHA-256"]
        assert text.startswith("salt=c2FsdA==,stored_key=") and text.endswith(",iterations=4096")
        assert credential_of(text) is not None
        document["config"]["producer_byte_rate"] = "1000"
        await cluster.store.multi([Set(user_path("alice"), json.dumps(document).encode())])
        await alter(alive, gone("alice"))
        left = json.loads((await cluster.store.read(node_at("/config/users/alice"))).data)
        assert left["config"] == {"producer_byte_rate": "1000"}
        assert await described(alive) == {}

    alive_on(scenario, tmp_path)


def test_requests_at_the_same_time_are_all_done(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await asyncio.gather(*(alter(alive, made(f"user-{number}")) for number in range(5)))
        assert len(await described(alive)) == 5

    alive_on(scenario, tmp_path)


@pytest.mark.parametrize("text", ["", "salt=YQ==", "salt=a b,stored_key=,server_key=,iterations=1", "iterations=x"])
def test_a_credential_that_cannot_be_read_is_none(text: str) -> None:
    assert credential_of(text) is None
