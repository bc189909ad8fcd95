"""Apache Kafka's own tools, and ours, tell the truth of three brokers, one of them dead; one JVM for all of Kafka's."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import apache_kafka
from harness.patience import stretched, wait_until
from moldau import Admin, Producer, TopicPartition
from moldau.cli import main
from moldau.client.administration.configs import Resource
from moldau.testing import Cluster
from tests.clients.kafka_tools import ELECTION, LOG_DIRS, REASSIGN, TOPICS, Tools
from tests.clients.test_java_client import QUICK_START

Tool = Callable[..., str]
pytestmark = [pytest.mark.check, pytest.mark.timeout(stretched(300))]


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[Tool]:
    """Runs one of Kafka's tools, and returns what it printed; it must succeed."""
    with Tools(tmp_path) as tools:
        yield tools.run


def named(text: str) -> list[str]:
    """The partitions that `kafka-topics --describe` lists."""
    return sorted(f"{topic}-{number}" for topic, number in re.findall(r"Topic: (\S+)\s+Partition: (\d+)", text))


def described(cluster: Cluster, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """What a command of ours prints with `--json`."""
    capsys.readouterr()
    assert main.run([*words, "--json", "-b", cluster.address]) == 0
    found = json.loads(capsys.readouterr().out)
    return found[0] if isinstance(found, list) else found


def leaders(admin: Admin, topic: str) -> list[int]:
    parts = admin.describe_topics([topic])[topic].partitions
    return [parts[number].leader for number in sorted(parts)]


def test_tools_tell_the_truth_when_one_of_three_brokers_is_dead(tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=2) as cluster,
        Admin(cluster.address) as admin,
    ):
        one, two, three = cluster.brokers
        server = ("--bootstrap-server", cluster.address)
        admin.create_topic("all", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
        admin.create_topic("strict", assignment={0: [3, 1, 2]}, configs={"min.insync.replicas": 3})
        admin.create_topic("alone", assignment={0: [2], 1: [1]}, configs={"min.insync.replicas": 1})
        with Producer(cluster.address) as producer:
            for number in range(10):
                producer.send("all", b"%d" % number, partition=number % 2)

        def listed(option: str) -> list[str]:
            return named(tool(TOPICS, *server, "--describe", option))

        assert listed("--under-replicated-partitions") == []
        two.kill()
        assert wait_until(lambda: (leaders(admin, "all"), leaders(admin, "alone")) == ([1, 3], [-1, 1]))
        assert wait_until(lambda: len(described(cluster, capsys, "cluster", "status")["unhealthy"]) == 4)
        assert listed("--under-replicated-partitions") == ["all-0", "all-1", "alone-0", "strict-0"]
        assert listed("--under-min-isr-partitions") == ["alone-0", "strict-0"]
        assert listed("--at-min-isr-partitions") == ["all-0", "all-1", "alone-1"]
        assert listed("--unavailable-partitions") == ["alone-0"]
        ours = described(cluster, capsys, "topics", "describe", "alone")["partitions"]
        assert ours == [
            {"partition": 0, "leader": None, "replicas": [2], "isr": [], "first_offset": None, "end_offset": None},
            {"partition": 1, "leader": 1, "replicas": [1], "isr": [1], "first_offset": 0, "end_offset": 0},
        ]
        status = described(cluster, capsys, "cluster", "status")
        assert (status["without_leader"], status["under_replicated"]) == (1, 4)
        assert status["controller"] in (1, 3)

        two.start()
        assert wait_until(lambda: listed("--under-replicated-partitions") == [])
        assert leaders(admin, "all") == [1, 3]
        elected = tool(ELECTION, *server, "--election-type", "preferred", "--all-topic-partitions")
        assert "Successfully completed leader election (PREFERRED) for partitions all-1" in elected
        assert leaders(admin, "all") == [1, 2]

        printed = tool(LOG_DIRS, *server, "--describe", "--topic-list", "all")
        places = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        found = {
            (broker["broker"], part["partition"]): (part["offsetLag"], part["isFuture"], part["size"])
            for broker in places["brokers"]
            for folder in broker["logDirs"]
            for part in folder["partitions"]
        }
        sizes = {name: found[1, name][2] for name in ("all-0", "all-1")}
        assert min(sizes.values()) > 0
        assert found == {(broker, name): (0, False, sizes[name]) for broker in (1, 2, 3) for name in sizes}
        assert one.running
        assert three.running


def test_an_unclean_election_is_made_where_it_is_asked_for(tool: Tool) -> None:
    with Cluster(brokers=3) as cluster, Admin(cluster.address) as admin:
        _, two, three = cluster.brokers
        admin.create_topic("pair", assignment={0: [2, 3]}, configs={"min.insync.replicas": 1})
        three.kill()
        assert wait_until(lambda: admin.describe_topics(["pair"])["pair"].partitions[0].isr == (2,))
        with Producer(cluster.address, acks="all") as producer:
            producer.send("pair", b"lost", partition=0)
        two.kill()
        assert wait_until(lambda: leaders(admin, "pair") == [-1])
        three.start()
        assert wait_until(lambda: 3 in admin.describe_cluster().brokers)
        assert leaders(admin, "pair") == [-1]
        where = ("--topic", "pair", "--partition", "0")
        elected = tool(ELECTION, "--bootstrap-server", cluster.address, "--election-type", "unclean", *where)
        assert "Successfully completed leader election (UNCLEAN) for partitions pair-0" in elected
        assert leaders(admin, "pair") == [3]
        two.start()
        assert wait_until(lambda: admin.describe_topics(["pair"])["pair"].partitions[0].isr == (2, 3))
        assert admin.watermarks("pair")[TopicPartition("pair", 0)] == (0, 0)


def test_kafkas_verification_reads_the_same_from_all_replicas() -> None:
    with Cluster(brokers=3, default_replication_factor=3) as cluster:
        cluster.create_topic("all", partitions=2)
        with Producer(cluster.address, acks="all") as producer:
            for number in range(10):
                producer.send("all", b"%d" % number, partition=number % 2)
        options = ("--broker-list", cluster.address, "--topics-include", "all", "--report-interval-ms", "500")
        classes = apache_kafka.class_path(apache_kafka.ZOOKEEPER_VERSION)
        command = ["java", *QUICK_START, "-cp", classes, "org.apache.kafka.tools.ReplicaVerificationTool", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as java:
            assert java.stdout is not None
            try:
                said = next((line for line in java.stdout if "max lag is 0 for partition" in line), "")
            finally:
                java.kill()
        assert "at offset 5 among 2 partitions" in said


def test_what_kafkas_tool_has_throttled_goes_with_the_move_although_nobody_verifies_it(
    tool: Tool, tmp_path: Path
) -> None:
    with Cluster(brokers=3) as cluster, Admin(cluster.address) as admin:
        admin.create_topic("pair", assignment={0: [1, 2], 1: [1, 2], 2: [1, 2]})
        with Producer(cluster.address, acks="all") as producer:
            for number in range(300):
                producer.send("pair", bytes(10_000), partition=number % 3)
        plan = tmp_path / "plan.json"
        replicas = ([2, 3], [3, 1], [1, 2])  # the last one stays where it is
        moves = [{"topic": "pair", "partition": number, "replicas": to} for number, to in enumerate(replicas)]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))
        executed = ("--bootstrap-server", cluster.address, "--reassignment-json-file", str(plan), "--execute")
        assert "The inter-broker throttle limit was set to 200000" in tool(REASSIGN, *executed, "--throttle", "200000")

        def throttled() -> list[str]:
            kinds = [(Resource.TOPIC, "pair"), *((Resource.BROKER, number) for number in "123")]
            entries = [one for found in admin.configs.describe_all(kinds).values() for one in found]
            return sorted({one.name for one in entries if "throttled" in one.name and not one.is_default})

        assert admin.list_reassignments()
        assert len(throttled()) == 4
        assert wait_until(lambda: not admin.list_reassignments())
        assert throttled() == []
