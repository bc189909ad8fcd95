"""Registers adopted topics in our metadata store, while our broker does not run.

Each topic is written in one atomic step, as a running cluster would write it. The topic keeps its id. Its new leader
epochs are higher than every epoch in its logs. Producer ids assigned later are higher than every producer id in its
records: a new producer must never be mistaken for an old one.
"""

import uuid
from collections.abc import Mapping, Sequence

from moldau.cluster.controlling import controller
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.reading import block_end, controller_epoch, read_image
from moldau.errors import ErrorCode
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import NodeOperation


def open_cluster(store: EmbeddedStore, cluster_id: str) -> Image:
    """The cluster in the store; a new cluster with that id if the store is empty. Raises `StorageError`."""
    image = store.read(read_image())
    if image is None:
        store.multi(layout.new_cluster(cluster_id))
        image = store.read(read_image())
        assert image is not None
    return image


def refusal(image: Image, name: str, topic_id: uuid.UUID | None) -> Refusal | None:
    """The reason why a topic cannot be registered under that name and id, or None."""
    wrong = controller.name_refusal(name) or controller.name_taken(image, name)
    if wrong is not None:
        return wrong
    if topic_id is not None and topic_id in image.topics_by_id:
        other = image.topics_by_id[topic_id].name
        return Refusal(ErrorCode.INVALID_REQUEST, f"topic {name} has the topic id of {other}, which exists already")
    if topic_id is not None and topic_id in image.deleted:
        sentence = f"an earlier topic {name} is still being deleted: start and stop the broker once to finish that"
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    return None


def register(
    store: EmbeddedStore,
    node_id: int,
    name: str,
    topic_id: uuid.UUID,
    leader_epochs: Sequence[int],
    overrides: Mapping[str, str],
    producer_id_max: int,
) -> None:
    """Register the topic. `leader_epochs`: the latest epoch in the log of each partition. Raises `StorageError`."""
    partitions = tuple(PartitionImage(node_id, epoch + 1, (node_id,), (node_id,)) for epoch in leader_epochs)
    topic = TopicImage(name, topic_id, partitions, overrides)
    epoch = controller_epoch(store.get(layout.CONTROLLER_EPOCH))
    store.multi([*layout.topic_created(topic, epoch), *_producer_ids_behind(store, node_id, producer_id_max)])


def _producer_ids_behind(store: EmbeddedStore, node_id: int, producer_id_max: int) -> list[NodeOperation]:
    if producer_id_max < 0:
        return []
    node = store.get(layout.PRODUCER_ID_BLOCK)
    if block_end(node) >= producer_id_max:
        return []
    start = producer_id_max // layout.PRODUCER_IDS_PER_BLOCK * layout.PRODUCER_IDS_PER_BLOCK
    end = start + layout.PRODUCER_IDS_PER_BLOCK - 1
    return [layout.producer_ids(node_id, start, end, None if node is None else node.version)]
