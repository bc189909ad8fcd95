"""The image after a change, from what the change has written: nothing is read back. Pure.

Changes of other sessions are not in it: after one of those the whole image is read again (see `reading.read_again`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moldau.cluster.state import acls, documents, layout, quotas, reading, registrations
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.metadata_store.store import Create, Delete, Node, NodeOperation, Set, Written
from moldau.names import long_id

Nodes = Mapping[str, Node | None]


def nodes_after(operations: Sequence[NodeOperation], results: Iterable[Written | None]) -> dict[str, Node | None]:
    """The nodes that the operations of one change have created, set and deleted (None), without their owners."""
    nodes: dict[str, Node | None] = {}
    for operation, result in zip(operations, results, strict=True):
        if isinstance(operation, Delete):
            nodes[operation.path] = None
        elif isinstance(operation, Create | Set) and result is not None:
            nodes[operation.path] = Node(operation.data, result.version, czxid=result.czxid)
    return nodes


def image_after(image: Image, nodes: Nodes) -> tuple[Image, list[str]]:
    """The image with these nodes, and the names of the topics that may be different in it. Raises
    `MalformedMetadata`."""
    fields: dict[str, Any] = {}
    names: dict[str, None] = {}

    def changing(field: str) -> Any:
        """A copy of one of the image's mappings, to be changed."""
        return fields.setdefault(field, dict(getattr(image, field)))

    for path, node in nodes.items():
        match path.split("/")[1:]:
            case ["brokers" | "config", "topics", name, *_] | ["moldau", "directories", name]:
                names[name] = None
            case ["controller"]:
                fields["controller_id"] = reading.controller_id(node)
            case ["controller_epoch"]:
                fields["controller_epoch"] = reading.controller_epoch(node)
            case ["brokers", "ids", name]:
                number = int(name)
                _put(changing("brokers"), number, node and registrations.broker(number, node, path))
            case ["config", "brokers", name]:
                _put(changing("broker_overrides"), name, node and documents.overrides(node, path))
            case ["config", "groups", _]:
                group = layout.group_of(path)
                _put(changing("group_overrides"), group, node and documents.overrides(node, path))
            case ["config", "client-metrics", _]:
                subscription = layout.client_metrics_of(path)
                _put(changing("client_metrics"), subscription, node and documents.overrides(node, path))
            case ["kafka-acl" | "kafka-acl-extended", *_] if (pattern := acls.pattern_of(path)) is not None:
                _put(changing("acls"), pattern, node and (acls.entries_of(node, path) or None))
            case ["config", "users" | "clients" | "ips", *_] if (entity := quotas.entity_of(path)) is not None:
                _put(changing("quotas"), entity, quotas.quotas_in(node, path) or None)
            case ["moldau", "deleted_topics", name]:
                _put(changing("deleted"), long_id(name), node and reading.deleted_name(node, path))
    if "brokers" in fields:
        fields["brokers"] = dict(sorted(fields["brokers"].items()))
    if "broker_overrides" in fields:
        names = dict.fromkeys([*names, *image.topics])
    topics = _topics_after(image, nodes)
    return replace(image, **fields).with_topics(topics), list(names)


def _put(mapping: dict[Any, Any], key: object, value: object | None) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _topics_after(image: Image, nodes: Nodes) -> dict[str, TopicImage | None]:
    assignments: dict[str, Node | None] = {}
    states: dict[str, dict[int, Node]] = {}
    topics: dict[str, TopicImage | None] = {}
    for path, node in nodes.items():
        match path.split("/")[1:]:
            case ["brokers", "topics", name]:
                assignments[name] = node
            case ["brokers", "topics", name, "partitions", number, "state"] if node is not None:
                states.setdefault(name, {})[int(number)] = node
    for name, node in assignments.items():
        topics[name] = node and _assigned_anew(image.topics.get(name), name, node, states.get(name, {}))
    for name, by_number in states.items():
        topic = image.topics.get(name)
        if topic is not None and name not in topics:
            parts = list(topic.partitions)
            for at, state in by_number.items():
                parts[at] = reading.in_state(parts[at], state, layout.state_path(name, at))
            topics[name] = topic._replace(partitions=tuple(parts))
    for path, node in nodes.items():
        match path.split("/")[1:]:
            case ["config", "topics", name]:
                topic = topics.get(name, image.topics.get(name))
                if topic is not None:
                    topics[name] = topic._replace(overrides=reading.topic_overrides(node, name))
            case ["moldau", "directories", name]:
                topic = topics.get(name, image.topics.get(name))
                if topic is not None:
                    topics[name] = topic._replace(partitions=tuple(reading.in_folders(topic.partitions, node, name)))
    return topics


def _assigned_anew(before: TopicImage | None, name: str, node: Node, states: Mapping[int, Node]) -> TopicImage | None:
    """The topic by its node, with these states, or those that its partitions had."""
    assigned = reading.assigned(node, f"{layout.TOPICS}/{name}")
    old = before.partitions if before else ()
    made = []
    for number, part in enumerate(reading.partitions(assigned, name)):
        known = _reassigned(old[number], part) if number < len(old) else part
        if number in states:
            made.append(reading.in_state(known, states[number], layout.state_path(name, number)))
        elif number < len(old):
            made.append(known)
        else:
            break
    return reading.topic(assigned, name, made, before.overrides if before else {})


def _reassigned(before: PartitionImage, part: PartitionImage) -> PartitionImage:
    """The partition with the replicas that `part`, by the topic's node, has."""
    return before.with_replicas(part.replicas)._replace(
        adding_replicas=part.adding_replicas, removing_replicas=part.removing_replicas
    )
