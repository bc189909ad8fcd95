"""From the store's nodes to an `Image`. Pure: every function is a reading (see `store.Reading`), or judges the
documents that one got. (After a change of our own nothing is read: see `image_after`.)

A document that does not have the shape that `layout` describes raises `MalformedMetadata`, which names its path.
"""

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from operator import index
from typing import Any, NamedTuple, TypeAlias, TypeVar

from moldau.cluster.state import layout
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.errors import StorageError
from moldau.metadata_store.store import Node, Reading, children_of, node_at, nodes_at
from moldau.names import long_id

T = TypeVar("T")


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


LeftOut: TypeAlias = dict[str, MalformedMetadata]
"""Topics by name, and why they cannot be read."""


def read_image(left_out: LeftOut | None = None) -> Reading[Image | None]:
    """The whole image; None if the store has no cluster yet. Raises `StorageError`, also for a topic that cannot be
    read, unless these are left out and added to `left_out`.

    The deleted topics are read last: a topic that is deleted meanwhile is one of them, even if its nodes were read.
    """
    node = yield from node_at(layout.CLUSTER_ID)
    if node is None:
        return None
    with expecting("a cluster", layout.CLUSTER_ID):
        image = Image(as_text(document(node, layout.CLUSTER_ID)["id"]))
    image = yield from _with_surroundings(image)
    groups = [f"{layout.GROUP_CONFIGS}/{name}" for name in (yield from children_of(layout.GROUP_CONFIGS))]
    image = image.with_groups((yield from _read_group_overrides(groups)))
    topics = yield from _read_topics((yield from children_of(layout.TOPICS)), left_out)
    image = replace(image, deleted=(yield from _read_deleted()))
    return image.with_topics({name: one for name, one in topics.items() if one and one.id not in image.deleted})


def cluster_id_of(node: Node) -> str:
    """The id of a cluster, by its node. Raises `MalformedMetadata`."""
    with expecting("a cluster", layout.CLUSTER_ID):
        return as_text(document(node, layout.CLUSTER_ID)["id"])


def secret_of(node: Node) -> bytes:
    """The secret of a cluster, by its node. Raises `MalformedMetadata`."""
    with expecting("a secret", layout.SECRET):
        return bytes.fromhex(as_text(document(node, layout.SECRET)["secret"]))


def adopted_cluster(node: Node) -> str:
    """The id of the cluster that is being adopted, by its node. Raises `MalformedMetadata`."""
    with expecting("an adoption", layout.ADOPTION):
        return as_text(document(node, layout.ADOPTION)["cluster_id"])


def controller_epoch(node: Node | None) -> int:
    """The epoch of the latest controller, by its node; 0 before the first. Raises `MalformedMetadata`."""
    if node is None:
        return 0
    with expecting("a controller's epoch", layout.CONTROLLER_EPOCH):
        return int(node.data)


def given_way(node: Node | None) -> layout.GivenWay | None:
    """The controllers that gave their office up, by the node of that; None if none did, or if the node has something
    else: no cluster must be without a controller because of it."""
    if node is None:
        return None
    try:
        with expecting("controllers that gave way", layout.GIVEN_WAY):
            found = document(node, layout.GIVEN_WAY)
            return layout.GivenWay(index(found["controller_epoch"]), tuple(map(index, found["brokers"])))
    except MalformedMetadata:
        return None


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


def read_again(before: Image, left_out: LeftOut | None = None) -> Reading[tuple[Image, list[str]]]:
    """The whole image, and the names of the topics that may be different in it. With `left_out` a topic that cannot be
    read stays as it was."""
    image = yield from read_image(left_out)
    if image is None:
        raise MalformedMetadata(f"the metadata of cluster {before.cluster_id} is gone from its store")
    image = image.with_topics({name: before.topics[name] for name in left_out or () if name in before.topics})
    names = [*before.topics, *(name for name in image.topics if name not in before.topics)]
    if image.broker_overrides == before.broker_overrides:
        names = [name for name in names if image.topics.get(name) != before.topics.get(name)]
    return image, names


def read_surroundings(before: Image) -> Reading[tuple[Image, list[str]]]:
    """As `read_again`, but for what was changed in topics and groups."""
    image = replace((yield from _with_surroundings(before)), deleted=(yield from _read_deleted()))
    return image, [] if image.broker_overrides == before.broker_overrides else list(image.topics)


def _with_surroundings(image: Image) -> Reading[Image]:
    return replace(
        image,
        controller_id=controller_id((yield from node_at(layout.CONTROLLER))),
        controller_epoch=controller_epoch((yield from node_at(layout.CONTROLLER_EPOCH))),
        brokers=(yield from read_brokers()),
        broker_overrides=(yield from _read_broker_overrides()),
    )


def _read_topics(names: Sequence[str], left_out: LeftOut | None) -> Reading[dict[str, TopicImage | None]]:
    """The topics of those names in the store, None for those that do not exist, or are in `left_out` then. A topic
    without an id, and partitions from the first one without a state on, do not exist yet: the controller has to create
    them (see `wishes`). Raises `StorageError`."""
    nodes = yield from nodes_at([f"{layout.TOPICS}/{name}" for name in names])
    configs = yield from nodes_at([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
    documents = [
        _tried(name, left_out, partial(assigned, node, f"{layout.TOPICS}/{name}")) if node else None
        for name, node in zip(names, nodes, strict=True)
    ]
    folders = yield from nodes_at([f"{layout.DIRECTORIES}/{name}" for name in names])
    counts = [len(found["partitions"]) if found else 0 for found in documents]
    paths = [layout.state_path(name, n) for name, count in zip(names, counts, strict=True) for n in range(count)]
    states = iter((yield from nodes_at(paths)))
    topics: dict[str, TopicImage | None] = {}
    for name, found, config, placed, count in zip(names, documents, configs, folders, counts, strict=True):
        own = _leading(islice(states, count))
        whole = partial(_whole, name, found, config, placed, own)
        topics[name] = _tried(name, left_out, whole)
    return topics


def _tried(name: str, left_out: LeftOut | None, read: Callable[[], T]) -> T | None:
    try:
        return read()
    except MalformedMetadata as malformed:
        if left_out is None:
            raise
        left_out[name] = malformed
        return None


def _whole(
    name: str, found: Mapping[str, Any] | None, config: Node | None, placed: Node | None, states: Sequence[Node]
) -> TopicImage | None:
    """The topic by its documents; None if it does not exist."""
    if found is None:
        return None
    parts = partitions(found, name)
    if placed is not None:
        parts = in_folders(parts, placed, name)
    made = [
        in_state(part, state, layout.state_path(name, number))
        for number, (part, state) in enumerate(zip(parts, states, strict=False))
    ]
    return topic(found, name, made, topic_overrides(config, name))


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
        return part._replace(
            leader=index(state["leader"]),
            leader_epoch=index(state["leader_epoch"]),
            isr=_numbers(state["isr"]),
            partition_epoch=node.version,
            elr=_numbers(state.get("elr", ())),
            last_elr=_numbers(state.get("last_elr", ())),
        )


def topic_overrides(node: Node | None, name: str) -> dict[str, str]:
    return overrides(node, f"{layout.TOPIC_CONFIGS}/{name}") if node else {}


def _numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(index(value) for value in values)


def as_text(value: Any) -> str:
    """The value, which has to be text. Raises `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def overrides(node: Node, path: str) -> dict[str, str]:
    """The settings in a node."""
    with expecting("settings", path):
        return {name: as_text(value) for name, value in document(node, path)["config"].items()}


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
        directories = tuple(as_text(one) for one in registration.get("directories", ()))
        return BrokerImage(broker_id, _endpoints(registration), registration.get("rack"), directories, node.czxid)


class Registered(NamedTuple):
    """A broker with its registration's time, as text in UTC; empty if the registration does not have it."""

    broker: BrokerImage
    since: str


def registration_of(broker_id: int) -> Reading[Registered | None]:
    """The broker with this id, None if none is registered. Raises `StorageError`."""
    path = f"{layout.BROKERS}/{broker_id}"
    node = yield from node_at(path)
    if node is None:
        return None
    found = broker(broker_id, node, path)
    try:
        time = datetime.fromtimestamp(int(document(node, path)["timestamp"]) // 1000, UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return Registered(found, "")
    return Registered(found, f"{time:%Y-%m-%d %H:%M:%S} UTC")


def kept_since(brokers: Collection[BrokerImage]) -> Reading[dict[int, dict[str, tuple[int, ...]]]]:
    """The broker epochs since which the log folders of these brokers have lost nothing, by broker and directory id;
    nothing is known of a broker that has registered again meanwhile. Raises `StorageError`."""
    paths = [f"{layout.BROKERS}/{broker.id}" for broker in brokers]
    found = {}
    for broker, path, node in zip(brokers, paths, (yield from nodes_at(paths)), strict=True):
        if node is not None and node.czxid == broker.epoch:
            with expecting("a broker", path):
                kept = document(node, path).get("kept", {})
                found[broker.id] = {directory: _numbers(epochs) for directory, epochs in kept.items()}
    return found


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
        return (Endpoint("PLAINTEXT", "PLAINTEXT", as_text(registration["host"]), index(registration["port"])),)
    protocols = registration.get("listener_security_protocol_map", {})
    endpoints = []
    for text in registration["endpoints"]:
        name, _, address = as_text(text).partition("://")
        host, _, port = address.rpartition(":")
        endpoints.append(Endpoint(name, as_text(protocols.get(name, name)), host.strip("[]"), int(port)))
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
        return as_text(document(node, path)["name"])


def holders_of_deleted(known: Collection[int]) -> Reading[dict[uuid.UUID, dict[int, set[str]]]]:
    """The brokers that may have logs of the deleted topics, with the log folders that these were in, by topic id; all
    brokers that are known where none is named. Raises `StorageError`."""
    holders = {}
    for name, path, node in (yield from _read_below(layout.DELETED_TOPICS)):
        with expecting("a deleted topic", path):
            found = document(node, path)
            directories = found.get("directories", {})
            holders[long_id(name)] = {
                broker: set(map(as_text, directories.get(str(broker), ())))
                for broker in _numbers(found.get("brokers", known))
            }
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
