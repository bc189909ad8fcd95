"""From the store's nodes to an `Image`. Pure: every function is a reading (see `store.Reading`), or judges the
documents that one got. (After a change of our own nothing is read: see `image_after`.)

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
from moldau.cluster.image import NO_LEADER, BrokerImage, Endpoint, Image, PartitionImage, TopicImage
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
def expecting(what: str, path: str) -> Iterator[None]:
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
    with expecting("a cluster", layout.CLUSTER_ID):
        image = Image(_text(document(node, layout.CLUSTER_ID)["id"]))
    image = yield from _with_surroundings(image)
    groups = [f"{layout.GROUP_CONFIGS}/{name}" for name in (yield from children_of(layout.GROUP_CONFIGS))]
    image = image.with_groups((yield from _read_group_overrides(groups)))
    topics = yield from _read_topics((yield from children_of(layout.TOPICS)))
    return image.with_topics({name: one for name, one in topics.items() if one and one.id not in image.deleted})


def controller_epoch(node: Node | None) -> int:
    """The epoch of the latest controller, by its node; 0 before the first. Raises `MalformedMetadata`."""
    if node is None:
        return 0
    with expecting("a controller's epoch", layout.CONTROLLER_EPOCH):
        return int(node.data)


def block_end(node: Node | None) -> int:
    """The last id of the latest block of producer ids, by its node; -1 before the first block. Raises
    `MalformedMetadata`."""
    if node is None:
        return -1
    with expecting("a block of producer ids", layout.PRODUCER_ID_BLOCK):
        return int(document(node, layout.PRODUCER_ID_BLOCK)["block_end"])


def last_producer_id() -> Reading[int]:
    """The last id of the latest block in the store; -1 before the first block. Raises `StorageError`."""
    return block_end((yield from node_at(layout.PRODUCER_ID_BLOCK)))


def read_again(before: Image) -> Reading[tuple[Image, list[str]]]:
    """The whole image, and the names of the topics that may be different in it."""
    image = yield from read_image()
    if image is None:
        raise MalformedMetadata(f"the metadata of cluster {before.cluster_id} is gone from its store")
    names = [*before.topics, *(name for name in image.topics if name not in before.topics)]
    if image.broker_overrides == before.broker_overrides:
        names = [name for name in names if image.topics.get(name) != before.topics.get(name)]
    return image, names


def read_surroundings(before: Image) -> Reading[tuple[Image, list[str]]]:
    """As `read_again`, but for what was changed in topics and groups."""
    image = yield from _with_surroundings(before)
    return image, [] if image.broker_overrides == before.broker_overrides else list(image.topics)


def _with_surroundings(image: Image) -> Reading[Image]:
    return replace(
        image,
        controller_id=controller_id((yield from node_at(layout.CONTROLLER))),
        controller_epoch=controller_epoch((yield from node_at(layout.CONTROLLER_EPOCH))),
        brokers=(yield from read_brokers()),
        broker_overrides=(yield from _read_broker_overrides()),
        deleted=(yield from _read_deleted()),
    )


def _read_topics(names: Sequence[str]) -> Reading[dict[str, TopicImage | None]]:
    """The topics of those names in the store, None for those that do not exist. A topic without an id, and partitions
    from the first one without a state on, do not exist yet: the controller has to create them (see `wishes`). Raises
    `StorageError`."""
    nodes = yield from nodes_at([f"{layout.TOPICS}/{name}" for name in names])
    configs = yield from nodes_at([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
    documents = [node and assigned(node, f"{layout.TOPICS}/{name}") for name, node in zip(names, nodes, strict=True)]
    folders = yield from nodes_at([f"{layout.DIRECTORIES}/{name}" for name in names])
    counts = [len(found["partitions"]) if found else 0 for found in documents]
    paths = [layout.state_path(name, n) for name, count in zip(names, counts, strict=True) for n in range(count)]
    states = iter((yield from nodes_at(paths)))
    topics: dict[str, TopicImage | None] = {}
    for name, found, config, placed, count in zip(names, documents, configs, folders, counts, strict=True):
        own = _leading(islice(states, count))
        parts = partitions(found, name) if found else []
        if placed is not None:
            parts = in_folders(parts, placed, name)
        made = [
            in_state(part, state, layout.state_path(name, number))
            for number, (part, state) in enumerate(zip(parts, own, strict=False))
        ]
        topics[name] = topic(found, name, made, topic_overrides(config, name)) if found else None
    return topics


def _leading(states: Iterable[Node | None]) -> list[Node]:
    """The states before the first that is missing."""
    found: list[Node] = []
    for state in list(states):
        if state is None:
            break
        found.append(state)
    return found


def assigned(node: Node, path: str) -> dict[str, Any]:
    """The document of a topic."""
    with expecting("a topic", path):
        found: dict[str, Any] = document(node, path)
        if not isinstance(found["partitions"], dict):
            raise TypeError(f"{found['partitions']!r} are not partitions")
        return found


def topic(
    assigned: Mapping[str, Any], name: str, made: Sequence[PartitionImage], overrides: Mapping[str, str]
) -> TopicImage | None:
    """The topic with this document, as far as its partitions have states; None if it does not exist yet."""
    found = topic_id(assigned, name)
    if found is None or (assigned["partitions"] and not made):
        return None
    return TopicImage(name, found, tuple(made), overrides)


def topic_id(assigned: Mapping[str, Any], name: str) -> uuid.UUID | None:
    with expecting("a topic", f"{layout.TOPICS}/{name}"):
        return long_id(assigned["topic_id"]) if "topic_id" in assigned else None


def partitions(assigned: Mapping[str, Any], name: str) -> list[PartitionImage]:
    """The partitions in the document of a topic, without their states. Earlier versions had their log folders there."""
    with expecting("a topic", f"{layout.TOPICS}/{name}"):
        replicas = [_numbers(assigned["partitions"][str(number)]) for number in range(len(assigned["partitions"]))]
        known = assigned.get("directories", {})
        unmade = set(_numbers(assigned.get("unmade", ())))
        return [
            PartitionImage(
                NO_LEADER, 0, who, who, tuple(str(one) for one in known.get(str(number), ())), number not in unmade
            )
            for number, who in enumerate(replicas)
        ]


def in_folders(parts: Sequence[PartitionImage], node: Node | None, name: str) -> list[PartitionImage]:
    """The partitions of a topic with the log folders in its node; None if nothing is known about them."""
    path = f"{layout.DIRECTORIES}/{name}"
    found = document(node, path) if node else {}
    with expecting("the log folders of a topic", path):
        unmade = set(_numbers(found.get("unmade", ())))
        folders: list[dict[int, str]] = [{} for _ in parts]
        for broker, by_folder in found.get("directories", {}).items():
            for directory, numbers in by_folder.items():
                for number in _numbers(numbers):
                    if 0 <= number < len(parts):
                        folders[number][int(broker)] = directory
        return [
            part._replace(directories=_by_replica(part.replicas, known), made=number not in unmade)
            for number, (part, known) in enumerate(zip(parts, folders, strict=True))
        ]


def _by_replica(replicas: Sequence[int], directories: Mapping[int, str]) -> tuple[str, ...]:
    found = tuple(directories.get(broker, "") for broker in replicas)
    return found if any(found) else ()


def in_state(part: PartitionImage, node: Node, path: str) -> PartitionImage:
    """The partition with the state in its node."""
    state = document(node, path)
    with expecting("a partition", path):
        leader, epoch = index(state["leader"]), index(state["leader_epoch"])
        return part._replace(leader=leader, leader_epoch=epoch, isr=_numbers(state["isr"]))


def topic_overrides(node: Node | None, name: str) -> dict[str, str]:
    return overrides(node, f"{layout.TOPIC_CONFIGS}/{name}") if node else {}


def _numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(index(value) for value in values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def overrides(node: Node, path: str) -> dict[str, str]:
    """The settings in a node."""
    with expecting("settings", path):
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
        with expecting("a broker", path):
            brokers[int(name)] = broker(int(name), node, path)
    return dict(sorted(brokers.items()))


def broker(broker_id: int, node: Node, path: str) -> BrokerImage:
    """The broker with this registration, whose czxid is the broker's epoch."""
    with expecting("a broker", path):
        registration = document(node, path)
        directories = tuple(_text(one) for one in registration.get("directories", ()))
        return BrokerImage(broker_id, _endpoints(registration), registration.get("rack"), directories, node.czxid)


def dealt_with() -> Reading[dict[int, int]]:
    """The broker epochs that controllers have dealt with, by broker. Raises `StorageError`."""
    epochs = {}
    for name, path, node in (yield from _read_below(layout.BROKER_EPOCHS)):
        with expecting("a broker's epoch", path):
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
    return {name: overrides(node, path) for name, path, node in (yield from _read_below(layout.BROKER_CONFIGS))}


def _read_group_overrides(paths: Sequence[str]) -> Reading[dict[str, Mapping[str, str] | None]]:
    return {
        layout.group_of(path): overrides(node, path) if node else None
        for path, node in zip(paths, (yield from nodes_at(paths)), strict=True)
    }


def _read_deleted() -> Reading[dict[uuid.UUID, str]]:
    deleted = {}
    for name, path, node in (yield from _read_below(layout.DELETED_TOPICS)):
        with expecting("a deleted topic", path):
            deleted[long_id(name)] = deleted_name(node, path)
    return deleted


def deleted_name(node: Node, path: str) -> str:
    """The name that a deleted topic had."""
    with expecting("a deleted topic", path):
        return _text(document(node, path)["name"])


def holders_of_deleted(known: Collection[int]) -> Reading[dict[uuid.UUID, set[int]]]:
    """The brokers that may have logs of the deleted topics, by topic id; all that are known where none is named.
    Raises `StorageError`."""
    holders = {}
    for name, path, node in (yield from _read_below(layout.DELETED_TOPICS)):
        with expecting("a deleted topic", path):
            holders[long_id(name)] = set(_numbers(document(node, path).get("brokers", known)))
    return holders


def controller_id(node: Node | None) -> int:
    """The controller, by its node; -1 if there is none. Raises `MalformedMetadata`."""
    if node is None:
        return NO_LEADER
    with expecting("a controller", layout.CONTROLLER):
        return index(document(node, layout.CONTROLLER)["brokerid"])


def read_controller_broker() -> Reading[BrokerImage | None]:
    """The registration of the controller; None if no broker is the controller, or it is not registered. Raises
    `StorageError`."""
    controller = controller_id((yield from node_at(layout.CONTROLLER)))
    return None if controller < 0 else (yield from read_brokers()).get(controller)
