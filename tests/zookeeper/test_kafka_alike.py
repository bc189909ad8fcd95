"""A Kafka 3.9 in ZooKeeper mode and our cluster do the same: what both leave in ZooKeeper is compared by field.

What Kafka left is recorded.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

import moldau
from harness import apache_kafka
from harness.listening import Broker
from harness.patience import stretched, wait_until, within
from harness.zookeeper import ZooKeeper
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.controller import MorePartitions, NewTopic
from moldau.cluster.state import layout
from moldau.cluster.state.image import Endpoint
from moldau.config import broker_config
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime
from tests import refereed

SECONDS_MAX = 450
"""Who asks Kafka may have to wait until Maven has brought its jars."""
pytestmark = pytest.mark.timeout(SECONDS_MAX)
RECORDING = Path(__file__).parent / "recordings" / "alike.jsonl.xz"
PORT = 9092
"""Of the broker, where its own stands."""
DRAWN = ("id", "topic_id", "timestamp")
"""Fields that are another value each time."""
SETTINGS = {"broker.rack": "r1", "offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "1"}
Tree = dict[str, Any]

KAFKA_ALONE: Tree = {
    "/config/changes/config_change_0000000000": {"version": 2, "entity_path": "topics/b"},
    "/config/changes/config_change_0000000001": {"version": 2, "entity_path": "brokers/1"},
    "/feature": {"version": 2, "status": 1, "features": {}},
}
"""Kafka keeps notifications for 15 minutes, since each broker reads them; ours learn of changes from the controller. No
feature of KIP-584 was ever versioned in ZooKeeper."""
OURS_ALONE: Tree = {
    "/config/groups": None,
    "/config/client-metrics": None,
    "/moldau": None,
    "/moldau/brokers": None,
    "/moldau/deleted_topics": None,
    "/moldau/directories": None,
}
"""Settings of groups came to Kafka after ZooKeeper; what is below /moldau is ours."""
FIELDS_OF_KAFKA_ALONE = {"/controller": {"kraftControllerEpoch": -1}}
"""It was for migrations from ZooKeeper."""


def tree(connect: str) -> Tree:
    """Every node below the chroot: its document, its text if that is not JSON, None without data."""
    client, found = KazooClient(connect), Tree()

    def walk(path: str) -> None:
        data = client.get(path)[0]
        found[path] = comparable(path, json.loads(data)) if data else None
        for name in client.get_children(path):
            walk(f"{path.rstrip('/')}/{name}")

    client.start(stretched())
    try:
        walk("/")
    finally:
        client.stop()
        client.close()
    return found


def comparable(path: str, document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    fields = {name: type(value).__name__ if name in DRAWN else value for name, value in document.items()}
    return {name: value for name, value in fields.items() if name not in FIELDS_OF_KAFKA_ALONE.get(path, {})}


def ask_kafka(broker: Broker) -> None:
    with moldau.Admin(f"{broker.host}:{broker.port}") as admin:
        admin.create_topic("a", partitions=2, configs={"retention.ms": 5, "cleanup.policy": "compact,delete"})
        admin.create_topic("b")
        admin.create_topic("c")
        admin.create_partitions("a", 3)
        admin.configs.alter("topic", "b", {"segment.bytes": 2_000_000})
        admin.configs.alter("broker", "1", {"log.cleaner.threads": 2})
        admin.delete_topics(["c"])
    with moldau.Producer(f"{broker.host}:{broker.port}") as producer:
        producer.send("b", b"for a producer id")


def kafkas(connect: str, folder: Path) -> Tree:
    """What a Kafka leaves."""
    with apache_kafka.with_zookeeper(folder, connect, SETTINGS) as broker:
        ask_kafka(broker)
        assert wait_until(lambda: "/brokers/topics/c" not in tree(connect))
        return dict(json.loads(json.dumps(tree(connect)).replace(str(broker.port), str(PORT))))


async def do_the_same(connect: str) -> Tree:
    config, _ = broker_config({**SETTINGS, "node.id": "1"})
    session = await ZooKeeperSession.open(ZooKeeperAccess(connect, stretched()), Runtime())
    cluster = await Cluster.open(session, config, Runtime())
    await cluster.registration.register([Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", PORT)])
    own = [("retention.ms", "5"), ("cleanup.policy", "compact,delete")]
    await cluster.topics.create([NewTopic("a", 2, configs=own), NewTopic("b"), NewTopic("c")])
    await cluster.topics.create_partitions([MorePartitions("a", 3)])
    await cluster.configs.alter_topics([("b", [Alteration("segment.bytes", OpType.SET, "2000000")])])
    await cluster.configs.alter_broker("1", [Alteration("log.cleaner.threads", OpType.SET, "2")])
    await cluster.topics.delete([("c", None)])
    await cluster.topics.forget_deleted(list(cluster.image.deleted))
    first = cluster.producer_ids.next()
    assert not isinstance(first, int)
    await first
    found = await asyncio.to_thread(tree, connect)
    await cluster.close()
    return found


def test_our_tree_is_that_of_kafka_but_for_what_is_listed_here(single: ZooKeeper, tmp_path: Path) -> None:
    with refereed.answers(RECORDING) as known:
        theirs: Tree = known.to("what Kafka leaves", lambda: kafkas(f"{single.connect}/alike-kafka", tmp_path))
    ours = asyncio.run(within(do_the_same(f"{single.connect}/alike-ours"), 60))
    assert {path: theirs[path] for path in theirs.keys() - ours.keys()} == KAFKA_ALONE
    assert {path: ours[path] for path in ours.keys() - theirs.keys()} == OURS_ALONE
    both = [path for path in theirs if path in ours]
    assert {path: ours[path] for path in both} == {path: theirs[path] for path in both}
    assert theirs["/brokers/topics/a"]["partitions"] == {"0": [1], "1": [1], "2": [1]}
    assert theirs[layout.PRODUCER_ID_BLOCK]["block_end"] == "999"
