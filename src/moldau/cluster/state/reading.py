"""From the store's nodes to an `Image`. Pure: every function is a reading (see `store.Reading`), or judges the
documents that one got. (After a change of our own nothing is read: see `image_after`.)

A document that does not have the shape that `layout` describes raises `MalformedMetadata`, which names its path.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import index
from typing import Any, TypeAlias, TypeVar

from moldau.cluster.state import layout
from moldau.cluster.state.acls import read_acls
from moldau.cluster.state.documents import (
    MalformedMetadata,
    as_numbers,
    as_text,
    document,
    expecting,
    overrides,
    read_below,
)
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.quotas import read_quotas
from moldau.cluster.state.registrations import read_brokers
from moldau.metadata_store.store import Node, Reading, children_of, node_at, nodes_at
from moldau.names import long_id

T = TypeVar("T")

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
    image = image.with_groups((yield from _read_owners(layout.GROUP_CONFIGS, layout.group_of)))
    subscriptions = yield from _read_owners(layout.CLIENT_METRICS_CONFIGS, layout.client_metrics_of)
    image = image.with_client_metrics(subscriptions)
    image = replace(image, acls=(yield from read_acls()))
    image = replace(image, quotas=(yield from read_quotas()))
    topics = yield from _read_topics((yield from children_of(layout.TOPICS)), left_out)
    image = replace(image, deleted=(yield from _read_deleted()))
    return image.with_topics({name: one for name, one in topics.items() if one and one.id not in image.deleted})


def cluster_id_of(node: Node) -> str:
    """The id of a cluster, by its node. Raises `MalformedMetadata`."""
    with expecting("a cluster", layout.CLUSTER_ID):
        return as_text(document(node, layout.CLUSTER_ID)["id"])


def secret_of(node: Node) -> tuple[bytes, bytes | None]:
    """The secret of a cluster, by its node, and a hash of the secret in its brokers' file, None without one. Raises
    `MalformedMetadata`."""
    with expecting("a secret", layout.SECRET):
        read = document(node, layout.SECRET)
        file = read.get("file")
        return bytes.fromhex(as_text(read["secret"])), None if file is None else bytes.fromhex(as_text(file))


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
            written = document(node, layout.GIVEN_WAY)
            return layout.GivenWay(index(written["controller_epoch"]), tuple(map(index, written["brokers"])))
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
        raise MalformedMetadata(f"the store no longer has the metadata of cluster {before.cluster_id}")
    image = image.with_topics({name: before.topics[name] for name in left_out or () if name in before.topics})
    if image.acls == before.acls:
        image = replace(image, acls=before.acls)
    if image.quotas == before.quotas:
        image = replace(image, quotas=before.quotas)
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
    counts = [len(written["partitions"]) if written else 0 for written in documents]
    paths = [layout.state_path(name, n) for name, count in zip(names, counts, strict=True) for n in range(count)]
    states = iter((yield from nodes_at(paths)))
    topics: dict[str, TopicImage | None] = {}
    for name, written, config, placed, count in zip(names, documents, configs, folders, counts, strict=True):
        own = _leading(islice(states, count))
        whole = partial(_whole, name, written, config, placed, own)
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
    name: str, assigned: Mapping[str, Any] | None, config: Node | None, placed: Node | None, states: Sequence[Node]
) -> TopicImage | None:
    """The topic by its documents; None if it does not exist."""
    if assigned is None:
        return None
    parts = partitions(assigned, name)
    if placed is not None:
        parts = in_folders(parts, placed, name)
    made = [
        in_state(part, state, layout.state_path(name, number))
        for number, (part, state) in enumerate(zip(parts, states, strict=False))
    ]
    return topic(assigned, name, made, topic_overrides(config, name))


def _leading(states: Iterable[Node | None]) -> list[Node]:
    """The states before the first that is missing."""
    leading: list[Node] = []
    for state in list(states):
        if state is None:
            break
        leading.append(state)
    return leading


def assigned(node: Node, path: str) -> dict[str, Any]:
    """The document of a topic."""
    with expecting("a topic", path):
        written: dict[str, Any] = document(node, path)
        if not isinstance(written["partitions"], dict):
            raise TypeError(f"{written['partitions']!r} are not partitions")
        return written


def topic(
    assigned: Mapping[str, Any], name: str, made: Sequence[PartitionImage], overrides: Mapping[str, str]
) -> TopicImage | None:
    """The topic with this document, as far as its partitions have states; None if it does not exist yet."""
    own_id = topic_id(assigned, name)
    if own_id is None or (assigned["partitions"] and not made):
        return None
    return TopicImage(name, own_id, tuple(made), overrides)


def topic_id(assigned: Mapping[str, Any], name: str) -> uuid.UUID | None:
    with expecting("a topic", f"{layout.TOPICS}/{name}"):
        return long_id(assigned["topic_id"]) if "topic_id" in assigned else None


def partitions(assigned: Mapping[str, Any], name: str) -> list[PartitionImage]:
    """The partitions in the document of a topic, without their states. Earlier versions had their log folders there."""
    with expecting("a topic", f"{layout.TOPICS}/{name}"):
        replicas = [as_numbers(assigned["partitions"][str(number)]) for number in range(len(assigned["partitions"]))]
        known = assigned.get("directories", {})
        unmade = set(as_numbers(assigned.get("unmade", ())))
        parts = [
            PartitionImage(
                NO_LEADER, 0, who, who, tuple(str(one) for one in known.get(str(number), ())), number not in unmade
            )
            for number, who in enumerate(replicas)
        ]
        # Versions of Kafka before 2.4 do not write them.
        adding, removing = assigned.get("adding_replicas") or {}, assigned.get("removing_replicas") or {}
        if not adding and not removing:
            return parts
        return [
            part._replace(
                adding_replicas=as_numbers(adding.get(str(number), ())),
                removing_replicas=as_numbers(removing.get(str(number), ())),
            )
            for number, part in enumerate(parts)
        ]


def in_folders(parts: Sequence[PartitionImage], node: Node | None, name: str) -> list[PartitionImage]:
    """The partitions of a topic with the log folders in its node; None if nothing is known about them."""
    path = f"{layout.DIRECTORIES}/{name}"
    written = document(node, path) if node else {}
    with expecting("the log folders of a topic", path):
        unmade = set(as_numbers(written.get("unmade", ())))
        folders: list[dict[int, str]] = [{} for _ in parts]
        for broker, by_folder in written.get("directories", {}).items():
            for directory, numbers in by_folder.items():
                for number in as_numbers(numbers):
                    if 0 <= number < len(parts):
                        folders[number][int(broker)] = directory
        return [
            part._replace(directories=_by_replica(part.replicas, known), made=number not in unmade)
            for number, (part, known) in enumerate(zip(parts, folders, strict=True))
        ]


def _by_replica(replicas: Sequence[int], directories: Mapping[int, str]) -> tuple[str, ...]:
    in_order = tuple(directories.get(broker, "") for broker in replicas)
    return in_order if any(in_order) else ()


def in_state(part: PartitionImage, node: Node, path: str) -> PartitionImage:
    """The partition with the state in its node."""
    state = document(node, path)
    with expecting("a partition", path):
        return part._replace(
            leader=index(state["leader"]),
            leader_epoch=index(state["leader_epoch"]),
            isr=as_numbers(state["isr"]),
            partition_epoch=node.version,
            elr=as_numbers(state.get("elr", ())),
            last_elr=as_numbers(state.get("last_elr", ())),
        )


def topic_overrides(node: Node | None, name: str) -> dict[str, str]:
    return overrides(node, f"{layout.TOPIC_CONFIGS}/{name}") if node else {}


def _read_broker_overrides() -> Reading[dict[str, Mapping[str, str]]]:
    return {name: overrides(node, path) for name, path, node in (yield from read_below(layout.BROKER_CONFIGS))}


def _read_owners(parent: str, owner: Callable[[str], str]) -> Reading[dict[str, Mapping[str, str] | None]]:
    """The settings in the nodes below this one, by whose they are."""
    return {owner(path): overrides(node, path) for _, path, node in (yield from read_below(parent))}


def _read_deleted() -> Reading[dict[uuid.UUID, str]]:
    deleted = {}
    for name, path, node in (yield from read_below(layout.DELETED_TOPICS)):
        with expecting("a deleted topic", path):
            deleted[long_id(name)] = deleted_name(node, path)
    return deleted


def deleted_name(node: Node, path: str) -> str:
    """The name that a deleted topic had."""
    with expecting("a deleted topic", path):
        return as_text(document(node, path)["name"])


def holders_of_deleted(known: Collection[int]) -> Reading[dict[uuid.UUID, dict[int, set[str]]]]:
    """The brokers that may have logs of the deleted topics, with the log folders that these were in, by topic id; all
    brokers that are known where none is named. Brokers that are not known were forgotten. Raises `StorageError`."""
    holders = {}
    for name, path, node in (yield from read_below(layout.DELETED_TOPICS)):
        with expecting("a deleted topic", path):
            written = document(node, path)
            directories = written.get("directories", {})
            holders[long_id(name)] = {
                broker: set(map(as_text, directories.get(str(broker), ())))
                for broker in as_numbers(written.get("brokers", known))
                if broker in known
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
