"""From the store's nodes to an `Image`: everything at the start, later only what changed. Pure: every function is a
reading (see `store.Reading`), or judges the documents that one got.

A document that does not have the shape that `layout` describes raises `MalformedMetadata`, which names its path.
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from operator import index
from typing import Any

from moldau.cluster import layout
from moldau.cluster.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.store import Node, Reading, children_of, node_at, nodes_at
from moldau.errors import StorageError
from moldau.names import long_id


class MalformedMetadata(StorageError):
    """A node does not hold the document that belongs there."""


def document(node: Node, path: str) -> Any:
    """The JSON in a node. Raises `MalformedMetadata` if it is not JSON."""
    try:
        return json.loads(node.data)
    except (ValueError, RecursionError):
        raise MalformedMetadata(f"the metadata at {path} is not JSON") from None


@contextmanager
def _expecting(what: str, path: str) -> Iterator[None]:
    """Turn every error of reading a document into `MalformedMetadata`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise MalformedMetadata(f"the metadata at {path} is not that of {what}: {wrong!r}") from wrong


def read_image() -> Reading[Image | None]:
    """The whole image; None if the store has no cluster yet. Raises `StorageError`."""
    node = yield from node_at(layout.CLUSTER_ID)
    if node is None:
        return None
    with _expecting("a cluster", layout.CLUSTER_ID):
        image = Image(_text(document(node, layout.CLUSTER_ID)["id"]))
    image = yield from _with_surroundings(image)
    groups = [f"{layout.GROUP_CONFIGS}/{name}" for name in (yield from children_of(layout.GROUP_CONFIGS))]
    image = image.with_groups((yield from _read_group_overrides(groups)))
    return image.with_topics((yield from read_topics((yield from children_of(layout.TOPICS)))))


def controller_epoch(node: Node | None) -> int:
    """The epoch of the latest controller, by its node; 0 before the first. Raises `MalformedMetadata`."""
    if node is None:
        return 0
    with _expecting("a controller's epoch", layout.CONTROLLER_EPOCH):
        return int(node.data)


def block_end(node: Node | None) -> int:
    """The last id of the latest block of producer ids, by its node; -1 before the first block. Raises
    `MalformedMetadata`."""
    if node is None:
        return -1
    with _expecting("a block of producer ids", layout.PRODUCER_ID_BLOCK):
        return int(document(node, layout.PRODUCER_ID_BLOCK)["block_end"])


def last_producer_id() -> Reading[int]:
    """The last id of the latest block in the store; -1 before the first block. Raises `StorageError`."""
    return block_end((yield from node_at(layout.PRODUCER_ID_BLOCK)))


def read_changes(image: Image, paths: Iterable[str]) -> Reading[tuple[Image, list[str]]]:
    """The image after the nodes at `paths` changed, and the names of the topics that may be different in it."""
    names: dict[str, None] = {}
    groups: dict[str, None] = {}
    others = False
    for path in paths:
        parent, _, rest = path[1:].partition("/topics/")
        if rest and parent in ("brokers", "config"):
            names[rest.partition("/")[0]] = None
        elif path.startswith(f"{layout.GROUP_CONFIGS}/"):
            groups[path] = None
        else:
            others = True
    if others:
        before = image.broker_overrides
        image = yield from _with_surroundings(image)
        if image.broker_overrides != before:
            names.update(dict.fromkeys(image.topics))
    if groups:
        image = image.with_groups((yield from _read_group_overrides(list(groups))))
    return image.with_topics((yield from read_topics(list(names)))), list(names)


def read_again(before: Image) -> Reading[tuple[Image, list[str]]]:
    """The whole image, and the names of the topics that may be different in it."""
    image = yield from read_image()
    if image is None:
        raise MalformedMetadata(f"the metadata of cluster {before.cluster_id} is gone from its store")
    names = [*before.topics, *(name for name in image.topics if name not in before.topics)]
    if image.broker_overrides == before.broker_overrides:
        names = [name for name in names if image.topics.get(name) != before.topics.get(name)]
    return image, names


def _with_surroundings(image: Image) -> Reading[Image]:
    return replace(
        image,
        controller_id=(yield from _read_controller()),
        controller_epoch=controller_epoch((yield from node_at(layout.CONTROLLER_EPOCH))),
        brokers=(yield from read_brokers()),
        broker_overrides=(yield from _read_broker_overrides()),
        deleted=(yield from _read_deleted()),
    )


def read_topics(names: Sequence[str]) -> Reading[dict[str, TopicImage | None]]:
    """The topics of those names in the store, None for those that do not exist. A topic without an id, and partitions
    from the first one without a state on, do not exist yet: the controller has to create them (see `wishes`). Raises
    `StorageError`."""
    nodes = yield from nodes_at([f"{layout.TOPICS}/{name}" for name in names])
    configs = yield from nodes_at([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
    documents = [_assigned(node, f"{layout.TOPICS}/{name}") for name, node in zip(names, nodes, strict=True)]
    counts = [len(found["partitions"]) if found else 0 for found in documents]
    paths = [layout.state_path(name, n) for name, count in zip(names, counts, strict=True) for n in range(count)]
    states = iter((yield from nodes_at(paths)))
    topics: dict[str, TopicImage | None] = {}
    for name, assigned, config, count in zip(names, documents, configs, counts, strict=True):
        own = _leading(islice(states, count))
        exists = assigned and "topic_id" in assigned and (own or not count)
        topics[name] = _topic(name, assigned, config, own) if assigned and exists else None
    return topics


def _leading(states: Iterable[Node | None]) -> list[Node]:
    """The states before the first that is missing."""
    found: list[Node] = []
    for state in list(states):
        if state is None:
            break
        found.append(state)
    return found


def _assigned(node: Node | None, path: str) -> dict[str, Any] | None:
    if node is None:
        return None
    with _expecting("a topic", path):
        assigned: dict[str, Any] = document(node, path)
        if not isinstance(assigned["partitions"], dict):
            raise TypeError(f"{assigned['partitions']!r} are not partitions")
        return assigned


def _topic(name: str, assigned: Mapping[str, Any], config_node: Node | None, states: Sequence[Node]) -> TopicImage:
    with _expecting("a topic", f"{layout.TOPICS}/{name}"):
        replicas = [_numbers(assigned["partitions"][str(number)]) for number in range(len(assigned["partitions"]))]
        known = assigned.get("directories", {})
        unmade = set(_numbers(assigned.get("unmade", ())))
        partitions = []
        for number, (who, state_node) in enumerate(zip(replicas, states, strict=False)):
            state = document(state_node, layout.state_path(name, number))
            isr, leader, epoch = _numbers(state["isr"]), index(state["leader"]), index(state["leader_epoch"])
            directories = tuple(str(one) for one in known.get(str(number), ()))
            partitions.append(PartitionImage(leader, epoch, who, isr, directories, number not in unmade))
        overrides = _overrides(config_node, f"{layout.TOPIC_CONFIGS}/{name}") if config_node else {}
        return TopicImage(name, long_id(assigned["topic_id"]), tuple(partitions), overrides)


def _numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(index(value) for value in values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _overrides(node: Node, path: str) -> dict[str, str]:
    with _expecting("settings", path):
        return {name: _text(value) for name, value in document(node, path)["config"].items()}


def _read_below(parent: str) -> Reading[list[tuple[str, str, Node]]]:
    """The name, path and node of each child."""
    names = yield from children_of(parent)
    paths = [f"{parent}/{name}" for name in names]
    nodes = yield from nodes_at(paths)
    return [(name, path, node) for name, path, node in zip(names, paths, nodes, strict=True) if node]


def read_brokers() -> Reading[dict[int, BrokerImage]]:
    """The brokers that are registered. Raises `StorageError`."""
    brokers = {}
    for name, path, node in (yield from _read_below(layout.BROKERS)):
        with _expecting("a broker", path):
            registration = document(node, path)
            directories = tuple(_text(one) for one in registration.get("directories", ()))
            endpoints, rack = _endpoints(registration), registration.get("rack")
            brokers[int(name)] = BrokerImage(int(name), endpoints, rack, directories, node.czxid)
    return dict(sorted(brokers.items()))


def dealt_with() -> Reading[dict[int, int]]:
    """The broker epochs that controllers have dealt with, by broker. Raises `StorageError`."""
    epochs = {}
    for name, path, node in (yield from _read_below(layout.BROKER_EPOCHS)):
        with _expecting("a broker's epoch", path):
            epochs[int(name)] = index(document(node, path)["epoch"])
    return epochs


def _endpoints(registration: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    """The listeners of a registration. Version 1 has a host and a port only; up to version 3 the name of a listener is
    its protocol."""
    if not registration.get("endpoints"):
        return (Endpoint("PLAINTEXT", "PLAINTEXT", _text(registration["host"]), index(registration["port"])),)
    protocols = registration.get("listener_security_protocol_map", {})
    endpoints = []
    for text in registration["endpoints"]:
        name, _, address = _text(text).partition("://")
        host, _, port = address.rpartition(":")
        endpoints.append(Endpoint(name, _text(protocols.get(name, name)), host.strip("[]"), int(port)))
    return tuple(endpoints)


def _read_broker_overrides() -> Reading[dict[str, Mapping[str, str]]]:
    return {name: _overrides(node, path) for name, path, node in (yield from _read_below(layout.BROKER_CONFIGS))}


def _read_group_overrides(paths: Sequence[str]) -> Reading[dict[str, Mapping[str, str] | None]]:
    return {
        layout.group_of(path): _overrides(node, path) if node else None
        for path, node in zip(paths, (yield from nodes_at(paths)), strict=True)
    }


def _read_deleted() -> Reading[dict[uuid.UUID, str]]:
    deleted = {}
    for name, path, node in (yield from _read_below(layout.DELETED_TOPICS)):
        with _expecting("a deleted topic", path):
            deleted[long_id(name)] = _text(document(node, path)["name"])
    return deleted


def holders_of_deleted(known: Collection[int]) -> Reading[dict[uuid.UUID, set[int]]]:
    """The brokers that may have logs of the deleted topics, by topic id; all that are known where none is named.
    Raises `StorageError`."""
    holders = {}
    for name, path, node in (yield from _read_below(layout.DELETED_TOPICS)):
        with _expecting("a deleted topic", path):
            holders[long_id(name)] = set(_numbers(document(node, path).get("brokers", known)))
    return holders


def _read_controller() -> Reading[int]:
    node = yield from node_at(layout.CONTROLLER)
    if node is None:
        return -1
    with _expecting("a controller", layout.CONTROLLER):
        return index(document(node, layout.CONTROLLER)["brokerid"])
