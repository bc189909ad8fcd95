"""Java's, Node's and Go's clients log in over TLS, send a record and read it; a refused login ends in the client's own
error about it. Python's clients: `test_logins.py`, `test_over_tls.py`."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau import Admin
from moldau.admin import ScramUpsertion
from moldau.client.administration.scram import ScramMechanism
from moldau.requests.logins import PLAIN_MODULE
from tests import versions
from tests.clients.test_java_client import QUICK_START
from tests.environments import go_program, java_class, kafka_jars, node_with

pytestmark = pytest.mark.check
PROGRAMS = Path(__file__).parent / "logins"
SECONDS = 120.0
SETTINGS = {
    "listeners": "CLIENTS://localhost:0",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_carol="pencil" user_admin="secret";',
    "num.partitions": "1",
}
SCRAM: tuple[ScramMechanism, ...] = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class Program(NamedTuple):
    words: list[str | Path]
    environment: Mapping[str, str] = {}


def java() -> Program:
    class_path = java_class(PROGRAMS / "LoggingIn.java", kafka_jars(versions.KAFKA))
    return Program(["java", "-Xmx96m", *QUICK_START, "-cp", class_path, "LoggingIn"])


def node(pin: str, program: str) -> Program:
    found, modules = node_with(pin)
    return Program([found, PROGRAMS / program], {"NODE_PATH": str(modules)})


CLIENTS: Mapping[str, tuple[Callable[[], Program], str]] = {
    "java": (java, "SaslAuthenticationException"),
    "kafkajs": (lambda: node(versions.KAFKAJS, "kafkajs.mjs"), "KafkaJSSASLAuthenticationError"),
    "platformatic": (lambda: node(versions.PLATFORMATIC, "platformatic.mjs"), "PLT_KFK_AUTHENTICATION"),
    "franz": (lambda: Program([go_program(PROGRAMS / "golang"), "franz"]), "SASL_AUTHENTICATION_FAILED"),
    "sarama": (lambda: Program([go_program(PROGRAMS / "golang"), "sarama"]), "SASL Authentication failed"),
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make = [sys.executable, "-m", "moldau", "certificates", "make", str(folder), "--host", "localhost"]
    subprocess.run(make, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def broker(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker at which carol logs in by every mechanism."""
    ours = Broker(
        tmp_path_factory.mktemp("broker"),
        {**SETTINGS, "ssl.keystore.location": str(certificates / "localhost.pem")},
    )
    ours.start()
    settings = {
        "bootstrap.servers": ours.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificates / "ca.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "secret",
    }
    try:
        with Admin(settings) as admin:
            for mechanism in SCRAM:  # as in Kafka, each in a request of its own
                made = admin.alter_user_scram_credentials([ScramUpsertion("carol", "pencil", mechanism)])
                assert made == {"carol": None}
            admin.create_topics(["logins"])  # not every client lets the broker create it
        yield ours
    finally:
        ours.stop()
    assert "Traceback" not in ours.log()


def said(client: str, broker: Broker, certificates: Path, mechanism: str, password: str) -> str:
    """What the client prints."""
    program = CLIENTS[client][0]()
    arguments = [broker.address, mechanism, "carol", password, certificates / "ca.pem"]
    done = subprocess.run(
        [*program.words, *arguments],
        env={**os.environ, **program.environment},
        capture_output=True,
        text=True,
        timeout=stretched(SECONDS),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LOGINS = [(client, mechanism) for client in CLIENTS for mechanism in ("PLAIN", *SCRAM)]
CHECKED = {("kafkajs", "PLAIN"), *((client, "SCRAM-SHA-512") for client in CLIENTS)}


@pytest.mark.parametrize(
    ("client", "mechanism"),
    [pytest.param(*login, marks=[pytest.mark.long] * (login not in CHECKED)) for login in LOGINS],
)
def test_a_client_logs_in_over_tls_and_works(client: str, mechanism: str, broker: Broker, certificates: Path) -> None:
    assert said(client, broker, certificates, mechanism, "pencil").splitlines()[-1] == "ok"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", [pytest.param("PLAIN", marks=pytest.mark.long), "SCRAM-SHA-512"])
def test_a_refused_login_ends_in_the_clients_own_error(
    client: str, mechanism: str, broker: Broker, certificates: Path
) -> None:
    assert CLIENTS[client][1] in said(client, broker, certificates, mechanism, "guess")
