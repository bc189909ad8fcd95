"""Topics whose deletion was begun by a controller that did not complete it. Pure.

Deleting a large topic takes several steps. The first makes it one of the deleted topics: from then on it does not
exist, whatever is left of its nodes.
"""

import uuid

from moldau.cluster.state import layout
from moldau.cluster.state.documents import MalformedMetadata
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import assigned, topic_id
from moldau.metadata_store.store import Delete, Node, NodeOperation, Reading, children_of, nodes_at


def removal_of_rests(image: Image) -> Reading[list[NodeOperation]]:
    """The operations that remove what is left of deleted topics. Raises `StorageError`."""
    names = [name for name in (yield from children_of(layout.TOPICS)) if name not in image.topics]
    nodes = yield from nodes_at([f"{layout.TOPICS}/{name}" for name in names] if image.deleted else [])
    operations: list[NodeOperation] = []
    for name, node in zip(names, nodes, strict=False):
        path = f"{layout.TOPICS}/{name}"
        if node is not None and _id_in(node, path, name) in image.deleted:
            numbers = yield from children_of(f"{path}/partitions")
            below = [
                one
                for number in numbers
                for one in (f"{path}/partitions/{number}/state", f"{path}/partitions/{number}")
            ]
            paths = [f"{layout.TOPIC_CONFIGS}/{name}", f"{layout.DIRECTORIES}/{name}", *below, f"{path}/partitions"]
            present = yield from nodes_at(paths)
            operations += [Delete(one) for one, there in zip(paths, present, strict=True) if there is not None]
            operations.append(Delete(path))
    return operations


def _id_in(node: Node, path: str, name: str) -> uuid.UUID | None:
    """The id of the topic with this node; None if it has none that can be read."""
    try:
        return topic_id(assigned(node, path), name)
    except MalformedMetadata:
        return None
