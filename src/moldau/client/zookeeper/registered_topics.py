"""The node of a topic in ZooKeeper, `/brokers/topics/TOPIC`, as a client reads it. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.metadata_store.store import Reading, children_of, nodes_at

TOPICS = "/brokers/topics"


def first_replicas(data: bytes) -> dict[int, int] | None:
    """The first replica of each partition in the text of a topic's node; None if it is not such a text."""
    try:
        assignment: Mapping[str, Any] = json.loads(data)["partitions"]
        return {int(number): int(replicas[0]) for number, replicas in assignment.items()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError):
        return None


def read_topics(topics: Iterable[str] | None) -> Reading[dict[str, dict[int, int]]]:
    """The first replica of each partition of these topics, or of all (None). Those that do not exist are left out."""
    names = sorted(topics) if topics is not None else (yield from children_of(TOPICS))
    found = {}
    for name, node in zip(names, (yield from nodes_at([f"{TOPICS}/{one}" for one in names])), strict=True):
        partitions = None if node is None else first_replicas(node.data)
        if partitions is not None:
            found[name] = partitions
    return found
