"""Delegation tokens: made, told, renewed, ended, and what logs in with them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.users import token_changes
from moldau.cluster.users.tokens import DelegationToken, document_of, is_id, read_tokens, token_in
from moldau.errors import ErrorCode, StorageError
from moldau.handlers.security.tokens import CreateToken, may_ask
from moldau.metadata_store.store import Node
from moldau.peers.link import Link
from moldau.peers.login import log_in
from moldau.protocol.apis import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_CLUSTER,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from moldau.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.transport.jaas import Login
from moldau.transport.sasl.exchange import to_base64
from moldau.transport.sasl.scram import ScramClient
from tests.requests.calling import call
from tests.requests.test_logins import Dialled, config, run

KEY = {"delegation_token_secret_key": "the key of the cluster"}
USERS = {
    "listener.name.clients.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a" user_bob="b" user_carol="c";'
    )
}
DISABLED, MISSING, MISMATCH, NOT_ALLOWED, EXPIRED, KIND = 61, 62, 63, 64, 66, 67
TOO_MANY = 44
HOUR_MS = 3_600_000


def by_token(token_id: str, secret: bytes, mechanism: str = "SCRAM-SHA-256") -> ScramClient:
    return ScramClient(mechanism, Login(token_id, to_base64(secret)), "nonce", by_token=True)


async def create(
    link: Link, *renewers: str, owner: str | None = None, kind: str = "User", lifetime_ms: int = -1
) -> Any:
    return await link.call(
        CREATE_DELEGATION_TOKEN,
        CreateDelegationTokenRequest(
            owner_principal_type="User" if owner else None,
            owner_principal_name=owner,
            renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for name in renewers],
            max_lifetime_ms=lifetime_ms,
        ),
    )


async def renew(link: Link, secret: bytes, period_ms: int = -1) -> Any:
    return await link.call(RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms))


async def expire(link: Link, secret: bytes, period_ms: int = -1) -> Any:
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
    return await link.call(EXPIRE_DELEGATION_TOKEN, request)


async def described(link: Link, *owners: str) -> Any:
    wanted = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    return await link.call(DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest(owners=wanted or None))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_as_its_owner_for_as_long_as_it_is_valid(mechanism: str, tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        alice = await clients.plain("alice", "a")
        token = await create(alice, "bob")
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "alice", "alice")
        assert len(token.hmac) == 64
        assert token.expiry_timestamp_ms - token.issue_timestamp_ms == 24 * HOUR_MS
        assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * 24 * HOUR_MS
        link = await clients.link()
        lasts_ms = await log_in(link, mechanism, by_token(token.token_id, token.hmac, mechanism), 10_000)
        assert 23 * HOUR_MS < lasts_ms <= 24 * HOUR_MS
        assert (await link.call(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request())).error_code == 0
        for refused in (await create(link), await renew(link, token.hmac), await described(link)):
            assert refused.error_code == NOT_ALLOWED, "not by a token"
        wrong = by_token(token.token_id, b"guess", mechanism)
        code, text = await clients.refusal(clients.log_in(mechanism, wrong))
        unknown = await clients.refusal(clients.log_in(mechanism, by_token("unknown", b"guess", mechanism)))
        assert code is ErrorCode.SASL_AUTHENTICATION_FAILED and unknown == (code, text)
        as_user = ScramClient(mechanism, Login(token.token_id, to_base64(token.hmac)), "nonce")
        assert await clients.refusal(clients.log_in(mechanism, as_user)) == unknown
        assert (await expire(alice, token.hmac)).error_code == 0
        again = by_token(token.token_id, token.hmac, mechanism)
        assert await clients.refusal(clients.log_in(mechanism, again)) == unknown

    run(scenario, tmp_path, **KEY, **USERS)


def test_the_owner_and_renewers_renew_and_end_a_token_and_nobody_else(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        alice, bob, carol = [await clients.plain(*one) for one in (("alice", "a"), ("bob", "b"), ("carol", "c"))]
        token = await create(alice, "bob")
        for other in (await renew(carol, token.hmac), await expire(carol, token.hmac)):
            assert (other.error_code, other.expiry_timestamp_ms) == (MISMATCH, 0)
        renewed = await renew(bob, token.hmac, HOUR_MS)
        assert renewed.error_code == 0
        assert 0 < renewed.expiry_timestamp_ms - token.issue_timestamp_ms < 2 * HOUR_MS
        longest = await renew(alice, token.hmac, 100 * 24 * HOUR_MS)
        assert longest.expiry_timestamp_ms - token.issue_timestamp_ms < 25 * HOUR_MS
        assert (await renew(alice, b"unknown")).error_code == MISSING
        over = await expire(bob, token.hmac, 0)
        assert over.error_code == 0
        while (await renew(alice, token.hmac)).error_code == 0:
            await expire(bob, token.hmac, 0)
        assert (await renew(alice, token.hmac)).error_code == EXPIRED
        assert (await expire(alice, token.hmac, 0)).error_code == EXPIRED
        assert (await described(alice)).tokens == []
        assert (await expire(alice, token.hmac)).error_code == 0
        assert (await expire(alice, token.hmac)).error_code == MISSING

    run(scenario, tmp_path, **KEY, **USERS)


def test_tokens_are_told_by_owner_and_those_that_are_over_are_removed(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        alice, bob = await clients.plain("alice", "a"), await clients.plain("bob", "b")
        mine, other = await create(alice, "carol"), await create(bob, owner="alice")
        assert (other.principal_name, other.token_requester_principal_name) == ("alice", "bob")
        short = await create(bob, lifetime_ms=1)
        assert short.max_timestamp_ms - short.issue_timestamp_ms == 1
        told = (await described(alice, "alice")).tokens
        assert {one.token_id for one in told} == {mine.token_id, other.token_id}
        (first,) = (one for one in told if one.token_id == mine.token_id)
        assert [one.principal_name for one in first.renewers] == ["carol"] and bytes(first.hmac) == bytes(mine.hmac)
        assert (await described(alice, "nobody")).tokens == []
        store = clients.broker.cluster.store
        await create(alice)
        assert short.token_id not in {token.token_id for token, _ in await store.read(read_tokens())}

    run(scenario, tmp_path, **KEY, **USERS)


def test_tokens_that_are_over_are_removed_on_time_and_count_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_changes, "TOKENS_MAX", 3)
    monkeypatch.setattr(token_changes, "REMOVED_MAX", 2)

    async def scenario(clients: Dialled) -> None:
        alice = await clients.plain("alice", "a")
        short = [await create(alice, lifetime_ms=1) for _ in range(3)]
        kept = await create(alice)
        assert [one.error_code for one in (*short, kept)] == [0] * 4
        while True:
            known = await clients.broker.cluster.store.read(read_tokens())
            if [token.token_id for token, _ in known] == [kept.token_id]:
                break
            await asyncio.sleep(0.01)
        others = [await create(alice) for _ in range(3)]
        assert [one.error_code for one in others] == [0, 0, TOO_MANY]

    run(scenario, tmp_path, delegation_token_expiry_check_interval_ms="20", **KEY, **USERS)


def test_another_owner_and_tokens_of_others_need_rights(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        alice, bob, carol = [await clients.plain(*one) for one in (("alice", "a"), ("bob", "b"), ("carol", "c"))]
        assert (await create(bob, owner="alice")).error_code == 65
        assert (await create(bob, owner="bob")).error_code == 0
        assert (await create(alice, owner="carol")).error_code == 0, "a super user"
        hers = (await create(carol, "bob")).token_id
        assert {one.token_id for one in (await described(bob)).tokens} > {hers}
        assert len((await described(bob, "carol")).tokens) == 1, "not what alice has asked for"
        assert (await described(bob, "alice")).tokens == []
        assert len((await described(alice)).tokens) == 3

    authorizer = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    run(scenario, tmp_path, super_users="User:alice", **authorizer, **KEY, **USERS)


def test_renewers_are_users(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        alice = await clients.plain("alice", "a")
        assert (await create(alice, "staff", kind="Group")).error_code == KIND
        assert (await create(alice, "b" * 2_000)).error_code == ErrorCode.INVALID_REQUEST

    run(scenario, tmp_path, **KEY, **USERS)


def test_without_a_key_there_are_no_tokens(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        alice = await clients.plain("alice", "a")
        for answer in (
            await create(alice),
            await renew(alice, b"x"),
            await expire(alice, b"x"),
            await described(alice),
        ):
            assert answer.error_code == DISABLED

    run(scenario, tmp_path, **USERS)


def test_a_client_that_has_not_proved_who_it_is_asks_for_no_token() -> None:
    settings = config(**KEY, **USERS)
    plain = call(CREATE_DELEGATION_TOKEN, 3)
    assert not may_ask(plain, settings)
    early = CreateToken(None, lambda: settings).early(CreateDelegationTokenRequest(), plain)  # type: ignore[arg-type]
    assert early is not None and early.error_code == NOT_ALLOWED


def test_a_token_is_kept_as_kafka_kept_it() -> None:
    token = DelegationToken("id", "User:alice", "User:bob", ("User:carol",), 1, 2, 3)
    assert token_in(Node(document_of(token), 0), "/t") == token
    old = (
        b'{"version":1,"owner":"User:a","renewers":[],"issueTimestamp":1,"maxTimestamp":3,"expiryTimestamp":2,'
        b'"tokenId":"x"}'
    )
    assert token_in(Node(old, 0), "/t").requester == "User:a"
    for wrong in (b"", b"{}", old.replace(b"1", b'"1"')):
        with pytest.raises(StorageError):
            token_in(Node(wrong, 0), "/t")


@pytest.mark.parametrize("text", ["", "..", "a/b", "a b", "é", "a" * 65])
def test_what_is_no_id_is_never_part_of_a_path(text: str) -> None:
    assert not is_id(text)
