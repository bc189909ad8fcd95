"""From the store's nodes to an `Image`: everything at the start, later only what changed.

A document that does not have the shape that `layout` describes raises `MalformedMetadata`, which names its path.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import index
from typing import Any

from moldau.cluster import layout
from moldau.cluster.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.store import MetadataStore, Node
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


def read_image(store: MetadataStore) -> Image | None:
    """The whole image; None if the store has no cluster yet. Raises `StorageError`."""
    node = store.get(layout.CLUSTER_ID)
    if node is None:
        return None
    with _expecting("a cluster", layout.CLUSTER_ID):
        image = Image(_text(document(node, layout.CLUSTER_ID)["id"]))
    image = _with_surroundings(store, image)
    groups = [f"{layout.GROUP_CONFIGS}/{name}" for name in store.children(layout.GROUP_CONFIGS)]
    image = image.with_groups(_read_group_overrides(store, groups))
    return image.with_topics(read_topics(store, store.children(layout.TOPICS)))


def last_producer_id(store: MetadataStore) -> int:
    """The last id of the latest block; -1 before the first block. Raises `StorageError`."""
    node = store.get(layout.PRODUCER_ID_BLOCK)
    if node is None:
        return -1
    with _expecting("a block of producer ids", layout.PRODUCER_ID_BLOCK):
        return int(document(node, layout.PRODUCER_ID_BLOCK)["block_end"])


def read_changes(store: MetadataStore, image: Image, paths: Iterable[str]) -> tuple[Image, list[str]]:
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
        image = _with_surroundings(store, image)
        if image.broker_overrides != before:
            names.update(dict.fromkeys(image.topics))
    if groups:
        image = image.with_groups(_read_group_overrides(store, list(groups)))
    return image.with_topics(read_topics(store, list(names))), list(names)


def _with_surroundings(store: MetadataStore, image: Image) -> Image:
    return replace(
        image,
        controller_id=_read_controller(store),
        brokers=_read_brokers(store),
        broker_overrides=_read_broker_overrides(store),
        deleted=_read_deleted(store),
    )


def read_topics(store: MetadataStore, names: Sequence[str]) -> dict[str, TopicImage | None]:
    """The topics of those names in the store, None for those that do not exist. Raises `StorageError`."""
    topics: dict[str, TopicImage | None] = {}
    nodes = store.get_many([f"{layout.TOPICS}/{name}" for name in names])
    configs = store.get_many([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
    for name, node, config_node in zip(names, nodes, configs, strict=True):
        topics[name] = _read_topic(store, name, node, config_node) if node else None
    return topics


def _read_topic(store: MetadataStore, name: str, node: Node, config_node: Node | None) -> TopicImage:
    path = f"{layout.TOPICS}/{name}"
    with _expecting("a topic", path):
        assigned = document(node, path)
        replicas = [_numbers(assigned["partitions"][str(number)]) for number in range(len(assigned["partitions"]))]
        known = assigned.get("directories", {})
        unmade = set(_numbers(assigned.get("unmade", ())))
        partitions = []
        states = store.get_many([layout.state_path(name, number) for number in range(len(replicas))])
        for number, (who, state_node) in enumerate(zip(replicas, states, strict=True)):
            state = document(state_node, layout.state_path(name, number)) if state_node else {}
            isr = _numbers(state.get("isr", who))
            leader, epoch = index(state.get("leader", -1)), index(state.get("leader_epoch", 0))
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


def _read_brokers(store: MetadataStore) -> dict[int, BrokerImage]:
    brokers = {}
    for name in store.children(layout.BROKERS):
        path = f"{layout.BROKERS}/{name}"
        node = store.get(path)
        if node:
            with _expecting("a broker", path):
                registration = document(node, path)
                directories = tuple(_text(one) for one in registration.get("directories", ()))
                brokers[int(name)] = BrokerImage(
                    int(name), _endpoints(registration), registration.get("rack"), directories
                )
    return dict(sorted(brokers.items()))


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


def _read_broker_overrides(store: MetadataStore) -> dict[str, Mapping[str, str]]:
    overrides: dict[str, Mapping[str, str]] = {}
    for name in store.children(layout.BROKER_CONFIGS):
        node = store.get(f"{layout.BROKER_CONFIGS}/{name}")
        if node:
            overrides[name] = _overrides(node, f"{layout.BROKER_CONFIGS}/{name}")
    return overrides


def _read_group_overrides(store: MetadataStore, paths: Sequence[str]) -> dict[str, Mapping[str, str] | None]:
    return {
        layout.group_of(path): _overrides(node, path) if node else None
        for path, node in zip(paths, store.get_many(paths), strict=True)
    }


def _read_deleted(store: MetadataStore) -> dict[uuid.UUID, str]:
    deleted = {}
    for name in store.children(layout.DELETED_TOPICS):
        path = f"{layout.DELETED_TOPICS}/{name}"
        node = store.get(path)
        if node:
            with _expecting("a deleted topic", path):
                deleted[long_id(name)] = _text(document(node, path)["name"])
    return deleted


def _read_controller(store: MetadataStore) -> int:
    node = store.get(layout.CONTROLLER)
    if node is None:
        return -1
    with _expecting("a controller", layout.CONTROLLER):
        return index(document(node, layout.CONTROLLER)["brokerid"])
