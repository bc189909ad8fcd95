"""What Kafka 2.8's tools with `--zookeeper` write into the store of two brokers."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from moldau.metadata_store.store import Create, NodeOperation, node_at
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import TIMEOUT_S, Member, Members


def created(path: str, **document: Any) -> Create:
    return Create(path, json.dumps(document).encode())


def topic(name: str, *replicas: Sequence[int], config: dict[str, str] | None = None) -> list[NodeOperation]:
    """What `kafka-topics --zookeeper --create` of Kafka 2.8 writes."""
    partitions = {str(number): list(brokers) for number, brokers in enumerate(replicas)}
    node = created(
        f"/brokers/topics/{name}", version=3, partitions=partitions, adding_replicas={}, removing_replicas={}
    )
    return [created(f"/config/topics/{name}", version=1, config=config or {}), node]


async def two(members: Members) -> tuple[Member, ModelSession]:
    """The controller of two brokers, and the session of a tool."""
    for number in (1, 2):
        await members.join(number)
    await members.shown(lambda image: list(image.brokers) == [1, 2])
    return await members.controller(), ModelSession(members.store, TIMEOUT_S)


async def gone(tool: ModelSession, path: str) -> None:
    while await tool.read(node_at(path)) is not None:
        await asyncio.sleep(0.01)
