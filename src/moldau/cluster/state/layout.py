"""The nodes of the cluster's metadata in the store and their JSON: the documents that Kafka kept in ZooKeeper.

    /cluster/id                              {"version": "1", "id": ...}
    /controller                              {"version": 2, "brokerid": 1, ...}                       ephemeral
    /controller_epoch                        a number as text, raised by every new controller
    /brokers/ids/1                           {"version": 5, "host", "port", "endpoints", ..., "kept": {the id of a log
                                              folder: [registrations since which it lost nothing]}}   ephemeral
    /brokers/topics/T                        {"version": 3, "topic_id": ..., "partitions": {"0": [2, 1]},
                                              "adding_replicas": {"0": [2]}, "removing_replicas": {"0": [1]}}: of the
                                              partitions that are being reassigned
    /brokers/topics/T/partitions/0/state     {"version": 1, "leader", "leader_epoch", "isr", "controller_epoch", and
                                              "elr", "last_elr" if not empty}; the node's version is the partition epoch
    /config/topics/T, /config/brokers/1      {"version": 1, "config": {...}}; /config/brokers/<default> is for all
    /config/groups/G                         the same, for the group whose name is G once unquoted
    /config/client-metrics/S                 the same, for a subscription to metrics of clients
    /config/users/U, .../clients/C, ...      quotas and SCRAM credentials: see `quotas`
    /latest_producer_id_block                {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}
    /moldau/deleted_topics/ID                {"version": 1, "name": T, "brokers": [1], "directories": {"1": [ids of log
                                              folders]}}: not yet gone from their disks
    /moldau/directories/T                    {"version": 1, "directories": {"1": {the id of a log folder: [0, 1, ...]}},
                                              "unmade": [partitions whose folder may not have been made yet]}
                                              (of several brokers, those that a broker has reported, which are made)
    /moldau/brokers/1                        {"version": 1, "epoch": the registration that the controller dealt with,
                                              "endpoints", "listener_security_protocol_map", "rack": as registered}
    /moldau/adoption                         {"version": 1, "cluster_id": ...}: a broker that was alone begins a cluster
    /kafka-acl, /kafka-acl-extended, ...     access rights: see `acls`
    /consumers, /config/changes, ...         empty, for tools that look there

The functions here turn images into operations and decide nothing; `reading` turns nodes into images. Source: "ZooKeeper
Directories" in Kafka's documentation; KIP-516 for topic ids. What is below `/moldau` is ours. So are the `directories`
and `kept` of a broker and the eligible leaders of a partition, which Kafka got after ZooKeeper.
"""

import json
import urllib.parse
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moldau.cluster.state import acls, quotas
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.metadata_store.store import Create, Delete, NodeOperation, Reading, Set, children_of, nodes_at
from moldau.names import short_id

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
GROUP_CONFIGS = "/config/groups"
CLIENT_METRICS_CONFIGS = "/config/client-metrics"
DELETED_TOPICS = "/moldau/deleted_topics"
DIRECTORIES = "/moldau/directories"
BROKER_EPOCHS = "/moldau/brokers"
ADOPTION = "/moldau/adoption"
SECRET = "/moldau/secret"
GIVEN_WAY = "/moldau/given_way"
_DELETED_BEFORE = "/admin/delete_topics"
"""Where earlier versions had them. Kafka's tools put the names of topics to delete there."""
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
PRODUCER_IDS_PER_BLOCK = 1000
"""Producer ids are assigned to brokers in blocks of this many: an id of the latest block may not be in use yet."""
DEFAULT_BROKER = "<default>"
_CONFIGS = ("/config", TOPIC_CONFIGS, BROKER_CONFIGS, GROUP_CONFIGS, CLIENT_METRICS_CONFIGS)
_OF_KAFKA = (
    "/admin", "/admin/delete_topics", "/brokers/seqid", "/config/changes", "/config/clients", "/config/ips",
    "/config/users", "/consumers", "/isr_change_notification", "/log_dir_event_notification",
)  # fmt: skip
_OURS = ("/moldau", DELETED_TOPICS, BROKER_EPOCHS, DIRECTORIES)
_TREE = ("/cluster", "/brokers", BROKERS, TOPICS, *_CONFIGS, *_OF_KAFKA, *_OURS)
_SINGLE = (CONTROLLER, CONTROLLER_EPOCH, PRODUCER_ID_BLOCK, acls.LITERAL_ROOT, acls.EXTENDED_ROOT, *acls.CHANGES)
ROOTS = tuple(path for path in (*_TREE, *_SINGLE) if path.count("/") == 1)
NAMED_BELOW = (TOPICS, *_CONFIGS[1:], DELETED_TOPICS, DIRECTORIES, *acls.PARENTS)
"""The nodes whose children have the names of topics, brokers, groups and other resources."""


def _json(**document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def cluster(cluster_id: str) -> Create:
    return Create(CLUSTER_ID, _json(version="1", id=cluster_id))


def new_cluster(cluster_id: str) -> list[NodeOperation]:
    return [*(Create(path) for path in _TREE), cluster(cluster_id)]


def secret(value: bytes, of_file: bytes | None) -> Create:
    """`of_file`: a hash of the secret in the brokers' file; None without one."""
    return Create(SECRET, _secret(value, of_file))


def secret_required(value: bytes, of_file: bytes, version: int) -> Set:
    """The brokers need a file too, from now on."""
    return Set(SECRET, _secret(value, of_file), version)


def _secret(value: bytes, of_file: bytes | None) -> bytes:
    file = {} if of_file is None else {"file": of_file.hex()}
    return _json(version=1, secret=value.hex(), **file)


def adoption_begun(cluster_id: str) -> list[Create]:
    """The first step of an adoption (see `adopting`)."""
    return [Create("/moldau"), Create(ADOPTION, _json(version=1, cluster_id=cluster_id))]


def missing() -> Reading[list[NodeOperation]]:
    """The operations that bring the tree of an earlier version up to date."""
    nodes = yield from nodes_at(_TREE)
    return [
        *(Create(path) for path, node in zip(_TREE, nodes, strict=True) if node is None),
        *(yield from _deleted_moved()),
        *((yield from _directories_moved()) if nodes[_TREE.index(DIRECTORIES)] is None else ()),
    ]


def _deleted_moved() -> Reading[list[NodeOperation]]:
    """Earlier versions put a document there, and Kafka's tools a name without one."""
    names = yield from children_of(_DELETED_BEFORE)
    nodes = yield from nodes_at([f"{_DELETED_BEFORE}/{name}" for name in names])
    return [
        step
        for name, node in zip(names, nodes, strict=True)
        if node is not None and node.data
        for step in (Create(f"{DELETED_TOPICS}/{name}", node.data), Delete(f"{_DELETED_BEFORE}/{name}", node.version))
    ]


def _directories_moved() -> Reading[list[NodeOperation]]:
    """Earlier versions had the log folders of partitions in the node of their topic, by partition."""
    names = yield from children_of(TOPICS)
    operations: list[NodeOperation] = []
    for name, node in zip(names, (yield from nodes_at([f"{TOPICS}/{name}" for name in names])), strict=True):
        document = json.loads(node.data) if node else {}
        by_partition, unmade = document.pop("directories", {}), document.pop("unmade", [])
        known: dict[str, dict[str, list[int]]] = {}
        for number, directories in by_partition.items():
            for broker, directory in zip(document["partitions"][number], directories, strict=False):
                known.setdefault(str(broker), {}).setdefault(directory, []).append(int(number))
        if known or unmade:
            moved = Create(f"{DIRECTORIES}/{name}", _json(version=1, directories=known, unmade=unmade))
            operations += [Set(f"{TOPICS}/{name}", _json(**document)), moved]
    return operations


def _quoted(parent: str, name: str) -> str:
    """A group or a subscription may have any name: it is quoted, and so are dots where it is only dots."""
    quoted = urllib.parse.quote(name, safe="")
    return f"{parent}/{quoted if name.strip('.') else quoted.replace('.', '%2E')}"


def group_config_path(group_id: str) -> str:
    return _quoted(GROUP_CONFIGS, group_id)


def group_of(path: str) -> str:
    """The reverse of `group_config_path`."""
    return urllib.parse.unquote(path.removeprefix(GROUP_CONFIGS + "/"))


def group_changed(group_id: str, old: Mapping[str, str] | None, new: Mapping[str, str]) -> list[NodeOperation]:
    """From settings of a group's own to later ones; a group without any has no node."""
    return _owner_changed(group_config_path(group_id), old, new)


def client_metrics_of(path: str) -> str:
    """The name of the subscription to metrics of clients whose settings are in this node."""
    return urllib.parse.unquote(path.removeprefix(CLIENT_METRICS_CONFIGS + "/"))


def client_metrics_changed(name: str, old: Mapping[str, str] | None, new: Mapping[str, str]) -> list[NodeOperation]:
    """As `group_changed`, for a subscription to metrics of clients; one without settings does not exist."""
    return _owner_changed(_quoted(CLIENT_METRICS_CONFIGS, name), old, new)


def _owner_changed(path: str, old: Mapping[str, str] | None, new: Mapping[str, str]) -> list[NodeOperation]:
    if new:
        return [config(path, new, is_new=old is None)]
    return [] if old is None else [Delete(path)]


def controller(broker_id: int, now_ms: int) -> NodeOperation:
    return Create(CONTROLLER, _json(version=2, brokerid=broker_id, timestamp=str(now_ms)), ephemeral=True)


class GivenWay(NamedTuple):
    """The brokers that have given way as controllers, one after the other, and the epoch of the last one."""

    controller_epoch: int
    brokers: tuple[int, ...]


def given_way(latest: GivenWay, version: int | None) -> NodeOperation:
    """`version` is that of the node, None if there is none yet."""
    data = _json(version=1, controller_epoch=latest.controller_epoch, brokers=latest.brokers)
    return Create(GIVEN_WAY, data) if version is None else Set(GIVEN_WAY, data, version)


def controller_epoch(epoch: int, version: int | None) -> NodeOperation:
    """The epoch of a new controller; `version` is that of the node, None if there is none yet."""
    data = str(epoch).encode()
    return Create(CONTROLLER_EPOCH, data) if version is None else Set(CONTROLLER_EPOCH, data, version)


def broker(
    image: BrokerImage, now_ms: int, version: int | None = None, kept: Mapping[str, Sequence[int]] | None = None
) -> Create | Set:
    """A broker's registration, new (`version` None) or changed. `host` and `port` are of its first PLAINTEXT listener,
    for clients that read no `endpoints`. `kept` has the broker epochs since which each log folder has lost nothing."""
    plain = next((endpoint for endpoint in image.endpoints if endpoint.protocol == "PLAINTEXT"), None)
    data = _json(
        version=5,
        host=plain.host if plain else None,
        port=plain.port if plain else -1,
        jmx_port=-1,
        timestamp=str(now_ms),
        **_listeners(image),
        features={},
        **({"directories": list(image.directories)} if image.directories else {}),
        **({"kept": kept} if kept else {}),
    )
    path = f"{BROKERS}/{image.id}"
    return Create(path, data, ephemeral=True) if version is None else Set(path, data, version)


def dealt_with(broker: BrokerImage, *, is_new: bool) -> NodeOperation:
    """The controller has elected leaders after this registration. The addresses are for those who ask where a broker
    is that is away."""
    path, data = f"{BROKER_EPOCHS}/{broker.id}", _json(version=1, epoch=broker.epoch, **_listeners(broker))
    return Create(path, data) if is_new else Set(path, data)


def _listeners(broker: BrokerImage) -> dict[str, Any]:
    return {
        "endpoints": [str(endpoint) for endpoint in broker.endpoints],
        "listener_security_protocol_map": {endpoint.name: endpoint.protocol for endpoint in broker.endpoints},
        "rack": broker.rack,
    }


def producer_ids(broker_id: int, start: int, end: int, version: int | None) -> NodeOperation:
    """A block of producer ids, both ends included; `version` is None for the first."""
    data = _json(version=1, broker=broker_id, block_start=str(start), block_end=str(end))
    return Create(PRODUCER_ID_BLOCK, data) if version is None else Set(PRODUCER_ID_BLOCK, data, version)


def last_producer_ids(broker_id: int, last: int) -> list[NodeOperation]:
    """The block that ends with the last id that may have been assigned; none if none was."""
    return [] if last < 0 else [producer_ids(broker_id, last - PRODUCER_IDS_PER_BLOCK + 1, last, None)]


def config(path: str, overrides: Mapping[str, str], *, is_new: bool) -> NodeOperation:
    data = _json(version=1, config=dict(overrides))
    return Create(path, data) if is_new else Set(path, data)


def _assignment(topic: TopicImage) -> bytes:
    parts = [(str(number), part) for number, part in enumerate(topic.partitions)]
    return _json(
        version=3,
        topic_id=short_id(topic.id),
        partitions={number: list(part.replicas) for number, part in parts},
        adding_replicas={number: list(part.adding_replicas) for number, part in parts if part.adding_replicas},
        removing_replicas={number: list(part.removing_replicas) for number, part in parts if part.removing_replicas},
    )


def _assigned(topic: TopicImage) -> list[tuple[tuple[int, ...], ...]]:
    """The replicas of each partition, those being added and those being removed, as the topic's node lists them."""
    return [(part.replicas, part.adding_replicas, part.removing_replicas) for part in topic.partitions]


def _directories(topic: TopicImage) -> bytes | None:
    """The log folders of the topic's partitions; None if there is nothing to say about them."""
    known: dict[str, dict[str, list[int]]] = {}
    for number, part in enumerate(topic.partitions):
        for broker, directory in zip(part.replicas, part.directories, strict=False):
            if directory:
                known.setdefault(str(broker), {}).setdefault(directory, []).append(number)
    unmade = [number for number, part in enumerate(topic.partitions) if not part.made]
    return _json(version=1, directories=known, unmade=unmade) if known or unmade else None


def _directories_changed(name: str, before: bytes | None, after: bytes | None) -> list[NodeOperation]:
    path = f"{DIRECTORIES}/{name}"
    if before == after:
        return []
    if after is None:
        return [Delete(path)]
    return [Create(path, after) if before is None else Set(path, after)]


def topic_node(image: TopicImage, version: int) -> NodeOperation:
    """The node of a topic, which exists at that version."""
    return Set(f"{TOPICS}/{image.name}", _assignment(image), version)


def state_path(name: str, partition: int) -> str:
    return f"{TOPICS}/{name}/partitions/{partition}/state"


def _state(partition: PartitionImage, epoch: int) -> bytes:
    return _json(
        controller_epoch=epoch,
        leader=partition.leader,
        version=1,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        **({"elr": list(partition.elr)} if partition.elr else {}),
        **({"last_elr": list(partition.last_elr)} if partition.last_elr else {}),
    )


def _new_partitions(topic: TopicImage, first: int, epoch: int) -> Iterator[NodeOperation]:
    for number in range(first, len(topic.partitions)):
        yield Create(f"{TOPICS}/{topic.name}/partitions/{number}")
        yield Create(state_path(topic.name, number), _state(topic.partitions[number], epoch))


def topic_created(topic: TopicImage, epoch: int) -> list[NodeOperation]:
    """`epoch` is the controller's, here and below."""
    return [
        config(f"{TOPIC_CONFIGS}/{topic.name}", topic.overrides, is_new=True),
        *_directories_changed(topic.name, None, _directories(topic)),
        Create(f"{TOPICS}/{topic.name}", _assignment(topic)),
        Create(f"{TOPICS}/{topic.name}/partitions"),
        *_new_partitions(topic, 0, epoch),
    ]


def topic_changed(old: TopicImage, new: TopicImage, epoch: int) -> list[NodeOperation]:
    """From one image of a topic to a later one: more partitions, other replicas, other states, other settings. A state
    is written only if nobody has written it since; before the node, in which its replicas may be fewer."""
    operations: list[NodeOperation] = []
    together = list(zip(old.partitions, new.partitions, strict=False))
    operations += _directories_changed(new.name, _directories(old), _directories(new))
    for number, (before, after) in enumerate(together):
        if before._replace(directories=(), made=True) != after._replace(directories=(), made=True):
            operations.append(Set(state_path(new.name, number), _state(after, epoch), before.partition_epoch))
    if _assigned(old) != _assigned(new):
        operations.append(Set(f"{TOPICS}/{new.name}", _assignment(new)))
        operations += _new_partitions(new, len(old.partitions), epoch)
    if old.overrides != new.overrides:
        operations.append(topic_overrides(new.name, new.overrides))
    return operations


def topic_overrides(name: str, overrides: Mapping[str, str]) -> NodeOperation:
    """The settings of a topic that exists."""
    return config(f"{TOPIC_CONFIGS}/{name}", overrides, is_new=False)


def deleted(topic_id: uuid.UUID, name: str, holders: Mapping[int, Collection[str]] | None = None) -> NodeOperation:
    """The topic may still be in some log folder of these brokers (see `TopicImage.holders`); of any broker if none is
    named."""
    named = {}
    if holders:
        known = {str(broker): sorted(directories) for broker, directories in holders.items() if directories}
        named = {"brokers": sorted(holders), **({"directories": known} if known else {})}
    return Create(f"{DELETED_TOPICS}/{short_id(topic_id)}", _json(version=1, name=name, **named))


def acls_changed(
    pattern: acls.AclPattern, entries: Sequence[acls.AclEntry], version: int | None
) -> list[NodeOperation]:
    """The node of a pattern with these entries; without any it has no node. `version` is that of the node, None if
    there is none."""
    path = acls.path_of(pattern)
    if not entries:
        return [] if version is None else [Delete(path, version)]
    data = _json(**acls.written(entries))
    return [Create(path, data) if version is None else Set(path, data, version)]


def acls_of(image: Image) -> list[NodeOperation]:
    """All ACLs, for a store that has none."""
    parents = dict.fromkeys(path for pattern in image.acls for path in acls.parents_of(pattern))
    steps = [step for pattern, entries in image.acls.items() for step in acls_changed(pattern, entries, None)]
    return [*(Create(path) for path in parents), *steps]


def quotas_of(image: Image) -> list[NodeOperation]:
    """All quotas, for a store that has none."""
    entities = {quotas.path_of(entity): values for entity, values in image.quotas.items()}
    parents = dict.fromkeys(path for entity in image.quotas for path in quotas.parents_of(entity))
    texts = {path: {k: quotas.text_of(k, v) for k, v in values.items()} for path, values in entities.items()}
    users = [quotas.bare(path) for path in parents if path not in texts]
    ordered = sorted(
        [*users, *(config(path, own, is_new=True) for path, own in texts.items())], key=lambda one: one.path
    )
    return list(ordered)


def whole(image: Image, holders: Collection[int] = ()) -> list[NodeOperation]:
    """Everything lasting of a cluster, for an empty store; `holders` are the brokers that may have deleted topics."""
    epoch = image.controller_epoch
    operations = [*new_cluster(image.cluster_id), *([controller_epoch(epoch, None)] if epoch else [])]
    operations += [config(f"{BROKER_CONFIGS}/{name}", own, is_new=True) for name, own in image.broker_overrides.items()]
    operations += [step for group, own in image.group_overrides.items() for step in group_changed(group, None, own)]
    for name, own in image.client_metrics.items():
        operations += client_metrics_changed(name, None, own)
    operations += quotas_of(image)
    operations += [deleted(topic_id, name, dict.fromkeys(holders, ())) for topic_id, name in image.deleted.items()]
    operations += acls_of(image)
    return operations + [step for topic in image.topics.values() for step in topic_created(topic, epoch)]


def topic_deleted(topic: TopicImage) -> list[NodeOperation]:
    operations: list[NodeOperation] = [
        deleted(topic.id, topic.name, topic.holders),
        Delete(f"{TOPIC_CONFIGS}/{topic.name}"),
        *_directories_changed(topic.name, _directories(topic), None),
    ]
    for number in range(len(topic.partitions)):
        operations.append(Delete(state_path(topic.name, number)))
        operations.append(Delete(f"{TOPICS}/{topic.name}/partitions/{number}"))
    operations.append(Delete(f"{TOPICS}/{topic.name}/partitions"))
    operations.append(Delete(f"{TOPICS}/{topic.name}"))
    return operations
