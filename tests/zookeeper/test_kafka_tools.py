"""The tools of Apache Kafka 2.8, which write and read in ZooKeeper themselves, on the tree of our cluster."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness import apache_kafka
from harness.patience import within
from harness.zookeeper import ZooKeeper
from moldau.cluster.controlling.acl_changes import AclChanges
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state.acls import CHANGES, AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.cluster.state.image import TopicImage
from moldau.metadata_store.store import children_of
from moldau.names import TopicPartition, short_id
from tests.zookeeper.members import Members, members

VERSION = "2.8.2"
"""The last release whose tools change topics in ZooKeeper."""
SECONDS_MAX = 450
"""The first test may have to wait until Maven has brought Kafka's jars."""
pytestmark = [pytest.mark.check, pytest.mark.timeout(SECONDS_MAX)]
TOPICS, CONFIGS, SHELL = "TopicCommand", "ConfigCommand", "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"
REASSIGN, PREFER = "ReassignPartitionsCommand", "PreferredReplicaLeaderElectionCommand"
ACLS = "AclCommand"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALICE, BOB = (AclEntry(f"User:{name}", "*", 3, AclPermission.ALLOW) for name in ("alice", "bob"))
Tool = Callable[..., Awaitable[str]]


def play(single: ZooKeeper, name: str, scenario: Callable[[Members, Tool], Awaitable[None]], **settings: str) -> None:
    connect = f"{single.connect}/tools-{name}"

    async def run(command: str, *arguments: str, code: int = 0) -> str:
        """What the tool says: its output, then its errors."""
        main = command if "." in command else f"kafka.admin.{command}"
        server = ("-server", connect) if main == SHELL else ("--zookeeper", connect)
        if command == ACLS:
            server = ("--authorizer-properties", f"zookeeper.connect={connect}")
        java = ["java", *apache_kafka.JVM, "-cp", apache_kafka.class_path(VERSION), main, *server, *arguments]
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*java, stdin=nothing, stdout=pipe, stderr=pipe)
        said = b"".join(await process.communicate()).decode()
        assert process.returncode == code, said
        return said

    async def whole() -> None:
        async with members(connect, 3, **settings) as found:
            await scenario(found, run)

    asyncio.run(within(whole(), SECONDS_MAX))


def described(text: str) -> dict[str, tuple[str, int, list[tuple[int, ...]]]]:
    """What `kafka-topics --describe` says of each topic: its id, how many replicas a partition has, and of each
    partition the leader, the replicas and those in sync."""
    found: dict[str, tuple[str, int, list[tuple[int, ...]]]] = {}
    for line in text.splitlines():
        if whole := re.match(r"Topic: (\S+)\tTopicId: (\S+)\tPartitionCount: \d+\tReplicationFactor: (\d+)", line):
            found[whole[1]] = (whole[2], int(whole[3]), [])
        elif part := re.match(r"\tTopic: (\S+)\tPartition: \d+\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)", line):
            found[part[1]][2].append(tuple(int(one) for one in part.groups()[1:]))
    return found


def as_described(topic: TopicImage) -> tuple[str, int, list[tuple[int, ...]]]:
    return short_id(topic.id), 1, [(part.leader, *part.replicas, *part.isr) for part in topic.partitions]


def test_kafka_topics_describes_creates_enlarges_and_deletes(single: ZooKeeper) -> None:
    async def scenario(found: Members, run: Tool) -> None:
        await found.controller.topics.create([NewTopic("ours", 4, configs=[("retention.ms", "7")])])
        said = await run(TOPICS, "--describe")
        assert described(said) == {"ours": as_described(found.image.topics["ours"])}
        assert "Configs: retention.ms=7" in said
        options = ("--topic", "theirs", "--partitions", "5", "--replication-factor", "1")
        await run(
            TOPICS, "--create", *options, "--config", "segment.bytes=2000000", "--config", "message.format.version=2.8"
        )
        image = await found.shown(lambda image: "theirs" in image.topics)
        theirs = image.topics["theirs"]
        assert theirs.overrides == {"segment.bytes": "2000000", "message.format.version": "2.8"}
        assert sorted({part.leader for part in theirs.partitions}) == [1, 2, 3]
        assert described(await run(TOPICS, "--describe", "--topic", "theirs")) == {"theirs": as_described(theirs)}
        assert "Adding partitions succeeded" in await run(TOPICS, "--alter", "--topic", "theirs", "--partitions", "8")
        image = await found.shown(lambda image: len(image.topics["theirs"].partitions) == 8)
        assert image.topics["theirs"].partitions[:5] == theirs.partitions
        assert "already exists" in await run(TOPICS, "--create", *options, code=1)
        await run(TOPICS, "--delete", "--topic", "ours")
        await found.shown(lambda image: list(image.topics) == ["theirs"])
        assert described(await run(TOPICS, "--describe")) == {"theirs": as_described(found.image.topics["theirs"])}
        assert described(await run(TOPICS, "--describe", "--unavailable-partitions")) == {}

    play(single, "topics", scenario)


def test_kafka_configs_changes_the_settings_of_topics_and_of_brokers_that_are_away(single: ZooKeeper) -> None:
    async def scenario(found: Members, run: Tool) -> None:
        await found.controller.topics.create([NewTopic("a", configs=[("retention.ms", "7")])])
        a = ("--entity-type", "topics", "--entity-name", "a")
        await run(CONFIGS, "--alter", *a, "--add-config", "segment.bytes=2000000,cleanup.policy=[compact,delete]")
        changed = {"segment.bytes": "2000000", "cleanup.policy": "compact,delete", "retention.ms": "7"}
        await found.shown(lambda image: image.topics["a"].overrides == changed)
        await run(CONFIGS, "--alter", *a, "--delete-config", "retention.ms,cleanup.policy")
        await found.shown(lambda image: image.topics["a"].overrides == {"segment.bytes": "2000000"})
        assert "Configs for topic 'a' are segment.bytes=2000000" in await run(CONFIGS, "--describe", *a)
        away = ("--entity-type", "brokers", "--entity-name", "9")
        await run(CONFIGS, "--alter", *away, "--add-config", "log.cleaner.threads=2")
        await found.shown(lambda image: image.broker_overrides == {"9": {"log.cleaner.threads": "2"}})

    play(single, "configs", scenario)


def test_a_move_is_in_progress_until_it_is_cancelled(single: ZooKeeper, tmp_path: Path) -> None:
    async def scenario(found: Members, run: Tool) -> None:
        await found.controller.topics.create([NewTopic("a", assignments=[(0, [1])])])
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [2]}]}))
        await run(REASSIGN, "--execute", "--reassignment-json-file", str(plan))
        await found.shown(lambda image: image.topics["a"].partitions[0].replicas == (2, 1))
        verify = (REASSIGN, "--verify", "--reassignment-json-file", str(plan))
        assert "Reassignment of partition a-0 is still in progress" in await run(*verify)
        assert await found.controller.topics.reassign([(TopicPartition("a", 0), None)]) == [None]
        while "is still in progress" in (said := await run(*verify)):
            pass
        assert "There is no active reassignment of partition a-0, but replica set is 1 rather than 2" in said
        assert "Successfully started preferred replica election" in await run(PREFER)
        assert found.image.topics["a"].partitions[0].replicas == (1,)

    play(single, "moves", scenario)


def test_zookeeper_shell_shows_the_documented_nodes(single: ZooKeeper) -> None:
    async def scenario(found: Members, run: Tool) -> None:
        await found.controller.topics.create([NewTopic("a", assignments=[(0, [2])])])

        async def node(path: str) -> Any:
            said = await run(SHELL, "get", path)
            return json.loads(next(line for line in said.splitlines() if line.startswith("{")))

        state = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 0, "isr": [2]}
        assert await node("/brokers/topics/a/partitions/0/state") == state
        registered = await node("/brokers/ids/2")
        assert (registered["version"], registered["endpoints"]) == (5, ["PLAINTEXT://host2:9092"])
        assert (await node("/controller"))["brokerid"] == 1
        await run(SHELL, "create", "/admin/delete_topics/a")
        await found.shown(lambda image: not image.topics)

    play(single, "shell", scenario)


def test_kafka_acls_lists_adds_and_removes_access_rights(single: ZooKeeper) -> None:
    orders, prefixed = AclPattern(2, "orders"), AclPattern(2, "or", AclPatternType.PREFIXED)

    async def scenario(found: Members, run: Tool) -> None:
        acting = found.controller
        changes = AclChanges(acting.metadata, acting.queue)
        await changes.create([(orders, ALICE), (prefixed, ALICE)])
        said = await run(ACLS, "--list")
        assert "resourceType=TOPIC, name=orders, patternType=LITERAL" in said
        assert "resourceType=TOPIC, name=or, patternType=PREFIXED" in said
        assert said.count("principal=User:alice, host=*, operation=READ, permissionType=ALLOW") == 2
        bob = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", "orders")
        await run(ACLS, "--add", *bob)
        await found.shown(lambda image: image.acls == {orders: (ALICE, BOB), prefixed: (ALICE,)})
        await changes.delete([lambda pattern, entry: entry == ALICE])
        assert "alice" not in await run(ACLS, "--list")
        await run(ACLS, "--remove", "--force", *bob)
        await found.shown(lambda image: image.acls == {})
        prefix = ("--transactional-id", "x", "--resource-pattern-type", "prefixed")
        await run(ACLS, "--add", "--allow-principal", "User:bob", *prefix)
        pattern = AclPattern(5, "x", AclPatternType.PREFIXED)
        await found.shown(lambda image: [*image.acls] == [pattern])
        while any([await acting.queue.read(children_of(path)) for path in CHANGES]):
            await asyncio.sleep(0.01)

    play(single, "acls", scenario, authorizer_class_name=STANDARD)
