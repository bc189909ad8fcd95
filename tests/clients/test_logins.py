"""Other projects' clients log in by each mechanism; a refused login ends in the client's own error about it."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.peers.address import bootstrap_addresses
from moldau.peers.link import connect
from moldau.peers.login import log_in
from moldau.requests.logins import PLAIN_MODULE
from moldau.transport.jaas import Login
from moldau.transport.sasl.plain import PlainClient
from tests.clients.client import DRIVERS
from tests.clients.kafka_tools import CONFIGS, Tools
from tests.environments import python_with
from tests.requests.test_logins import change, kept
from tests.transport.issuing import AUDIENCE, ISSUER, Issuer
from tests.versions import AIOKAFKA, CONFLUENT, KAFKA_PYTHON

pytestmark = pytest.mark.check
SECONDS_MAX = 120
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
ISSUERS = Issuer("RSA")
TOKEN = ISSUERS.token(exp=4_000_000_000, iat=None)
USERS = f'{PLAIN_MODULE} required user_admin="admin-secret";'
SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.clients.plain.sasl.jaas.config": USERS,
    "delegation.token.secret.key": "the key of the cluster",
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "auto.create.topics.enable": "true",
}
CLIENTS = {
    "confluent": (CONFLUENT, "_AUTHENTICATION"),
    "kafka_python": (KAFKA_PYTHON, "SaslAuthenticationFailed"),
    "aiokafka": (AIOKAFKA, "SaslAuthenticationFailed"),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker at which admin logs in by PLAIN, and carol by SCRAM."""
    folder = tmp_path_factory.mktemp("logins")
    (folder / "keys.json").write_bytes(ISSUERS.published())
    broker = Broker(folder, {**SETTINGS, "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri()})
    broker.start()
    try:
        asyncio.run(make_carol(broker.address))
        yield broker.address
    finally:
        broker.stop()


async def make_carol(address: str) -> None:
    link = await connect(bootstrap_addresses(address)[0], "test", 10_000)
    await log_in(link, "PLAIN", PlainClient(Login("admin", "admin-secret")), 10_000)
    await change(link, kept("carol", "pencil"))
    await change(link, kept("carol", "pencil", "SCRAM-SHA-512"))
    link.connection.close()


def said(client: str, *arguments: str) -> str:
    """What the client prints."""
    command = [python_with(CLIENTS[client][0]), DRIVERS / "logging_in.py", client, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    return done.stdout


MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LOGINS = [(client, mechanism) for client in CLIENTS for mechanism in MECHANISMS]
IN_CHECK = {("confluent", mechanism) for mechanism in MECHANISMS} | {
    (client, mechanism) for client in CLIENTS for mechanism in ("SCRAM-SHA-512", "OAUTHBEARER")
}


@pytest.mark.parametrize(
    ("client", "mechanism"),
    [pytest.param(*login, marks=[pytest.mark.long] * (login not in IN_CHECK)) for login in LOGINS],
)
def test_a_client_logs_in_and_works(client: str, mechanism: str, address: str) -> None:
    users = {"PLAIN": ("admin", "admin-secret"), "OAUTHBEARER": ("alice", TOKEN)}
    user = users.get(mechanism, ("carol", "pencil"))
    assert said(client, address, mechanism, *user).splitlines()[-1] == "ok"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", [pytest.param("PLAIN", marks=pytest.mark.long), "SCRAM-SHA-256"])
def test_a_refused_login_ends_in_the_client_s_own_error(client: str, mechanism: str, address: str) -> None:
    heard = said(client, address, mechanism, "carol", "guess")
    assert CLIENTS[client][1] in heard
    assert heard.splitlines()[-1] != "ok"


def test_kafka_s_own_tool_makes_describes_and_removes_users(address: str, tmp_path: Path) -> None:
    file = tmp_path / "admin.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="admin" password="admin-secret";\n'
    )
    asked = ("--bootstrap-server", address, "--command-config", str(file), "--entity-type", "users")
    with Tools(tmp_path) as tools:
        made = ("--add-config", "SCRAM-SHA-256=[iterations=8192,password=dave-secret]")
        tools.run(CONFIGS, *asked, "--entity-name", "dave", "--alter", *made)
        assert "SCRAM-SHA-256=iterations=8192" in tools.run(CONFIGS, *asked, "--entity-name", "dave", "--describe")
        assert said("confluent", address, "SCRAM-SHA-256", "dave", "dave-secret").splitlines()[-1] == "ok"
        tools.run(CONFIGS, *asked, "--entity-name", "dave", "--alter", "--delete-config", "SCRAM-SHA-256")
        assert "SCRAM-SHA-256" not in tools.run(CONFIGS, *asked, "--entity-name", "dave", "--describe")
    assert said("confluent", address, "SCRAM-SHA-256", "dave", "dave-secret").splitlines()[-1] != "ok"


def test_kafka_s_own_tool_makes_lists_and_ends_tokens(address: str, tmp_path: Path) -> None:
    file = tmp_path / "admin.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="admin" password="admin-secret";\n'
    )
    asked = ("--bootstrap-server", address, "--command-config", str(file))
    with Tools(tmp_path) as tools:
        made = tools.run(
            TOKENS, *asked, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:carol"
        )
        token_id, secret = made.splitlines()[-1].split()[:2]
        assert token_id in tools.run(TOKENS, *asked, "--describe", "--owner-principal", "User:admin")
        assert "Completed" in tools.run(TOKENS, *asked, "--renew", "--renew-time-period", "-1", "--hmac", secret)
        assert "Completed" in tools.run(TOKENS, *asked, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
        assert token_id not in tools.run(TOKENS, *asked, "--describe")
