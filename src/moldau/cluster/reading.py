"""From the store's nodes to an `Image`: the whole at the start, and what changed after that.

What is read is not trusted to be whole: a document that is not what `layout` draws is a `StorageError` that names its
path.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moldau.cluster import layout
from moldau.cluster.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.store import MetadataStore, Node
from moldau.errors import StorageError


def document(node: Node, path: str) -> Any:
    """The JSON in a node. Raises `StorageError` if it is none."""
    try:
        return json.loads(node.data)
    except ValueError:
        raise StorageError(f"the metadata at {path} is not JSON") from None


def read_image(store: MetadataStore) -> Image | None:
    """Everything; None if no cluster has lived here yet."""
    node = store.get(layout.CLUSTER_ID)
    if node is None:
        return None
    image = Image(str(document(node, layout.CLUSTER_ID).get("id")))
    image = _with_surroundings(store, image)
    groups = [f"{layout.GROUP_CONFIGS}/{name}" for name in store.children(layout.GROUP_CONFIGS)]
    image = image.with_groups(_read_group_overrides(store, groups))
    return image.with_topics(read_topics(store, store.children(layout.TOPICS)))


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
    """The topics of those names as they are in the store, None for those that are not. Raises `StorageError`."""
    found: dict[str, TopicImage | None] = {}
    nodes = store.get_many([f"{layout.TOPICS}/{name}" for name in names])
    configs = store.get_many([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
    for name, node, config_node in zip(names, nodes, configs, strict=True):
        found[name] = _read_topic(store, name, node, config_node) if node else None
    return found


def _read_topic(store: MetadataStore, name: str, node: Node, config_node: Node | None) -> TopicImage:
    path = f"{layout.TOPICS}/{name}"
    try:
        assigned = document(node, path)
        replicas = [tuple(assigned["partitions"][str(number)]) for number in range(len(assigned["partitions"]))]
        known = assigned.get("directories", {})
        partitions = []
        states = store.get_many([layout.state_path(name, number) for number in range(len(replicas))])
        for number, (who, state_node) in enumerate(zip(replicas, states, strict=True)):
            state = document(state_node, layout.state_path(name, number)) if state_node else {}
            isr = tuple(state.get("isr", who))
            directories = tuple(str(one) for one in known.get(str(number), ()))
            partitions.append(
                PartitionImage(state.get("leader", -1), state.get("leader_epoch", 0), who, isr, directories)
            )
        overrides = document(config_node, f"{layout.TOPIC_CONFIGS}/{name}")["config"] if config_node else {}
        return TopicImage(name, layout.long_id(assigned["topic_id"]), tuple(partitions), overrides)
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise StorageError(f"the metadata at {path} is not that of a topic: {wrong!r}") from wrong


def _read_brokers(store: MetadataStore) -> dict[int, BrokerImage]:
    found = {}
    for name in sorted(store.children(layout.BROKERS), key=int):
        node = store.get(f"{layout.BROKERS}/{name}")
        if node:
            said = document(node, f"{layout.BROKERS}/{name}")
            directories = tuple(said.get("directories", ()))
            found[int(name)] = BrokerImage(int(name), said["host"], said["port"], said.get("rack"), directories)
    return found


def _read_broker_overrides(store: MetadataStore) -> dict[str, Mapping[str, str]]:
    found = {}
    for name in store.children(layout.BROKER_CONFIGS):
        node = store.get(f"{layout.BROKER_CONFIGS}/{name}")
        if node:
            found[name] = document(node, f"{layout.BROKER_CONFIGS}/{name}")["config"]
    return found


def _read_group_overrides(store: MetadataStore, paths: Sequence[str]) -> dict[str, Mapping[str, str] | None]:
    return {
        layout.group_of(path): document(node, path)["config"] if node else None
        for path, node in zip(paths, store.get_many(paths), strict=True)
    }


def _read_deleted(store: MetadataStore) -> dict[uuid.UUID, str]:
    found = {}
    for name in store.children(layout.DELETED_TOPICS):
        node = store.get(f"{layout.DELETED_TOPICS}/{name}")
        if node:
            found[layout.long_id(name)] = document(node, f"{layout.DELETED_TOPICS}/{name}")["name"]
    return found


def _read_controller(store: MetadataStore) -> int:
    node = store.get(layout.CONTROLLER)
    return int(document(node, layout.CONTROLLER)["brokerid"]) if node else -1
