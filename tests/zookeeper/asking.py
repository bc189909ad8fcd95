"""What one broker says of its cluster: each question goes to that broker only, on a connection of its own."""

import asyncio
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from moldau.peers.address import parse_address
from moldau.peers.link import connect
from moldau.protocol.apis import DESCRIBE_CLUSTER, DESCRIBE_CONFIGS, METADATA, Api
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.metadata import MetadataRequest

DIAL_MS = 2_000
ANSWER_MS = 10_000
TOPIC = 2
"""The kind of a resource that is a topic."""
Partition = tuple[int, int, list[int], list[int]]
"""Its leader, the leader's epoch, replicas and in-sync replicas."""
Topics = dict[str, tuple[uuid.UUID, list[Partition]]]


class View(NamedTuple):
    brokers: set[int]
    controller: int
    topics: Topics


def asked(address: str, api: Api, request: Any) -> Any:
    """Raises `KafkaError`."""

    async def whole() -> Any:
        link = await connect(parse_address(address), "test", DIAL_MS)
        try:
            return await link.call(api, request, ANSWER_MS)
        finally:
            link.connection.close()

    return asyncio.run(whole())


def view_of(address: str) -> View:
    """Raises `KafkaError`."""
    reply = asked(address, METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False))
    topics: Topics = {}
    for topic in reply.topics:
        parts = sorted(topic.partitions, key=lambda part: part.partition_index)
        topics[topic.name] = (
            topic.topic_id,
            [(part.leader_id, part.leader_epoch, part.replica_nodes, part.isr_nodes) for part in parts],
        )
    controller = asked(address, DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request()).controller_id
    return View({broker.node_id for broker in reply.brokers}, controller, topics)


def settings_of(address: str, names: Iterable[str], setting: str) -> dict[str, str | None]:
    """One setting of each topic. Raises `KafkaError`."""
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[setting]) for name in names
    ]
    reply = asked(address, DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    return {one.resource_name: one.configs[0].value if one.configs else None for one in reply.results}
