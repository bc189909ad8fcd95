"""Other projects' clients over mutual TLS, with certificates that `moldau certificates make` has made."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from tests.clients.client import DRIVERS
from tests.clients.kafka_tools import CONFIGS, PRODUCER_PERF, TOPICS, Tools
from tests.environments import go_program, node_with, python_with
from tests.versions import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, KAFKAJS, PLATFORMATIC

pytestmark = pytest.mark.check
SECONDS_MAX = 120
CLIENTS = {"confluent": CONFLUENT, "kafka_python": KAFKA_PYTHON, "aiokafka": AIOKAFKA}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make = [sys.executable, "-m", "moldau", "certificates", "make", str(folder), "--host", "localhost"]
    subprocess.run([*make, "--user", "alice"], check=True, capture_output=True)
    return folder


@pytest.fixture
def broker(certificates: Path, tmp_path: Path) -> Iterator[Broker]:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(certificates / "localhost.p12"),
        "ssl.keystore.password": (certificates / "password").read_text(),
        "ssl.truststore.location": str(certificates / "ca.p12"),
        "num.partitions": "1",
    }
    broker = Broker(tmp_path, settings)
    broker.start()
    yield broker
    broker.stop()
    assert "Traceback" not in broker.log()


def said(client: str, *arguments: str) -> str:
    """What the client prints."""
    command = [python_with(CLIENTS[client]), DRIVERS / "over_tls.py", client, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    return done.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_a_certificate_sends_and_reads(client: str, broker: Broker, certificates: Path) -> None:
    files = (str(certificates / "ca.pem"), str(certificates / "alice.pem"))
    assert said(client, broker.address, *files).splitlines()[-1] == "ok"


@pytest.mark.parametrize(("client", "pin"), [("kafkajs", KAFKAJS), ("platformatic", PLATFORMATIC)])
def test_a_client_of_node_does_too(client: str, pin: str, broker: Broker, certificates: Path) -> None:
    node, modules = node_with(pin)
    files = (str(certificates / "ca.pem"), str(certificates / "alice.pem"))
    command = [node, DRIVERS / "over_tls.mjs", client, broker.address, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, env={"NODE_PATH": str(modules)})
    assert done.stdout.splitlines()[-1:] == ["ok"], done.stdout + done.stderr


def test_a_client_of_go_does_too(broker: Broker, certificates: Path) -> None:
    program = go_program(Path(__file__).parent / "franz_over_tls")
    files = (str(certificates / "ca.pem"), str(certificates / "alice.pem"))
    done = subprocess.run([program, broker.address, *files], capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.stdout.splitlines()[-1:] == ["ok"], done.stdout + done.stderr


def test_a_client_without_one_is_refused_in_a_line_of_the_log(broker: Broker, certificates: Path) -> None:
    assert said("confluent", broker.address, str(certificates / "ca.pem"), "").splitlines()[-1] != "ok"
    assert "it has no certificate, and ssl.client.auth is required" in broker.log()


def test_kafkas_tools_work_with_pkcs12_files_and_name_a_new_certificate(
    broker: Broker, certificates: Path, tmp_path: Path
) -> None:
    password = (certificates / "password").read_text()
    settings = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(certificates / "alice.p12"),
        "ssl.keystore.password": password,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(certificates / "ca.p12"),
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    server = ("--bootstrap-server", broker.address, "--command-config", str(file))
    pairs = [f"{name}={value}" for name, value in {"bootstrap.servers": broker.address, **settings}.items()]
    with Tools(tmp_path) as tools:
        tools.run(TOPICS, *server, "--create", "--topic", "perf")
        sized = ("--topic", "perf", "--num-records", "2000", "--record-size", "2000", "--throughput", "-1")
        assert "2000 records sent" in tools.run(PRODUCER_PERF, *sized, "--producer-props", *pairs)
        own = f"listener.name.ssl.ssl.keystore.location={certificates / 'localhost.p12'}"
        entity = ("--entity-type", "brokers", "--entity-name", "1")
        tools.run(CONFIGS, *server, "--alter", *entity, "--add-config", own)
        assert own in tools.run(CONFIGS, *server, "--describe", *entity)
        tools.run(CONFIGS, *server, "--alter", *entity, "--add-config", f"{own}.missing", code=1)
    assert "uses the certificates in its files as they are now" in broker.log()
