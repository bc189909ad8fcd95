"""Apache Kafka's own command-line tools, as their users call them."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.client.blocking import BlockingLink
from moldau.peers.address import bootstrap_addresses
from moldau.protocol.apis import HEARTBEAT
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from tests.clients.kafka_tools import (
    ACLS,
    CLIENT_METRICS,
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_PERF,
    ELECTION,
    GROUPS,
    OFFSETS,
    PRODUCER_PERF,
    REASSIGN,
    SECONDS_MAX,
    TOPICS,
    TRANSACTIONS,
    Tools,
)
from tests.raw_transactions import Producer
from tests.versions import KAFKA, KAFKA_BEFORE, releases

pytestmark = pytest.mark.check

Tool = Callable[..., str]


@pytest.fixture(scope="class", params=releases(KAFKA, KAFKA_BEFORE))
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with Tools(tmp_path_factory.mktemp("tools"), request.param) as tools:
        yield tools


@pytest.fixture
def tool(tools: Tools, broker: Broker) -> Tool:
    """Runs one tool against the broker and returns what it printed; it must succeed, or end with `code`."""
    server = ("--bootstrap-server", broker.address)
    return lambda name, *options, **named: tools.run(name, *server, *options, **named)


class TestKafkaTools:
    def test_kafka_topics_creates_lists_describes_alters_and_deletes(self, tool: Tool, topic: str) -> None:
        tool(TOPICS, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=3600000")
        assert topic in tool(TOPICS, "--list").split()
        tool(TOPICS, "--alter", "--topic", topic, "--partitions", "3")
        described = tool(TOPICS, "--describe", "--topic", topic)
        assert "PartitionCount: 3" in described
        assert "retention.ms=3600000" in described
        assert len(re.findall(r"Leader: \d+", described)) == 3
        tool(TOPICS, "--delete", "--topic", topic)
        assert topic not in tool(TOPICS, "--list").split()

    def test_perf_producer_and_console_consumer_agree_and_the_group_shows_it(
        self, tool: Tool, topic: str, group: str
    ) -> None:
        tool(TOPICS, "--create", "--topic", topic, "--partitions", "3")
        size = ("--num-records", "20000", "--record-size", "200", "--throughput", "-1")
        assert "20000 records sent" in tool(PRODUCER_PERF, "--topic", topic, *size)
        assert tool(OFFSETS, "--topic", topic).strip().count(":") == 6
        reading = ("--topic", topic, "--group", group, "--from-beginning", "--timeout-ms", "20000")
        first = tool(CONSOLE_CONSUMER, *reading, "--max-messages", "15000").splitlines()
        assert [len(line) for line in first] == [200] * 15000
        assert group in tool(GROUPS, "--list").split()
        described = tool(GROUPS, "--describe", "--group", group)
        positions = re.findall(rf"^{group}\s+{topic}\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)", described, re.MULTILINE)
        assert sum(int(end) for _, end, _ in positions) == 20000
        assert sum(int(lag) for _, _, lag in positions) == 5000
        second = tool(CONSOLE_CONSUMER, *reading, "--max-messages", "5000").splitlines()
        assert len(second) == 5000
        tool(GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
        again = tool(CONSOLE_CONSUMER, *reading, "--max-messages", "1").splitlines()
        assert len(again) == 1
        tool(GROUPS, "--delete", "--group", group)
        assert group not in tool(GROUPS, "--list").split()

    def test_console_producer_and_configs(self, tool: Tool, topic: str) -> None:
        lines = [f"key-{n}\tvalue {n}" for n in range(50)]
        reading = ("--topic", topic, "--from-beginning", "--max-messages", "50", "--timeout-ms", "20000")
        keys = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=\t")
        tool(CONSOLE_PRODUCER, "--topic", topic, *keys, text="\n".join(lines) + "\n")
        shown = tool(CONSOLE_CONSUMER, *reading, "--formatter-property", "print.key=true")
        assert sorted(shown.splitlines()) == sorted(lines)
        entity = ("--entity-type", "topics", "--entity-name", topic)
        tool(CONFIGS, *entity, "--alter", "--add-config", "max.message.bytes=2000000")
        assert "max.message.bytes=2000000" in tool(CONFIGS, *entity, "--describe")
        tool(CONFIGS, *entity, "--alter", "--delete-config", "max.message.bytes")
        assert "max.message.bytes" not in tool(CONFIGS, *entity, "--describe")

    def test_perf_consumer_reads_all(self, tool: Tool, topic: str) -> None:
        tool(TOPICS, "--create", "--topic", topic, "--partitions", "2")
        tool(PRODUCER_PERF, "--topic", topic, "--num-records", "5000", "--record-size", "100", "--throughput", "-1")
        shown = tool(CONSUMER_PERF, "--topic", topic, "--num-records", "5000", "--timeout", "20000")
        assert "5000" in [column.strip() for column in shown.splitlines()[-1].split(",")]

    def test_transactions_are_listed_described_and_aborted(self, tool: Tool, broker: Broker, topic: str) -> None:
        tool(TOPICS, "--create", "--topic", topic, "--partitions", "1")
        producer = Producer(broker.address, f"{topic}-writer")
        producer.write(topic)
        producer.close()
        listed = tool(TRANSACTIONS, "list", "--transactional-id-pattern", f"{topic}.*").splitlines()
        assert [line.split()[0] for line in listed[1:]] == [f"{topic}-writer"]
        described = tool(TRANSACTIONS, "describe", "--transactional-id", f"{topic}-writer").splitlines()[1].split()
        assert described[2:5] == [str(producer.producer_id), str(producer.epoch), "Ongoing"]
        assert described[-1] == f"{topic}-0"
        hanging = tool(TRANSACTIONS, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
        assert len(hanging.splitlines()) == 1
        where = ("--topic", topic, "--partition", "0")
        tool(TRANSACTIONS, "abort", *where, "--start-offset", "0")
        known = tool(TRANSACTIONS, "describe-producers", *where).splitlines()[1].split()
        assert (known[0], known[-1]) == (str(producer.producer_id), "None")

    def test_access_rights_are_said_to_be_switched_off(self, tool: Tool) -> None:
        right = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "events")
        for options in (("--list",), ("--add", *right), ("--remove", "--force", *right)):
            assert "SecurityDisabledException" in tool(ACLS, *options, code=1)

    def test_settings_of_a_group_are_changed_and_told(self, tool: Tool, group: str) -> None:
        entity = ("--entity-type", "groups", "--entity-name", group)
        tool(CONFIGS, *entity, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
        assert "consumer.session.timeout.ms=50000" in tool(CONFIGS, *entity, "--describe")
        assert group in tool(CONFIGS, "--entity-type", "groups", "--describe")
        refused = tool(CONFIGS, *entity, "--alter", "--add-config", "consumer.session.timeout.ms=5", code=1)
        assert "InvalidConfigurationException: consumer.session.timeout.ms is 5, but must be within" in refused
        tool(CONFIGS, *entity, "--alter", "--delete-config", "consumer.session.timeout.ms")
        assert "50000" not in tool(CONFIGS, *entity, "--describe")

    def test_a_loggers_level_is_changed_while_the_broker_runs(self, tool: Tool, broker: Broker, group: str) -> None:
        entity = ("--entity-type", "broker-loggers", "--entity-name", "1")
        link = BlockingLink(bootstrap_addresses(broker.address)[0], "a member", SECONDS_MAX * 1000)
        assert "root=INFO" in tool(CONFIGS, *entity, "--describe")
        link.call(HEARTBEAT, HeartbeatRequest(group_id=group, member_id="before"))
        tool(CONFIGS, *entity, "--alter", "--add-config", "moldau.groups=DEBUG")
        link.call(HEARTBEAT, HeartbeatRequest(group_id=group, member_id="after"))
        link.close()
        assert '"member": "after"' in broker.log()
        assert '"member": "before"' not in broker.log()
        tool(CONFIGS, *entity, "--alter", "--delete-config", "moldau.groups")
        assert "moldau.groups=INFO" in tool(CONFIGS, *entity, "--describe")

    def test_subscriptions_to_metrics_of_clients_are_made_told_and_deleted(self, tool: Tool) -> None:
        tool(CLIENT_METRICS, "--alter", "--name", "mine", "--interval", "5000", "--metrics", "org.apache.kafka.")
        assert tool(CLIENT_METRICS, "--list").split() == ["mine"]
        assert "interval.ms=5000" in tool(CLIENT_METRICS, "--describe", "--name", "mine")
        tool(CLIENT_METRICS, "--delete", "--name", "mine")
        assert tool(CLIENT_METRICS, "--list").split() == []
        refused = tool(CLIENT_METRICS, "--alter", "--name", "mine", "--interval", "5", code=1)
        assert "interval.ms must be 100 to 3600000" in refused

    def test_what_has_nothing_to_do_on_one_broker_says_so(self, tool: Tool, topic: str, tmp_path: Path) -> None:
        tool(TOPICS, "--create", "--topic", topic, "--partitions", "2")
        elect = ("--election-type", "preferred", "--topic", topic, "--partition")
        assert f"Valid replica already elected for partitions {topic}-0" in tool(ELECTION, *elect, "0")
        assert "UnknownTopicOrPartitionException" in tool(ELECTION, *elect, "7", code=1)
        plan, wrong = tmp_path / "plan.json", tmp_path / "wrong.json"
        for path, replicas in ((plan, [1]), (wrong, [2])):
            moves = [{"topic": topic, "partition": number, "replicas": replicas} for number in range(2)]
            path.write_text(json.dumps({"version": 1, "partitions": moves}))
        done = tool(REASSIGN, "--reassignment-json-file", str(plan), "--execute", "--throttle", "1000")
        assert "Successfully started partition reassignments" in done
        verified = tool(REASSIGN, "--reassignment-json-file", str(plan), "--verify")
        assert verified.count("is completed") == 2
        assert "throttled" not in tool(CONFIGS, "--entity-type", "brokers", "--entity-name", "1", "--describe")
        assert "No partition reassignments found." in tool(REASSIGN, "--list")
        tool(REASSIGN, "--reassignment-json-file", str(wrong), "--execute", code=1)

    @pytest.mark.parametrize(
        ("entity", "quota"),
        [
            (("--entity-type", "users", "--entity-name", "CN=alice, O=a b"), "producer_byte_rate=1048576.0"),
            (("--entity-type", "users", "--entity-default"), "controller_mutation_rate=1000.5"),
            (("--entity-type", "clients", "--entity-name", "quick"), "consumer_byte_rate=1.0E7"),
            (("--user", "bob", "--client", "quick"), "request_percentage=150.0"),
            (("--entity-type", "users", "--entity-name", "c", "--entity-type", "clients", "--entity-default"),
             "request_percentage=150.0"),
            (("--entity-type", "ips", "--entity-name", "10.9.8.7"), "connection_creation_rate=1000.0"),
            (("--entity-type", "ips", "--entity-default"), "connection_creation_rate=100000.0"),
        ],
    )  # fmt: skip
    def test_kafka_configs_sets_describes_and_removes_quotas(
        self, tool: Tool, entity: tuple[str, ...], quota: str
    ) -> None:
        assert quota.partition("=")[0] not in tool(CONFIGS, *entity, "--describe")
        assert "Completed updating" in tool(CONFIGS, *entity, "--alter", "--add-config", quota)
        assert quota in tool(CONFIGS, *entity, "--describe")
        tool(CONFIGS, *entity, "--alter", "--delete-config", quota.partition("=")[0])
        assert quota not in tool(CONFIGS, *entity, "--describe")

    def test_kafka_configs_says_why_a_quota_is_refused(self, tool: Tool) -> None:
        user = ("--entity-type", "users", "--entity-name", "alice")
        wrong = tool(CONFIGS, *user, "--alter", "--add-config", "producer_byte_rate=0", code=1)
        assert "producer_byte_rate must be above 0" in wrong

    def test_kafka_configs_makes_a_user_beside_its_quotas(self, tool: Tool) -> None:
        user = ("--entity-type", "users", "--entity-name", "alice")
        for given in ("SCRAM-SHA-256=[iterations=4096,password=secret]", "consumer_byte_rate=1.0E7"):
            assert "Completed updating" in tool(CONFIGS, *user, "--alter", "--add-config", given)
        described = tool(CONFIGS, *user, "--describe")
        assert "SCRAM-SHA-256=iterations=4096" in described and "consumer_byte_rate=1.0E7" in described
        for name in ("SCRAM-SHA-256", "consumer_byte_rate"):
            tool(CONFIGS, *user, "--alter", "--delete-config", name)
