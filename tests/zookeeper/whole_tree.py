"""The whole tree of a cluster in ZooKeeper, and what is wrong in it: nothing may be half done."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.patience import stretched
from moldau.cluster.state import layout
from moldau.metadata_store.shared_file_session import SharedFileSession, file_of
from moldau.metadata_store.store import MetadataStore, children_of, nodes_at
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.names import long_id
from moldau.runtime import Runtime

Tree = Mapping[str, bytes]
"""The data of every node below the chroot, by path."""
EMPTY = (layout.DELETED_TOPICS, "/admin/delete_topics", "/config/changes")
STATE = {"controller_epoch", "leader", "leader_epoch", "isr", "version"}
OURS = {"elr", "last_elr"}


def read_tree(connect: str) -> Tree:
    """What is there now."""

    async def whole() -> Tree:
        file = file_of(connect)
        session: MetadataStore = (
            await ZooKeeperSession.open(ZooKeeperAccess(connect, 20.0, stretched()), Runtime())
            if file is None
            else await SharedFileSession.open(file, stretched(), Runtime())
        )
        try:
            return dict(await _below(session, ""))
        finally:
            await session.close()

    return asyncio.run(whole())


async def _below(session: MetadataStore, parent: str) -> list[tuple[str, bytes]]:
    paths = [f"{parent}/{name}" for name in await session.read(children_of(parent or "/"))]
    nodes = await session.read(nodes_at(paths))
    found = [(path, node.data) for path, node in zip(paths, nodes, strict=True) if node is not None]
    for path in paths:
        found += await _below(session, path)
    return found


def names_in(tree: Tree, parent: str) -> set[str]:
    """The last names of a node's children."""
    return {path.rpartition("/")[2] for path in tree if path.rpartition("/")[0] == parent}


def topics_in(tree: Tree) -> dict[str, Any]:
    """Each topic as the brokers' metadata has it: its id, and the leader, its epoch, replicas and in-sync replicas of
    each partition."""
    found = {}
    for name in sorted(names_in(tree, layout.TOPICS)):
        topic = json.loads(tree[f"{layout.TOPICS}/{name}"])
        parts = []
        for number in range(len(topic["partitions"])):
            state = json.loads(tree[layout.state_path(name, number)])
            parts.append((state["leader"], state["leader_epoch"], topic["partitions"][str(number)], state["isr"]))
        found[name] = long_id(topic["topic_id"]), parts
    return found


def wrong_in(tree: Tree) -> list[str]:
    """What a cluster that rests does not have; empty if nothing is wrong."""
    return [*_wrong_below_topics(tree), *(f"{path} has children" for path in EMPTY if names_in(tree, path))]


def _wrong_below_topics(tree: Tree) -> Iterator[str]:
    names = names_in(tree, layout.TOPICS)
    for parent in (layout.TOPIC_CONFIGS, layout.DIRECTORIES):
        if names != names_in(tree, parent):
            yield f"topics and {parent} are different in {sorted(names ^ names_in(tree, parent))}"
    for name in names:
        at = f"{layout.TOPICS}/{name}"
        topic = json.loads(tree[at])
        numbers = {str(number) for number in range(len(topic["partitions"]))}
        if not topic.get("topic_id") or set(topic["partitions"]) != numbers:
            yield f"{at} is {topic}"
        if names_in(tree, at) != {"partitions"} or names_in(tree, f"{at}/partitions") != numbers:
            yield f"{at} has the partitions {numbers}, and below it {names_in(tree, f'{at}/partitions')}"
        for number in numbers:
            state = json.loads(tree.get(f"{at}/partitions/{number}/state", b"{}"))
            if not STATE <= set(state) <= STATE | OURS or names_in(tree, f"{at}/partitions/{number}") != {"state"}:
                yield f"{at}/partitions/{number}/state is {state}"
