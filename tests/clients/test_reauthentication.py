"""Logins that last three seconds, for a minute: clients that log in again on their connections meet no error, and
nothing comes twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau import Admin
from moldau.admin import ScramUpsertion
from tests.clients.client import DRIVERS
from tests.clients.test_java_client import QUICK_START
from tests.environments import java_class, kafka_jars, python_with
from tests.versions import CONFLUENT, KAFKA

pytestmark = pytest.mark.long
SESSION_S, SECONDS = 3, 60
USER, PASSWORD = "carol", "pencil"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.clients.connections.max.reauth.ms": str(SESSION_S * 1000),
    "num.partitions": "1",
}


def test_clients_that_log_in_again_every_three_seconds_lose_and_double_nothing(tmp_path: Path) -> None:
    programs = Path(__file__).parent / "logins"
    java = ["java", "-Xmx96m", *QUICK_START, "-cp", java_class(programs / "StayingLoggedIn.java", kafka_jars(KAFKA))]
    commands = {
        "ours": [sys.executable, DRIVERS / "staying.py", "ours"],
        "confluent": [python_with(CONFLUENT), DRIVERS / "staying.py", "confluent"],
        "java": [*java, "StayingLoggedIn"],
    }
    broker = Broker(tmp_path, SETTINGS)
    broker.start()
    running: dict[str, subprocess.Popen[str]] = {}
    try:
        with Admin(broker.address) as admin:
            made = admin.alter_user_scram_credentials([ScramUpsertion(USER, PASSWORD, "SCRAM-SHA-512")])
            assert made == {USER: None}
        for name, command in commands.items():
            words = [*command, broker.addresses[1], USER, PASSWORD, str(SECONDS)]
            running[name] = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = {name: process.communicate(timeout=stretched(SECONDS + 120))[0] for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()
        broker.stop()
    print(said)
    for name, text in said.items():
        assert text.splitlines()[-1:] == ["ok"], f"{name}: {text}"
    log = broker.log()
    assert "Traceback" not in log and "has not authenticated" not in log and "its session has expired" not in log
