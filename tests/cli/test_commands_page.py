"""docs/commands.md: each command of the page shows what Kafka's script beside it shows."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.cli.app import PLACES
from moldau.cli.command_line import Group, parameters_of, read
from moldau.cli.options import with_command_config
from moldau.client.producing.producer import Producer
from tests.cli.conftest import Moldau

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
SECTIONS = dict(part.partition("\n")[::2] for part in PAGE.read_text().split("\n## "))


def commands_of(section: str) -> list[str]:
    return re.findall(r"^\| .* \| `moldau ([^`]+)`", SECTIONS[section], re.MULTILINE)


COMMANDS = commands_of("From Kafka's scripts")
OF_FILES = ("server", "log", "zookeeper", "mirror")
"""Commands that run on, or need what another test has."""
SHOWN = {
    "topics create": "created topic orders",
    "topics list": r"orders +3 +1",
    "topics describe": r"(?s)retention.ms=60000.*PARTITION +LEADER +REPLICAS +ISR",
    "topics alter": "altered topic orders",
    "topics offsets orders": r"orders +\d +\d+",
    "topics offsets orders:0": r"orders +0 +0",
    "topics delete-records": r"TOPIC +PARTITION +FIRST OFFSET\norders +0 +\d+\n",
    "topics delete": "deleted topic orders",
    "cluster status": r"\d topics?, \d+ partitions: 0 without a leader, 0 under-replicated, 0 below min",
    "cluster status --json": r'(?s)"cluster_id": "[\w-]{22}".*"address": "',
    "cluster api-versions": r"Produce +0 +0 +13 +13",
    "cluster features": r"group.version +0 +1 +1",
    "cluster log-dirs": r"BROKER +PATH",
    "cluster elect-leaders": "no partition needs an election|not needed",
    "produce": r"^$",
    "consume": "apple|pear",
    "consume --format": r"2\d{3}-\d\d-\d\dT.*\t(a|p)\t(apple|pear)",
    "consume --json": r'"key": "(a|p)", "value": "(apple|pear)", "headers": \[\]',
    "consume --group": "apple|pear",
    "consume --key-type": "apple|pear",
    "consume --internal": r'"group": "billing"',
    "groups list": r"billing +classic +Empty",
    "groups describe": r"(?s)billing  classic  Empty  0 members\nTOPIC.*COMMITTED +END +LAG.*orders +0",
    "groups describe --all": "billing",
    "groups reset-offsets": r"orders +0 +\d",
    "groups reset-offsets --export": r"orders,0,\d",
    "groups delete-offsets": "has no offsets of 1 partition any more",
    "groups delete": "deleted group billing",
    "configs describe": r"retention.ms +60000 +topic",
    "configs alter": "changed 1 setting of (topic orders|all brokers|logger 1)",
    "client-metrics alter": "changed 2 settings of client metrics basics",
    "client-metrics list": r"basics +60000 +org.apache.kafka.",
    "client-metrics describe": r"interval.ms +60000 +client metrics",
    "client-metrics delete": "deleted client metrics basics",
    "quotas set": "ann",
    "quotas list": r"producer_byte_rate.*1000000|1000000",
    "acls add": "User:ann",
    "acls list": r"User:ann.*Read|Read.*User:ann",
    "transactions list": r"TRANSACTIONAL ID +COORDINATOR +PRODUCER ID +STATE",
    "perf produce": r"1,000 records sent, .* records/s .*p50.*p99",
    "perf consume": r"1,000 records read, .* records/s",
    "perf latency": r"100 records, .* ms average.*p99",
    "verifiable produce": r'(?s)"startup_complete".*"producer_send_success".*"tool_data", "sent": 10, "acked": 10',
    "verifiable consume": r'(?s)"partitions_assigned".*"records_consumed".*"offsets_committed".*"shutdown_complete"',
}
"""By the command, and the word of it that makes it another one of the same name: a pattern of what it prints."""
ONLY_READ = {
    "consume --schema-registry",  # tests/cli/consuming
    "users add", "tokens create",  # tests/cli/security: they need logins
    "cluster unregister", "cluster reassign",  # tests/cli/cluster
}  # fmt: skip
"""Their options are read, and other tests run them."""
LINES = b"a:apple\np:pear\n"


def name_of(words: list[str]) -> str:
    """The longest name under which the command is known."""
    names = sorted({*SHOWN, *ONLY_READ}, key=len, reverse=True)
    return next(name for name in names if set(name.split()) <= set(words) and words[0] == name.split()[0])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    ours = Broker(tmp_path_factory.mktemp("broker"), settings)
    ours.start()
    yield ours
    ours.stop()


def test_each_command_of_the_page_shows_what_kafkas_shows(moldau: Moldau) -> None:
    done: set[str] = set()
    for command in COMMANDS:
        words = shlex.split(command)
        if words[0] in OF_FILES:
            continue
        name = name_of(words)
        done.add(name)
        if name in ONLY_READ:
            assert_options_exist(words)
            continue
        ran = moldau(*words, stdin=LINES)
        assert ran.code == 0, (command, ran)
        assert re.search(SHOWN[name], ran.out + ran.err), (command, ran)
    assert done == {*SHOWN, *ONLY_READ}, "patterns of commands that the page does not have"


def test_records_are_read_and_written_as_the_page_says(moldau: Moldau, broker: Broker) -> None:
    moldau("topics", "create", "orders", "--if-not-exists")
    moldau("produce", "orders", "--key-separator", ":", stdin=LINES)
    moldau("consume", "orders", "--group", "billing", "--from-beginning", "-n", "2")
    with Producer(broker.address) as producer:
        producer.send("orders.dlq", b"v", headers=[("__moldau.errors.topic", b"orders")])
    for command in commands_of("Reading and writing records"):
        words = shlex.split(command)
        if words[0] == "pipeline":
            assert_options_exist(words)
        else:
            assert moldau(*words).code == 0, command


IN_BIN = """
connect-distributed connect-mirror-maker connect-plugin-path connect-standalone kafka-acls kafka-broker-api-versions
kafka-client-metrics kafka-cluster kafka-configs kafka-console-consumer kafka-console-producer
kafka-console-share-consumer kafka-consumer-groups kafka-consumer-perf-test kafka-delegation-tokens
kafka-delete-records kafka-dump-log kafka-e2e-latency kafka-features kafka-get-offsets kafka-groups kafka-jmx
kafka-leader-election kafka-log-dirs kafka-metadata-quorum kafka-metadata-shell kafka-producer-perf-test
kafka-reassign-partitions kafka-replica-verification kafka-run-class kafka-server-start kafka-server-stop
kafka-share-consumer-perf-test kafka-share-groups kafka-storage kafka-streams-application-reset kafka-streams-groups
kafka-topics kafka-transactions kafka-verifiable-consumer kafka-verifiable-producer kafka-verifiable-share-consumer
trogdor
"""
"""The scripts of Apache Kafka 4.3's bin/, without .sh."""


def test_each_script_of_kafkas_has_a_command_or_a_reason() -> None:
    rows = re.findall(
        r"^\| (.*?) \|", SECTIONS["From Kafka's scripts"] + SECTIONS["Scripts without a counterpart"], re.M
    )
    named = {word for row in rows for word in re.findall(r"`((?:kafka|connect|trogdor|zookeeper)[\w-]*)", row)}
    assert {*IN_BIN.split()} - named == set()
    assert named - {*IN_BIN.split()} == {
        "kafka-avro-console-consumer", "kafka-json-schema-console-consumer", "kafka-protobuf-console-consumer",
        "zookeeper-server-start", "zookeeper-server-stop", "zookeeper-shell",
    }, "scripts of others, and of Kafka 3"  # fmt: skip


def assert_options_exist(words: list[str]) -> None:
    place = PLACES[words[0]]
    found = getattr(importlib.import_module(place.module), place.name)
    function, rest = (found.commands[words[1]], words[2:]) if isinstance(found, Group) else (found, words[1:])
    read(with_command_config(parameters_of(function)), rest)


def test_the_commands_of_files_have_the_options_of_the_page() -> None:
    others = [shlex.split(command) for command in COMMANDS if command.split()[0] in OF_FILES]
    assert {words[0] for words in others} == {*OF_FILES}
    for words in others:
        if words[:2] != ["server", "start"]:  # its options are read by another parser, see test_server.py
            assert_options_exist(words)
