"""Writes the settings of an adopted Kafka's brokers, groups and subscriptions to metrics of clients into our metadata
store, while our broker does not run. A setting that is here already stays, and so does a subscription of that name.
"""

from collections.abc import Mapping

from moldau.cluster.state import layout
from moldau.cluster.state.reading import read_image
from moldau.files.kafka_resources import KafkaResources
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import NodeOperation


def register_resources(store: EmbeddedStore, found: KafkaResources) -> None:
    """All in one step. Raises `StorageError`."""
    image = store.read(read_image())
    assert image is not None
    steps: list[NodeOperation] = []
    for group, own in found.groups.items():
        there = image.group_overrides.get(group)
        if _adds(own, there):
            steps += layout.group_changed(group, there, {**own, **(there or {})})
    for name, own in found.subscriptions.items():
        if name not in image.client_metrics:
            steps += layout.client_metrics_changed(name, None, own)
    ours = image.broker_overrides.get(layout.DEFAULT_BROKER)
    if _adds(found.brokers, ours):
        path = f"{layout.BROKER_CONFIGS}/{layout.DEFAULT_BROKER}"
        steps.append(layout.config(path, {**found.brokers, **(ours or {})}, is_new=ours is None))
    if steps:
        store.multi(steps)


def _adds(own: Mapping[str, str], there: Mapping[str, str] | None) -> bool:
    return not own.keys() <= (there or {}).keys()
