"""What Kafka's tools with `--zookeeper` want done: they write into the store, and the controller carries it out.

    /brokers/topics/T                        a topic without an id: create it. With more partitions: enlarge it. A
                                             controller that died may also have left it half created
    /admin/delete_topics/T                   delete it
    /config/changes/config_change_N          {"version": 2, "entity_path": "topics/T"}: those settings, or the quotas of
                                             users/U, users/U/clients/C, clients/C or ips/I, were changed
    /admin/reassign_partitions               {"version": 1, "partitions": [{"topic", "partition", "replicas"}]}
    /admin/preferred_replica_election        {"version": 1, "partitions": [{"topic", "partition"}]}

Anybody may write there: what is not of that shape is `MalformedWish`, and is taken away. Pure. Source: "ZooKeeper
Directories" in Kafka's documentation, KIP-516, and the tools of Kafka 2.8.
"""

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import index
from typing import Any, NamedTuple, TypeAlias, TypeVar

from moldau.cluster.controlling.controller import PARTITIONS_MAX
from moldau.cluster.state import layout, quotas
from moldau.cluster.state.documents import as_text
from moldau.cluster.state.image import Image
from moldau.metadata_store.store import Node, Reading, children_of, node_at, nodes_at
from moldau.names import TopicPartition, long_id

DELETIONS = "/admin/delete_topics"
CONFIG_CHANGES = "/config/changes"
REASSIGNMENT = "/admin/reassign_partitions"
ELECTION = "/admin/preferred_replica_election"
WATCHED = (layout.TOPICS, DELETIONS, CONFIG_CHANGES, REASSIGNMENT, ELECTION)
_ENTITY_TYPES = ("topics", "brokers")
"""Those whose settings have a node of their own name; quotas have others (see `quotas`)."""
T = TypeVar("T")


class WishedTopic(NamedTuple):
    """A topic as its node has it: the replicas of each partition, its settings (None if they have no node), and the
    node's version. `below` are the nodes of its partitions that exist already."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    overrides: Mapping[str, str] | None
    id: uuid.UUID | None
    version: int
    below: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is to be created: the topic could not be read when the controller was elected."""
        states = {layout.state_path(self.name, number) for number in range(len(self.replicas))}
        return self.id is not None and states <= self.below


class ChangedConfig(NamedTuple):
    """The notification at `path`: the settings at `config` were changed, None if this version has none of that kind."""

    path: str
    config: str | None


class WishedReassignment(NamedTuple):
    """The node's version, and the replicas that partitions are to have."""

    version: int
    replicas: Mapping[TopicPartition, tuple[int, ...]]


class WishedElection(NamedTuple):
    """The node's version, and the partitions whose preferred replicas are to lead."""

    version: int
    partitions: tuple[TopicPartition, ...]


class MalformedWish(NamedTuple):
    """The node at `path`, which is not what belongs there."""

    path: str
    version: int


class Wishes(NamedTuple):
    topics: list[WishedTopic | MalformedWish]
    deletions: list[str]
    changes: list[ChangedConfig | MalformedWish]
    reassignment: WishedReassignment | MalformedWish | None
    election: WishedElection | MalformedWish | None


Document: TypeAlias = dict[str, Any]


def read_wishes(image: Image, touched: Collection[str]) -> Reading[Wishes]:
    """All wishes in the store; `image` has the topics that exist, `touched` are those whose nodes may have changed."""
    known = image.topics
    deletions = yield from children_of(DELETIONS)
    names = [name for name in (yield from children_of(layout.TOPICS)) if name not in known or name in touched]
    return Wishes(
        (yield from _read_topics(names, image)),
        deletions,
        (yield from _read_changes()),
        _read((yield from node_at(REASSIGNMENT)), REASSIGNMENT, _reassignment),
        _read((yield from node_at(ELECTION)), ELECTION, _election),
    )


def _read_topics(names: Sequence[str], image: Image) -> Reading[list[WishedTopic | MalformedWish]]:
    """The topics that are not as the image has them: new ones, other numbers of partitions, and what is not a topic. A
    topic whose deletion was left half done is not a new one; one with partitions whose node is unreadable stays."""
    known = image.topics
    nodes = yield from nodes_at([f"{layout.TOPICS}/{name}" for name in names])
    configs = yield from nodes_at([f"{layout.TOPIC_CONFIGS}/{name}" for name in names])
    wished: list[WishedTopic | MalformedWish] = []
    for name, node, config in zip(names, nodes, configs, strict=True):
        wish = _read(node, f"{layout.TOPICS}/{name}", partial(_topic, name, config))
        if isinstance(wish, MalformedWish):
            if name in known or not (yield from children_of(wish.path)):
                wished.append(wish)
        elif wish is not None and wish.id not in image.deleted:
            count = len(known[name].partitions) if name in known else 0
            if len(wish.replicas) != count:
                wished.append(wish._replace(below=(yield from _read_below(wish, count))))
    return wished


def _read_below(wish: WishedTopic, first: int) -> Reading[frozenset[str]]:
    """The nodes that exist of the partitions from `first` on, and of a new topic's log folders."""
    parent = f"{layout.TOPICS}/{wish.name}/partitions"
    numbers = range(first, min(len(wish.replicas), PARTITIONS_MAX))
    paths = [parent, *(path for number in numbers for path in (f"{parent}/{number}", f"{parent}/{number}/state"))]
    if not first:
        paths.append(f"{layout.DIRECTORIES}/{wish.name}")
    nodes = yield from nodes_at(paths)
    return frozenset(path for path, node in zip(paths, nodes, strict=True) if node is not None)


def _read_changes() -> Reading[list[ChangedConfig | MalformedWish]]:
    paths = [f"{CONFIG_CHANGES}/{name}" for name in (yield from children_of(CONFIG_CHANGES))]
    changes = []
    for path, node in zip(paths, (yield from nodes_at(paths)), strict=True):
        wish = _read(node, path, partial(_changed, path))
        if wish is not None:
            changes.append(wish)
    return changes


def _read(node: Node | None, path: str, meaning: Callable[[Document, int], T]) -> T | MalformedWish | None:
    """What the document in a node means; None if there is no node."""
    if node is None:
        return None
    try:
        return meaning(json.loads(node.data), node.version)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return MalformedWish(path, node.version)


def _topic(name: str, config: Node | None, document: Document, version: int) -> WishedTopic:
    by_number = {int(number): _replicas(replicas) for number, replicas in document["partitions"].items()}
    replicas = tuple(by_number[number] for number in range(len(by_number)))
    if not replicas:
        raise ValueError("a topic has partitions")
    given = document.get("topic_id")
    own = None if config is None else {key: as_text(value) for key, value in json.loads(config.data)["config"].items()}
    return WishedTopic(name, replicas, own, None if given is None else long_id(given), version)


def _changed(path: str, document: Document, _: int) -> ChangedConfig:
    return ChangedConfig(path, _config_of(document))


def _config_of(document: Document) -> str | None:
    """The path of the settings; version 1 of the document has their kind and their name apart."""
    path = document["entity_path"] if "entity_path" in document else _entity(document)
    kind, *names = path.split("/")
    if any(not name or name in (".", "..") or "\0" in name for name in names):
        raise ValueError(f"{path!r} names no settings")
    if kind in _ENTITY_TYPES and len(names) != 1:
        raise ValueError(f"{path!r} names no settings")
    known = kind in _ENTITY_TYPES or quotas.entity_of(f"/config/{path}") is not None
    return f"/config/{path}" if known else None


def _entity(document: Document) -> str:
    return f"{document['entity_type']}/{document['entity_name']}"


def _reassignment(document: Document, version: int) -> WishedReassignment:
    return WishedReassignment(version, {_partition(one): _replicas(one["replicas"]) for one in document["partitions"]})


def _election(document: Document, version: int) -> WishedElection:
    return WishedElection(version, tuple(_partition(one) for one in document["partitions"]))


def _partition(document: Document) -> TopicPartition:
    return TopicPartition(as_text(document["topic"]), index(document["partition"]))


def _replicas(values: Iterable[Any]) -> tuple[int, ...]:
    replicas = tuple(index(value) for value in values)
    if any(broker < 0 for broker in replicas):
        raise ValueError("a broker's id is not negative")
    return replicas
