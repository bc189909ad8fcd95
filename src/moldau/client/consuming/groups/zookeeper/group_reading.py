"""What a member reads of its group's registry, as readings of a store (see `store.Reading`). Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.consuming.groups.streams_wanted import StreamsWanted
from moldau.client.consuming.groups.zookeeper.registered_members import GroupNodes, read_registration
from moldau.client.consuming.groups.zookeeper.sharing import OwnedPartition
from moldau.client.zookeeper.group_names import GroupLayout
from moldau.errors import ErrorCode, KafkaError
from moldau.metadata_store.store import Node, Reading, children_of, nodes_at
from moldau.names import TopicPartition, by_topic


class CommittedNode(NamedTuple):
    """The node of a partition's offset: where it is, or would be, and what is in it."""

    path: str
    offset: int | None = None
    version: int | None = None
    """None if it does not exist."""
    others: tuple[str, ...] = ()
    """Nodes of the same partition by names that it had before (layout of 0.7)."""


def read_members(nodes: GroupNodes) -> Reading[tuple[dict[str, StreamsWanted], list[str]]]:
    """The members of a group, and the nodes among them that nobody can read."""
    names = yield from children_of(nodes.members)
    members, unreadable = {}, []
    for name, node in zip(names, (yield from nodes_at([f"{nodes.members}/{one}" for one in names])), strict=True):
        wanted = None if node is None else read_registration(node.data)
        if wanted is not None:
            members[name] = wanted
        elif node is not None:
            unreadable.append(name)
    return members, unreadable


def read_offsets(
    nodes: GroupNodes, wanted: Mapping[TopicPartition, OwnedPartition]
) -> Reading[dict[TopicPartition, CommittedNode]]:
    """The offset of each partition. Raises `KafkaError` if the text of a node is not an offset."""
    found: dict[TopicPartition, CommittedNode] = {}
    for topic, numbers in by_topic(wanted).items():
        names = {number: wanted[TopicPartition(topic, number)].name for number in numbers}
        places = [(number, name) for number, under in (yield from _names(nodes, topic, names)) for name in under]
        paths = [f"{nodes.offsets(topic)}/{name}" for _, name in places]
        for (number, _), path, node in zip(places, paths, (yield from nodes_at(paths)), strict=True):
            tp = TopicPartition(topic, number)
            found[tp] = _later(found.get(tp), path, node)
    return found


def _later(known: CommittedNode | None, path: str, node: Node | None) -> CommittedNode:
    """What is known of a partition's offset after one more of its nodes: the highest offset counts."""
    offset = None if node is None else offset_in(node.data, path)
    if known is None:
        return CommittedNode(path, offset, None if node is None else node.version)
    if node is None:
        return known
    highest = max(known.offset or 0, offset or 0)
    return known._replace(offset=highest, others=(*known.others, path))


def _names(nodes: GroupNodes, topic: str, names: Mapping[int, str]) -> Reading[Sequence[tuple[int, list[str]]]]:
    """The names under which the offset of each partition may be: its own first. With the layout of 0.7 also those by
    the brokers that had the partition's first replica before."""
    under = {number: [name] for number, name in names.items()}
    if nodes.layout is GroupLayout.KAFKA_0_7:
        for name in (yield from children_of(nodes.offsets(topic))):
            number = name.rpartition("-")[2]
            if number.isdecimal() and int(number) in under and name not in under[int(number)]:
                under[int(number)].append(name)
    return list(under.items())


def offset_in(data: bytes, path: str) -> int:
    """The offset in the text of a node. Raises `KafkaError`."""
    text = data.decode(errors="replace").strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the node {path} in ZooKeeper has no offset, but {text[:40]!r}: correct it"
        )
    return int(text)
