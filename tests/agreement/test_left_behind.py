"""`log adopt` of a cleanly stopped Apache Kafka is a clean start, and names what Kafka had beside its topics."""

import json
import subprocess
from pathlib import Path

import pytest

from harness import apache_kafka
from harness.brokers import Broker
from harness.commands import moldau
from harness.listening import stop
from harness.patience import stretched
from moldau import Admin
from moldau.admin import Acl
from tests.agreement import fixtures
from tests.agreement.apache import SETTINGS
from tests.environments import kafka_jars

SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}

LOGINS = {
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ann",
}


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a Kafka that had a topic, users, quotas, access rules and settings of its own."""
    folder, _ = fixtures.recorded("secured", tmp_path_factory.mktemp("kafka"), write)
    return folder / "data"


def write(folder: Path) -> tuple[dict[str, Path], None]:
    with apache_kafka.started(folder, {**SETTINGS, **SECURED}) as (broker, process):

        def tool(name: str, *arguments: str) -> None:
            address = ["--bootstrap-server", f"{broker.host}:{broker.port}"]
            command = ["java", *apache_kafka.JVM, "-cp", kafka_jars(), name, *address, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60))
            assert done.returncode == 0, done.stdout + done.stderr

        configs = (
            "kafka.admin.ConfigCommand" if apache_kafka.VERSION < "4.4" else "org.apache.kafka.tools.ConfigCommand"
        )
        tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", "flights", "--partitions", "2")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            scram = ["--add-config", f"{mechanism}=[password=secret]"]
            tool(configs, "--alter", "--entity-type", "users", "--entity-name", "ann", *scram)
        rate = ["--add-config", "producer_byte_rate=1024"]
        tool(configs, "--alter", "--entity-type", "clients", "--entity-default", *rate)
        tool(
            configs,
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "1",
            "--add-config",
            "log.cleaner.threads=2",
        )
        session = ["--add-config", "consumer.session.timeout.ms=50000"]
        tool(configs, "--alter", "--entity-type", "groups", "--entity-name", "readers", *session)
        rule = ["--add", "--allow-principal", "User:ann", "--operation", "Read", "--topic", "flights"]
        tool("org.apache.kafka.tools.AclCommand", *rule)
        stop(process)
    return {"data": folder / "data"}, None


def test_what_kafka_had_beside_its_topics_is_named_and_the_next_start_is_clean(kafkas: Path, tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    as_json = json.loads(moldau("log", "adopt", kafkas, "--data-dir", broker.data, "--dry-run", "--json").stdout)
    named, taken = ({(each["kind"], each["name"]) for each in as_json[key]} for key in ("left_behind", "taken_along"))
    assert taken == {
        ("SCRAM credential", "ann (SCRAM-SHA-256)"),
        ("SCRAM credential", "ann (SCRAM-SHA-512)"),
        ("client quota", "client-id default: producer_byte_rate"),
        ("access rule", "User:ann on topic flights"),
        ("setting of groups", "readers: consumer.session.timeout.ms"),
    }
    assert named == {
        ("setting of brokers", "1: log.cleaner.threads"),
        ("setting of brokers", "all brokers: min.insync.replicas"),  # which Kafka 4.3.1 writes there by itself
    }
    said = moldau("log", "adopt", kafkas, "--data-dir", broker.data)
    assert said.returncode == 0, said.stderr
    assert "adopted SCRAM credential: ann (SCRAM-SHA-256); ann (SCRAM-SHA-512)" in said.stdout
    assert "left behind: setting of brokers: 1: log.cleaner.threads" in said.stdout
    assert "secret" not in said.stdout
    broker.settings |= LOGINS
    assert (broker.data / ".kafka_cleanshutdown").exists()
    broker.start()
    try:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            login = {"sasl.username": "ann", "sasl.password": "secret", "sasl.mechanism": mechanism}
            server = {"bootstrap.servers": broker.address, "security.protocol": "SASL_PLAINTEXT"}
            with Admin({**server, **login}) as admin:
                acl = Acl("topic", "flights", "User:ann", "read")
                assert admin.describe_acls() == [acl]
                assert admin.describe_client_quotas() == {(("client-id", None),): {"producer_byte_rate": 1024.0}}
    finally:
        broker.stop()
    assert "not closed cleanly" not in broker.log()
