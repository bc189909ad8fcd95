"""The logins of a listener: its settings, and users of a whole broker that log in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness.patience import stretched
from moldau.broker import Broker
from moldau.config import BrokerConfig, broker_config
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.peers.address import Address
from moldau.peers.link import Link, connect
from moldau.peers.login import log_in
from moldau.protocol.apis import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_CLUSTER, METADATA
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.requests.logins import PLAIN_MODULE, ListenerLogins
from moldau.runtime import Runtime
from moldau.transport.jaas import Login
from moldau.transport.sasl import scram
from moldau.transport.sasl.exchange import ClientExchange
from moldau.transport.sasl.plain import PlainClient
from moldau.transport.sasl.scram import ScramClient

SHA256 = "SCRAM-SHA-256"
JAAS = "listener.name.clients.plain.sasl.jaas.config"
USERS = f'{PLAIN_MODULE} required username="x" password="y" user_admin="admin-secret" user_alice="a;\\"=";'
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "0",
    JAAS: USERS,
}


def config(**changes: str | None) -> BrokerConfig:
    """Of a listener with SASL; names have underscores for dots, and None takes one away."""
    settings = {**SETTINGS, **{name.replace("_", "."): value for name, value in changes.items()}}
    return broker_config({name: value for name, value in settings.items() if value is not None})[0]


class Dialled:
    """Logs in at a broker."""

    def __init__(self, broker: Broker):
        self.broker = broker
        self.links: list[Link] = []

    async def link(self) -> Link:
        link = await connect(Address("127.0.0.1", self.broker.port), "test", 10_000)
        self.links.append(link)
        return link

    async def log_in(self, mechanism: str, exchange: ClientExchange) -> Link:
        link = await self.link()
        await log_in(link, mechanism, exchange, 10_000)
        return link

    async def plain(self, user: str, password: str) -> Link:
        return await self.log_in("PLAIN", PlainClient(Login(user, password)))

    async def scram(self, user: str, password: str, mechanism: str = SHA256) -> Link:
        return await self.log_in(mechanism, ScramClient(mechanism, Login(user, password), "nonce"))

    async def refusal(self, login: Awaitable[Link]) -> tuple[ErrorCode, str]:
        with pytest.raises(KafkaError) as refused:
            await login
        return refused.value.code, str(refused.value)


@asynccontextmanager
async def dialled(folder: Path, **changes: str | None) -> AsyncIterator[Dialled]:
    broker = Broker(config(log_dirs=str(folder), **changes), Runtime())
    await broker.start()
    clients = Dialled(broker)
    try:
        yield clients
    finally:
        for link in clients.links:
            link.connection.close()
        await broker.stop()


def run(scenario: Callable[[Dialled], Awaitable[None]], folder: Path, **changes: str | None) -> None:
    async def whole() -> None:
        async with asyncio.timeout(stretched(30)), dialled(folder, **changes) as clients:
            await scenario(clients)

    asyncio.run(whole())


def kept(user: str, password: str, mechanism: str = SHA256) -> ScramCredentialUpsertion:
    salt = b"salt of " + user.encode()
    return ScramCredentialUpsertion(
        name=user,
        mechanism=1 if mechanism == SHA256 else 2,
        iterations=4096,
        salt=salt,
        salted_password=scram.salted_password(mechanism, password, salt, 4096),
    )


async def change(link: Link, *made: ScramCredentialUpsertion, removed: str | None = None) -> None:
    request = AlterUserScramCredentialsRequest(upsertions=list(made))
    if removed is not None:
        request.deletions = [ScramCredentialDeletion(name=removed, mechanism=1)]
    answer = await link.call(ALTER_USER_SCRAM_CREDENTIALS, request)
    assert {one.error_code for one in answer.results} == {0}


def test_users_of_plain_log_in_and_others_do_not(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        link = await clients.plain("alice", 'a;"=')
        assert (await link.call(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request())).error_code == 0
        refused = ErrorCode.SASL_AUTHENTICATION_FAILED, "Authentication failed: Invalid username or password"
        for user, password in (("alice", "a"), ("bob", "a"), ("x", "y"), ("", "")):
            if user:
                code, text = await clients.refusal(clients.plain(user, password))
                assert code is refused[0] and refused[1] in text

    run(scenario, tmp_path)


def test_nothing_is_answered_before_a_login(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        link = await clients.link()
        with pytest.raises(KafkaError) as closed:
            await link.call(METADATA, METADATA.request())
        assert closed.value.code is ErrorCode.NETWORK_EXCEPTION

    run(scenario, tmp_path)


@pytest.mark.parametrize("mechanism", [SHA256, "SCRAM-SHA-512"])
def test_users_of_scram_log_in_from_the_moment_they_are_made_until_they_are_removed(
    mechanism: str, tmp_path: Path
) -> None:
    async def scenario(clients: Dialled) -> None:
        admin = await clients.plain("admin", "admin-secret")
        before = await clients.refusal(clients.scram("carol", "pencil", mechanism))
        await change(admin, kept("carol", "pencil", mechanism))
        link = await clients.scram("carol", "pencil", mechanism)
        assert (await link.call(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request())).error_code == 0
        wrong = await clients.refusal(clients.scram("carol", "pen", mechanism))
        assert wrong == before, "nobody learns which users there are"
        await change(admin, kept("carol", "another", mechanism))
        assert await clients.refusal(clients.scram("carol", "pencil", mechanism)) == wrong
        await clients.scram("carol", "another", mechanism)
        if mechanism == SHA256:
            await change(admin, removed="carol")
            assert await clients.refusal(clients.scram("carol", "another")) == wrong

    run(scenario, tmp_path)


def test_no_log_line_has_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(clients: Dialled) -> None:
        admin = await clients.plain("admin", "admin-secret")
        made = kept("carol", "pencil-secret")
        await change(admin, made)
        await clients.scram("carol", "pencil-secret")
        await clients.refusal(clients.scram("carol", "guess-secret"))
        await clients.refusal(clients.plain("carol", "guess-secret"))
        assert "secret" not in caplog.text.replace("/moldau/secret", "")
        assert str(made.salted_password) not in caplog.text and str(made.salt) not in caplog.text

    caplog.set_level("DEBUG")
    run(scenario, tmp_path)


def test_a_credential_of_one_mechanism_is_none_of_the_other(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        await change(await clients.plain("admin", "admin-secret"), kept("carol", "pencil"))
        code, _ = await clients.refusal(clients.scram("carol", "pencil", "SCRAM-SHA-512"))
        assert code is ErrorCode.SASL_AUTHENTICATION_FAILED

    run(scenario, tmp_path)


def test_users_are_there_after_a_restart(tmp_path: Path) -> None:
    async def first(clients: Dialled) -> None:
        await change(await clients.plain("admin", "admin-secret"), kept("carol", "pencil"))

    async def second(clients: Dialled) -> None:
        await clients.scram("carol", "pencil")

    run(first, tmp_path)
    run(second, tmp_path)


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        code, text = await clients.refusal(clients.plain("alice", "a"))
        assert code is ErrorCode.UNSUPPORTED_SASL_MECHANISM and "SCRAM-SHA-512" in text and SHA256 not in text

    run(scenario, tmp_path, sasl_enabled_mechanisms="SCRAM-SHA-512", **{JAAS: None})


def test_a_session_is_as_long_as_the_mechanism_says(tmp_path: Path) -> None:
    async def scenario(clients: Dialled) -> None:
        link = await clients.link()
        assert await log_in(link, "PLAIN", PlainClient(Login("alice", 'a;"=')), 10_000) == 5_000
        admin = await clients.plain("admin", "admin-secret")
        await change(admin, kept("carol", "pencil"))
        link = await clients.link()
        assert await log_in(link, SHA256, ScramClient(SHA256, Login("carol", "pencil"), "n"), 10_000) == 60_000

    more = {"listener.name.clients.plain.connections.max.reauth.ms": "5000"}
    run(scenario, tmp_path, connections_max_reauth_ms="60000", **more)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sasl_enabled_mechanisms": None}, "the listener CLIENTS has SASL with the mechanism GSSAPI, which is not"),
        ({"sasl_enabled_mechanisms": ""}, "sasl.enabled.mechanisms"),
        ({"sasl_enabled_mechanisms": "PLAIN,NTLM"}, "the mechanism NTLM, which is not supported: set sasl.enabled"),
        ({JAAS: None}, f"PLAIN has no users: set {JAAS}="),
        ({JAAS: "x.y.ScramLoginModule required;"}, f"{JAAS} is for x.y.ScramLoginModule; PLAIN needs"),
        ({JAAS: f"{PLAIN_MODULE} required;"}, "needs at least one user_NAME"),
        ({JAAS: f'{PLAIN_MODULE} required user_a="";'}, "neither may be empty"),
        ({JAAS: f'{PLAIN_MODULE} required user_a="secret"'}, f"{JAAS} must be one login module"),
        ({JAAS: f'{PLAIN_MODULE} user_a="secret";'}, f"{JAAS} must be one login module"),
        ({JAAS: f'{PLAIN_MODULE} required user_a="secret" user_a="b";'}, f"{JAAS} must be one login module"),
    ],
)
def test_a_listener_that_nobody_could_log_in_at_is_refused_without_a_password_in_the_sentence(
    changes: dict[str, str | None], sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        ListenerLogins("CLIENTS", config(**changes), Runtime())
    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_class_of_one_s_own_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot load a class"):
        config(sasl_server_callback_handler_class="com.example.Passwords")


def test_no_password_is_in_the_text_of_the_settings() -> None:
    assert "admin-secret" not in repr(config())
